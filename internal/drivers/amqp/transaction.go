package amqp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// coordinator is the link to the broker's coordinator of transactions (Transactions, section 4).
type coordinator struct {
	requester
	multi   bool                // several transactions of a session may be open at once
	pending map[uint32]*request // by delivery ID; guarded by session.mu
}

// request is a declare or discharge under way. answer is called once, without a lock.
type request struct {
	answer func(wire.State, error)
}

// multiTxns is the capability of a coordinator whose sessions may have several transactions at once (Transactions,
// section 4.5.9).
const multiTxns = "amqp:multi-txns-per-ssn"

func newCoordinator(ctx context.Context, s *session, name string, next func() uint32) (*coordinator, error) {
	k := &coordinator{
		requester: requester{s: s, next: next, granted: make(chan struct{}, 1)}, pending: map[uint32]*request{},
	}
	k.link.handle, k.link.control = 1, k
	attach := wire.Attach{
		Name: name + ":coordinator", Role: wire.RoleSender, InitialDeliveryCount: wire.Some[uint32](0),
		Source: wire.Terminus{
			Kind: wire.DescSource, Address: wire.Some(name),
			Outcomes: []string{"amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"},
		},
		Target: wire.Terminus{Kind: wire.DescCoordinator, Capabilities: []string{"amqp:local-transactions", multiTxns}},
	}
	if err := s.attach(ctx, &k.link, &attach); err != nil {
		if driver.ClassOf(err) == driver.ClassOther || driver.ClassOf(err) == driver.ClassNotFound {
			err = &driver.Error{Class: driver.ClassUnsupported, Hint: "leave out transactions", Err: err}
		}
		return nil, err
	}
	k.multi = slices.Contains(k.link.peer.coordinator, multiTxns)
	return k, nil
}

// ask sends a request, once there is credit for it.
func (k *coordinator) ask(ctx context.Context, meter *driver.Meter, message []byte, r *request, more bool) error {
	return k.send(ctx, meter, message, false, more, func(id uint32) { k.pending[id] = r })
}

// settle answers the requests of a range of deliveries.
func (k *coordinator) settle(first, last uint32, state wire.State) {
	k.s.mu.Lock()
	var list []*request
	for id, r := range k.pending {
		if id-first <= last-first { // serial numbers
			list = append(list, r)
			delete(k.pending, id)
		}
	}
	k.s.mu.Unlock()
	for _, r := range list {
		r.answer(state, nil)
	}
}

// abandon answers all requests: nothing more comes.
func (k *coordinator) abandon(why error) {
	k.end(why)
	k.s.mu.Lock()
	why = k.err
	list := make([]*request, 0, len(k.pending))
	for id, r := range k.pending {
		list = append(list, r)
		delete(k.pending, id)
	}
	k.s.mu.Unlock()
	for _, r := range list {
		r.answer(wire.State{}, why)
	}
}

// declare asks for a transaction; answer gets its ID.
func (k *coordinator) declare(
	ctx context.Context, meter *driver.Meter, more bool, answer func(id []byte, err error),
) error {
	return k.ask(ctx, meter, new(wire.Declare).AppendMessage(nil), &request{func(st wire.State, err error) {
		switch {
		case err != nil:
			answer(nil, err)
		case st.Kind == wire.DescDeclared:
			answer(slices.Clone(st.TxnID), nil)
		case st.Kind == wire.DescRejected && st.Error != nil:
			answer(nil, k.s.c.remote("the broker refused a transaction", driver.ClassOther, "", st.Error))
		default:
			answer(nil, driver.Errorf(driver.ClassProtocol, "", lookAtBroker,
				"the broker did not begin a transaction when it was asked to"))
		}
	}}, more)
}

// discharge ends a transaction, by a rollback if fail; answer is told whether the broker did.
func (k *coordinator) discharge(
	ctx context.Context, meter *driver.Meter, id []byte, fail, more bool, answer func(error),
) error {
	d := wire.Discharge{TxnID: id, Fail: fail}
	return k.ask(ctx, meter, d.AppendMessage(nil), &request{func(st wire.State, err error) {
		switch {
		case err != nil:
			answer(err)
		case st.Kind == wire.DescAccepted:
			answer(nil)
		case st.Kind == wire.DescRejected && st.Error != nil:
			answer(refusal{k.s.c.remote("the broker refused to commit", driver.ClassOther, "", st.Error)})
		default:
			answer(refusal{driver.Errorf(driver.ClassOther, "", lookAtBroker,
				"the broker refused to commit without saying why")})
		}
	}}, more)
}

// refusal is the broker's word that a transaction was rolled back: its messages are not there.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// transactions are those of a producer, one being filled after the other.
type transactions struct {
	k       *coordinator
	p       *producer
	size    int
	commits driver.Commits
	wait    *driver.Meter

	// Guarded by session.mu.
	filling *transaction // nil: none is declared yet
	asked   bool         // the next one is being declared
	ready   *transaction // it is declared
	failed  error        // it could not be

	told chan struct{}
}

