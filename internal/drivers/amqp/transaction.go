package amqp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// coordinator is the link to the broker's coordinator of transactions (Transactions, section 4).
type coordinator struct {
	sender
	multi bool // several transactions of a session may be open at once (section 4.5.9)
	// pending are the callbacks of requests in flight, by delivery ID; guarded by session.mu. Each is called once, without
	// a lock.
	pending map[uint32]func(wire.State, error)
}

// newCoordinator attaches to the coordinator. wait measures the waits for it.
func newCoordinator(ctx context.Context, s *session, name string, wait *driver.Meter) (*coordinator, error) {
	k := &coordinator{sender: newSender(wait, wait), pending: map[uint32]func(wire.State, error){}}
	k.s, k.handle, k.owner = s, 1, k
	attach := wire.Attach{
		Name: name + ":coordinator", Role: wire.RoleSender, InitialDeliveryCount: wire.Some[uint32](0),
		Source: wire.Terminus{
			Kind: wire.DescSource, Address: wire.Some(name),
			Outcomes: []string{"amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"},
		},
		Target: wire.Terminus{
			Kind: wire.DescCoordinator, Capabilities: []string{wire.TxnLocal, wire.TxnMultiPerSession},
		},
	}
	if err := s.attach(ctx, &k.link, &attach); err != nil {
		if driver.ClassOf(err) == driver.ClassOther || driver.ClassOf(err) == driver.ClassNotFound {
			err = &driver.Error{Class: driver.ClassUnsupported, Hint: "leave out transactions", Err: err}
		}
		return nil, err
	}
	k.multi = slices.Contains(k.peer.Target.Capabilities, wire.TxnMultiPerSession)
	return k, nil
}

// ask sends a request, once there is credit for it.
func (k *coordinator) ask(ctx context.Context, message []byte, more bool, answer func(wire.State, error)) error {
	err := k.request(ctx, message, false, more, func(id uint32) { k.pending[id] = answer })
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("the broker takes no request: %w", ctx.Err())
	}
	return err
}

// settle implements owner.
func (k *coordinator) settle(first, last uint32, state wire.State) { k.answer(first, last, state, nil) }

// abandon implements owner.
func (k *coordinator) abandon(why error) {
	k.stop(why)
	k.answer(0, math.MaxUint32, wire.State{}, why)
}

// answer calls the callbacks of a range of deliveries.
func (k *coordinator) answer(first, last uint32, state wire.State, err error) {
	var answers []func(wire.State, error)
	k.s.mu.Lock()
	for id, answer := range k.pending {
		if id-first <= last-first { // serial numbers
			answers = append(answers, answer)
			delete(k.pending, id)
		}
	}
	k.s.mu.Unlock()
	for _, answer := range answers {
		answer(state, err)
	}
}

// maxTxnID bounds the IDs of transactions, in bytes: each frame has one, and may have to be of the smallest size.
const maxTxnID = 256

// declare asks for a transaction; answer gets its ID.
func (k *coordinator) declare(ctx context.Context, more bool, answer func(id []byte, err error)) error {
	return k.ask(ctx, wire.AppendDeclare(nil), more, func(st wire.State, err error) {
		switch {
		case err != nil:
			answer(nil, err)
		case st.Kind == wire.DescDeclared && len(st.TxnID) > maxTxnID:
			answer(nil, protocolError("a transaction's ID of %d bytes", len(st.TxnID)))
		case st.Kind == wire.DescDeclared:
			answer(slices.Clone(st.TxnID), nil)
		case st.Kind == wire.DescRejected:
			answer(nil, k.s.c.remote("the broker refused a transaction", driver.ClassOther, "", st.Error))
		default:
			answer(nil, protocolError("another answer than a transaction"))
		}
	})
}

// discharge commits a transaction; answer receives the result.
func (k *coordinator) discharge(ctx context.Context, id []byte, more bool, answer func(error)) error {
	return k.ask(ctx, (&wire.Discharge{TxnID: id}).AppendMessage(nil), more, func(st wire.State, err error) {
		switch {
		case err != nil:
			answer(err)
		case st.Kind == wire.DescAccepted:
			answer(nil)
		default:
			answer(refusal{k.s.c.remote("the broker refused to commit", driver.ClassOther, "", st.Error)})
		}
	})
}

