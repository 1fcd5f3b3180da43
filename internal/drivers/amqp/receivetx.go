package amqp

import (
	"context"
	"fmt"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// idleCommit is the time that a transaction that is not full waits for another message before it is committed.
const idleCommit = 100 * time.Millisecond

// receiveTx is the transaction in which a consumer receives.
type receiveTx struct {
	k     *consumer
	id    []byte // nil: no transaction is open
	n     int    // messages in it
	frame []byte
}

// ask sends a request to the coordinator and waits for the answer.
func (t *receiveTx) ask(ctx context.Context, what string, request func(told func(error)) error) error {
	results := make(chan error, 1)
	if err := request(func(err error) { results <- err }); err != nil {
		return err
	}
	t.k.wait.Begin()
	defer t.k.wait.End()
	select {
	case err := <-results:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the broker has not %s: %w", what, ctx.Err())
	}
}

// deliver delivers a message and accepts it in the transaction; there is no other verdict, see consumer.open.
func (t *receiveTx) deliver(ctx context.Context, h *held) error {
	k := t.k
	if t.id == nil {
		var begun []byte
		if err := t.ask(ctx, "begun the transaction", func(told func(error)) error {
			return k.coordinator.declare(ctx, false, func(id []byte, err error) {
				begun = id
				told(err)
			})
		}); err != nil {
			return err
		}
		t.id, t.n = begun, 0
	}
	d, err := k.decoder.decode(k.lease.Conn, h.text)
	if err != nil {
		return err
	}
	k.deliver(d)
	id := h.id
	k.mu.Lock()
	k.releaseHeld(h)
	k.mu.Unlock()
	state := wire.State{Kind: wire.DescAccepted, Transactional: true, TxnID: t.id}
	disposition := wire.Disposition{
		Role: wire.RoleReceiver, First: id, Last: id, Settled: true, State: state.Append(nil),
	}
	t.frame = disposition.AppendFrame(t.frame[:0], k.session.channel)
	if err := k.lease.Conn.Gather(func(b []byte) []byte { return append(b, t.frame...) }); err != nil {
		return err
	}
	if t.n++; t.n >= k.spec.TransactionSize {
		return t.commit(ctx)
	}
	return nil
}

// commit commits the transaction and waits for the broker's answer.
func (t *receiveTx) commit(ctx context.Context) error {
	k := t.k
	ctx, cancel := context.WithTimeout(ctx, k.lease.Conn.driver.cfg.ConnectTimeout)
	defer cancel()
	began, sent := time.Now(), false
	err := t.ask(ctx, "answered the commit", func(told func(error)) error {
		err := k.coordinator.discharge(ctx, t.id, false, told)
		sent = err == nil
		return err
	})
	if !sent {
		return err
	}
	if k.spec.Commits != nil {
		k.spec.Commits(time.Since(began), err == nil)
	}
	k.mu.Lock()
	k.unsettled -= uint32(t.n) //nolint:gosec // of this transaction
	k.mu.Unlock()
	t.id, t.n = nil, 0
	k.settleAll()
	k.lease.Conn.Out.Flush()
	return err
}
