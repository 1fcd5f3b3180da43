package amqp

import (
	"context"
	"fmt"
	"slices"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// idleCommit is how long a transaction that is not full waits for another message before it is committed.
const idleCommit = 100 * time.Millisecond

// runTransactions delivers the held messages, so many to a transaction.
func (k *consumer) runTransactions(ctx context.Context) error {
	tx := &receiveTx{k: k, coordinator: k.coordinator}
	var dec decoder
	for {
		wait, stopWaiting := ctx, context.CancelFunc(func() {})
		if tx.n > 0 {
			wait, stopWaiting = context.WithTimeout(ctx, idleCommit)
		}
		list, err := k.next(wait)
		stopWaiting()
		switch {
		case len(list) == 0 && tx.n > 0:
			if commitErr := tx.commit(context.WithoutCancel(ctx)); commitErr != nil && err == nil {
				err = commitErr
			}
			if err != nil || ctx.Err() != nil {
				return err
			}
			continue
		case len(list) == 0:
			return err
		}
		for i := range list {
			if ctx.Err() != nil {
				k.putBack(list[i:])
				break
			}
			if err := tx.deliver(ctx, &list[i], &dec); err != nil {
				return err
			}
		}
	}
}

// nextID gives delivery IDs to the coordinator's requests; nothing else is sent in the session. The session's lock is
// held.
func (k *consumer) nextID() uint32 {
	k.lastID++
	return k.lastID - 1
}

// receiveTx is the transaction in which a consumer receives.
type receiveTx struct {
	k           *consumer
	coordinator *coordinator
	id          []byte // nil: none is open
	n           int    // messages in it
	frame       []byte
}

// begin asks for a transaction and waits for it.
func (t *receiveTx) begin(ctx context.Context) error {
	type result struct {
		id  []byte
		err error
	}
	results := make(chan result, 1)
	err := t.coordinator.declare(ctx, t.k.wait, false, func(id []byte, err error) { results <- result{id, err} })
	if err != nil {
		return err
	}
	t.k.wait.Begin()
	defer t.k.wait.End()
	select {
	case r := <-results:
		t.id, t.n = r.id, 0
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("the broker has not begun the transaction: %w", ctx.Err())
	}
}

// deliver delivers a message and settles it in the transaction by its verdict.
func (t *receiveTx) deliver(ctx context.Context, h *held, dec *decoder) error {
	if t.id == nil {
		if err := t.begin(ctx); err != nil {
			return err
		}
	}
	k := t.k
	d, err := dec.decode(k.lease.Conn, h.text)
	if err != nil {
		return err
	}
	verdict := k.deliver(d)
	k.mu.Lock()
	k.release(h)
	k.mu.Unlock()
	state := wire.State{Kind: wire.DescAccepted, Transactional: true, TxnID: t.id}
	switch verdict {
	case driver.Reject:
		state.Kind = wire.DescRejected
	case driver.Release:
		state.Kind = wire.DescReleased
	case driver.Accept:
	}
	disposition := wire.Disposition{
		Role: wire.RoleReceiver, First: h.id, Last: h.id, Settled: true,
		State: state.Append(nil),
	}
	t.frame = disposition.AppendFrame(t.frame[:0], k.session.channel)
	if err := k.lease.Conn.gather(func(b []byte) []byte { return append(b, t.frame...) }); err != nil {
		return err
	}
	if t.n++; t.n >= k.spec.TransactionSize {
		return t.commit(ctx)
	}
	return nil
}

// commit ends the transaction and waits for the broker's word.
func (t *receiveTx) commit(ctx context.Context) error {
	k := t.k
	ctx, cancel := context.WithTimeout(ctx, k.lease.Conn.driver.cfg.ConnectTimeout)
	defer cancel()
	results := make(chan error, 1)
	began := time.Now()
	id := slices.Clone(t.id)
	err := t.coordinator.discharge(ctx, k.wait, id, false, false, func(err error) { results <- err })
	if err != nil {
		return err
	}
	k.wait.Begin()
	select {
	case err = <-results:
	case <-ctx.Done():
		err = fmt.Errorf("the broker has not answered the commit: %w", ctx.Err())
	}
	k.wait.End()
	if k.spec.Commits != nil {
		k.spec.Commits(time.Since(began), err == nil)
	}
	k.mu.Lock()
	k.unsettled -= uint32(t.n) //nolint:gosec // of this transaction
	k.mu.Unlock()
	t.id, t.n = nil, 0
	k.settleAll()
	k.lease.Conn.out.Flush()
	return err
}