// refusal reports that the broker rolled a transaction back: its messages are not stored.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// transactions are the transactions of a producer, filled one after the other.
type transactions struct {
	k       *coordinator
	p       *producer
	size    int
	commits driver.Commits // may be nil
	answers *driver.Meter  // waits for the broker to begin a transaction
	filling *transaction   // of the goroutine that sends; nil: none declared yet

	// Guarded by session.mu.
	asked  bool         // the next transaction is being declared
	ready  *transaction // the next transaction, declared
	failed error        // why it could not be declared
}

// transaction is a transaction of a producer. Its messages stay unsettled until it ends, except messages that the
// broker refuses earlier.
type transaction struct {
	id, state   []byte
	count       int    // messages that were sent in it
	first, last uint32 // delivery IDs of its messages
}

// add adds a sent message to the transaction.
func (tx *transaction) add(id uint32) {
	if tx.count == 0 {
		tx.first = id
	}
	tx.last = id
	tx.count++
}

// begin attaches to the coordinator and declares the first transaction.
func (t *transactions) begin(ctx context.Context, name string) (err error) {
	if t.k, err = newCoordinator(ctx, t.p.s, name, t.p.creditWait); err != nil {
		return err
	}
	return t.prepare(ctx, false)
}

// prepare declares the next transaction, unless that was done.
func (t *transactions) prepare(ctx context.Context, more bool) error {
	s := t.p.s
	s.mu.Lock()
	needed := !t.asked && t.ready == nil
	t.asked = t.asked || needed
	s.mu.Unlock()
	if !needed {
		return nil
	}
	err := t.k.declare(ctx, more, func(id []byte, err error) {
		state := wire.State{Transactional: true, TxnID: id}
		s.mu.Lock()
		t.asked = false
		if err != nil {
			t.failed = err
		} else {
			t.ready = &transaction{id: id, state: state.Append(nil)}
		}
		s.mu.Unlock()
		t.p.wake()
	})
	if err != nil {
		s.mu.Lock()
		t.asked = false
		s.mu.Unlock()
	}
	return err
}

// enter returns the delivery state of the next message: its transaction is the one being filled. Without one it waits
// for the broker to declare one. Where several may be open, it also declares the one after it.
func (t *transactions) enter(ctx context.Context) ([]byte, error) {
	s := t.p.s
	for t.filling == nil {
		s.mu.Lock()
		next, err := t.ready, t.failed
		t.ready = nil
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
		t.filling = next
		if next == nil || t.k.multi {
			if err := t.prepare(ctx, next != nil); err != nil {
				return nil, err
			}
		}
		if next == nil {
			if err := t.await(ctx); err != nil {
				return nil, err
			}
		}
	}
	return t.filling.state, nil
}

// await waits for an answer of the coordinator.
func (t *transactions) await(ctx context.Context) error {
	t.p.lease.Conn.Out.Flush()
	t.answers.Begin()
	defer t.answers.End()
	select {
	case <-t.p.granted:
		return nil
	case <-t.p.stopped:
		return t.p.why
	case <-ctx.Done():
		return fmt.Errorf("the broker has not begun the transaction: %w", ctx.Err())
	}
}

// commitFull commits the transaction being filled, if it is full. If the request cannot be sent before ctx ends, Flush
// or Close will commit it.
func (t *transactions) commitFull(ctx context.Context, more bool) {
	if t.filling.count >= t.size {
		_ = t.commit(ctx, more)
	} else if !more {
		t.p.lease.Conn.Out.Flush()
	}
}

// flush commits the transaction being filled, unless it is empty.
func (t *transactions) flush(ctx context.Context) error {
	if t.filling == nil || t.filling.count == 0 {
		return nil
	}
	return t.commit(ctx, false)
}

func (t *transactions) commit(ctx context.Context, more bool) error {
	tx, began := t.filling, time.Now()
	err := t.k.discharge(ctx, tx.id, true, func(err error) {
		if t.commits != nil {
			t.commits(time.Since(began), err == nil)
		}
		t.ended(tx, err)
	})
	if err != nil {
		return err
	}
	t.filling = nil
	err = t.prepare(ctx, true)
	if !more {
		t.p.lease.Conn.Out.Flush()
	}
	return err
}

// ended ends the messages of a transaction.
func (t *transactions) ended(tx *transaction, err error) {
	o := driver.Outcome{}
	if err != nil {
		o = unknown(transport.Explain(t.p.op, err))
		if _, refused := errors.AsType[refusal](err); refused {
			o.State = driver.Rejected
		}
	}
	t.p.finish(tx.first, tx.last, o)
}

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