// transaction is one of a producer. Its messages stay unsettled until it ends, but for messages that the broker refuses
// before.
type transaction struct {
	id, state   []byte
	count       int    // messages that were sent in it
	first, last uint32 // delivery IDs of its messages
}

func newTransactions(p *producer, spec *driver.ProducerSpec) *transactions {
	t := &transactions{
		p: p, size: spec.CommitInterval, commits: spec.Commits, wait: p.leave, told: make(chan struct{}, 1),
	}
	if t.commits == nil {
		t.commits = func(time.Duration, bool) {}
	}
	return t
}

// begin attaches to the coordinator and asks for the first transaction.
func (t *transactions) begin(ctx context.Context, name string) error {
	k, err := newCoordinator(ctx, t.p.session, name, t.p.unsettled.skipOne)
	if err != nil {
		return err
	}
	t.p.session.mu.Lock()
	t.k = k
	t.p.session.mu.Unlock()
	return t.prepare(ctx, false)
}

// prepare asks for the next transaction, unless that was done.
func (t *transactions) prepare(ctx context.Context, more bool) error {
	s := t.p.session
	s.mu.Lock()
	needed := !t.asked && t.ready == nil
	t.asked = t.asked || needed
	s.mu.Unlock()
	if !needed {
		return nil
	}
	err := t.k.declare(ctx, t.wait, more, func(id []byte, err error) {
		state := wire.State{Transactional: true, TxnID: id}
		s.mu.Lock()
		t.asked = false
		if err != nil {
			t.failed = err
		} else {
			t.ready = &transaction{id: id, state: state.Append(nil)}
		}
		s.mu.Unlock()
		t.tell()
	})
	if err != nil {
		s.mu.Lock()
		t.asked = false
		s.mu.Unlock()
	}
	return err
}

func (t *transactions) tell() {
	select {
	case t.told <- struct{}{}:
	default:
	}
}

// enter returns the delivery state of the next message: that it belongs to the transaction that is being filled. If
// there is none yet, it waits for the broker to begin one.
func (t *transactions) enter(ctx context.Context) ([]byte, error) {
	s := t.p.session
	for {
		s.mu.Lock()
		began := t.filling == nil && t.ready != nil
		if began {
			t.filling, t.ready = t.ready, nil
		}
		current, err := t.filling, t.failed
		s.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case began && t.k.multi:
			if err := t.prepare(ctx, true); err != nil {
				return nil, err
			}
			return current.state, nil
		case current != nil:
			return current.state, nil
		}
		if err := t.prepare(ctx, false); err != nil {
			return nil, err
		}
		if err := t.await(ctx); err != nil {
			return nil, err
		}
	}
}

func (t *transactions) await(ctx context.Context) error {
	t.p.lease.Conn.out.Flush()
	t.wait.Begin()
	defer t.wait.End()
	select {
	case <-t.told:
		return nil
	case <-t.p.lease.Conn.Over():
		return t.p.lease.Conn.Why()
	case <-ctx.Done():
		return fmt.Errorf("the broker has not begun the transaction: %w", ctx.Err())
	}
}

// add notes a message that was sent in the transaction that is being filled. The session's lock is held.
func (t *transactions) add(id uint32) {
	tx := t.filling
	if tx.count == 0 {
		tx.first = id
	}
	tx.last = id
	tx.count++
}

// commitFull ends the transaction that is being filled, if it is full. If that cannot be asked for before ctx ends,
// Flush or Close will.
func (t *transactions) commitFull(ctx context.Context, more bool) {
	s := t.p.session
	s.mu.Lock()
	full := t.filling != nil && t.filling.count >= t.size
	s.mu.Unlock()
	if full {
		_ = t.commit(ctx, more)
	} else if !more {
		t.p.lease.Conn.out.Flush()
	}
}

// flush ends the transaction that is being filled, if there is anything in it.
func (t *transactions) flush(ctx context.Context) error {
	s := t.p.session
	s.mu.Lock()
	begun := t.filling != nil && t.filling.count > 0
	s.mu.Unlock()
	if !begun {
		return nil
	}
	return t.commit(ctx, false)
}

func (t *transactions) commit(ctx context.Context, more bool) error {
	s := t.p.session
	s.mu.Lock()
	tx := t.filling
	s.mu.Unlock()
	began := time.Now()
	err := t.k.discharge(ctx, t.wait, tx.id, false, true, func(err error) {
		t.commits(time.Since(began), err == nil)
		t.ended(tx, err)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	if t.filling == tx {
		t.filling = nil
	}
	s.mu.Unlock()
	err = t.prepare(ctx, true)
	if !more {
		t.p.lease.Conn.out.Flush()
	}
	return err
}

// ended ends the messages of a transaction.
func (t *transactions) ended(tx *transaction, err error) {
	o := driver.Outcome{}
	var refused refusal
	switch {
	case errors.As(err, &refused):
		e := t.p.lease.Conn.explain(t.p.op, refused.error)
		o = driver.Outcome{State: driver.Rejected, Class: driver.ClassOf(e), Err: e}
	case err != nil:
		e := t.p.lease.Conn.explain(t.p.op, err)
		o = driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(e), Err: e}
	}
	t.p.end(tx.first, tx.last, o)
}
