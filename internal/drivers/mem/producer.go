package mem

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Priorities of JMS and AMQP.
const (
	highestPriority = 9
	defaultPriority = 4
)

// pending is a send, or a transaction, that has not ended.
type pending struct {
	due     int64
	slot    driver.Slot
	outcome driver.Outcome
	tx      *transaction // its messages end with it; nil for a single send
}

// producer sends. Sends that do not end at once wait in a list; a timer ends them when they are due.
type producer struct {
	*conn
	lease  *transport.Lease[*conn]
	dest   *destination
	spec   driver.ProducerSpec
	op     string
	done   driver.Completions
	room   *driver.Meter // waits for room in a full queue
	socket *driver.Meter // waits on a frozen line
	ended  func(error)   // see OnEnd; guarded by Broker.mu

	timer   *time.Timer   // calls settle
	drained chan struct{} // signalled by settle

	settling sync.Mutex // held while sends end, taken before mu
	closed   bool       // guarded by settling

	mu       sync.Mutex
	tx       *transaction // the open one
	pending  fifo[pending]
	withheld []driver.Slot // without an answer until the end
}

func newProducer(lease *transport.Lease[*conn], spec driver.ProducerSpec, done driver.Completions) *producer {
	b := lease.Conn.broker
	p := &producer{
		conn: lease.Conn, lease: lease, spec: spec, op: fmt.Sprintf("send to %s", spec.Destination), done: done,
		room: driver.NewMeter(), socket: driver.NewMeter(), drained: make(chan struct{}, 1),
	}
	p.timer = time.AfterFunc(never, p.settle)
	b.mu.Lock()
	defer b.mu.Unlock()
	p.dest = b.destination(spec.Destination)
	b.producers[p] = struct{}{}
	return p
}

// Send stores m, or adds it to the transaction. It blocks only for room in a full queue, and on a frozen line.
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if !p.live() {
		return p.sendNowhere(ctx, m.Slot)
	}
	v := &p.spec.Variants[m.Variant]
	it := item{Message: Message{
		Body: v.Body, Time: m.Time, ID: m.ID, Properties: v.Properties, Group: v.Group, Priority: defaultPriority,
		Persistent: p.spec.Persistent, Text: v.Text, TTL: p.spec.TTL,
	}}
	if it.ID == (driver.ID{}) {
		it.ID = p.spec.Origin
	}
	if v.Priority >= 0 {
		it.Priority = min(v.Priority, highestPriority)
	}
	if it.TTL > 0 {
		it.expires = p.broker.now() + int64(it.TTL)
	}
	if p.spec.CommitInterval > 0 {
		p.sendInTransaction(m.Slot, &it)
		return nil
	}
	if f := p.broker.faults.Load(); f != nil {
		return p.sendFaulty(ctx, m.Slot, &it, f)
	}
	p.dest.mu.Lock()
	p.store(&it)
	p.dest.mu.Unlock()
	count(&p.dest.stats.Arrived, 1)
	p.end(&pending{slot: m.Slot})
	return nil
}

// OnEnd implements [driver.Watched].
func (p *producer) OnEnd(ended func(error)) {
	p.broker.mu.Lock()
	defer p.broker.mu.Unlock()
	p.ended = ended
	p.noticeEnd()
}

// noticeEnd reports the end of the connection, once. Broker.mu is held.
func (p *producer) noticeEnd() {
	if !p.Dead() {
		return
	}
	p.schedule()
	if p.ended != nil {
		p.ended(p.lostError(p.op))
		p.ended = nil
	}
}

// sendNowhere is Send on a frozen or lost connection.
func (p *producer) sendNowhere(ctx context.Context, slot driver.Slot) error {
	p.mu.Lock()
	inPipe := !p.Dead() && len(p.withheld) < pipeSize
	if inPipe {
		p.withheld = append(p.withheld, slot)
		count(&p.dest.stats.Arrived, 1)
	}
	p.mu.Unlock()
	if inPipe {
		p.schedule()
		return nil
	}
	p.socket.Begin()
	defer p.socket.End()
	return p.passes(ctx, p.op)
}

// store puts the message into the queues, followed by the held message that it overtakes.
func (p *producer) store(it *item) {
	count(&p.dest.stats.Stored, 1)
	if p.spec.Delay > 0 {
		later := *it
		time.AfterFunc(p.spec.Delay, func() {
			p.dest.mu.Lock()
			defer p.dest.mu.Unlock()
			p.dest.put(&later)
		})
		return
	}
	p.dest.put(it)
	if p.dest.release() {
		count(&p.dest.stats.Reordered, 1)
	}
}

// sendFaulty is Send with faults.
func (p *producer) sendFaulty(ctx context.Context, slot driver.Slot, it *item, f *faults) error {
	d := p.dest
	d.mu.Lock()
	full := !d.room(1, f.Limit)
	for full && f.Full == FullBlock {
		if d.roomier == nil {
			d.roomier = make(chan struct{})
		}
		roomier := d.roomier
		d.mu.Unlock()
		if err := p.waitForRoom(ctx, roomier, f); err != nil {
			return err
		}
		if f = p.broker.faults.Load(); f == nil {
			f = newFaults(DefaultOptions())
		}
		d.mu.Lock()
		full = !d.room(1, f.Limit)
	}
	v := f.judge(p.broker.now(), full)
	p.place(it, &v, f)
	d.mu.Unlock()
	count(&d.stats.Arrived, 1)
	p.answer(slot, &v)
	if v.disconnect {
		p.broker.Disconnect()
	}
	return nil
}

// place applies the verdict to a message. The lock of the destination is held.
func (p *producer) place(it *item, v *verdict, f *faults) {
	s := &p.dest.stats
	it.due = v.deliverAt
	if v.outcome.Withheld {
		count(&s.RolledBack, 1)
	}
	if v.damage {
		it.Body = flipped(it.Body)
		count(&s.Damaged, 1)
	}
	if v.damageID && it.ID != (driver.ID{}) {
		it.ID.Number ^= 1 << 20
		count(&s.DamagedIDs, 1)
	}
	switch {
	case !v.store:
	case v.lose:
		count(&s.Stored, 1)
		count(&s.Lost, 1)
	case v.reorder && p.dest.held == nil:
		count(&s.Stored, 1)
		p.dest.hold(it)
	default:
		p.store(it)
		if v.duplicate {
			count(&s.Duplicated, 1)
			it.redelivered = !f.DuplicateUnmarked
			p.dest.put(it)
		}
	}
}

// flipped returns a copy of body with one bit changed, or a single byte if body is empty.
func flipped(body []byte) []byte {
	if len(body) == 0 {
		return []byte{1}
	}
	body = bytes.Clone(body)
	body[len(body)/2] ^= 1 << 3
	return body
}

func (p *producer) waitForRoom(ctx context.Context, roomier chan struct{}, f *faults) error {
	p.room.Begin()
	defer p.room.End()
	select {
	case <-roomier:
	case <-f.replaced:
	case <-p.lost:
		return p.lostError(p.op)
	case <-ctx.Done():
		return driver.Errorf(driver.ClassTimeout, p.op, "receive from the queue or raise -o limit", "wait for room: %w",
			ctx.Err())
	}
	return nil
}

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	return driver.Waits{Credit: p.room.Wait(), Socket: p.socket.Wait()}
}

// answer ends the send now, later or never.
func (p *producer) answer(slot driver.Slot, v *verdict) {
	next := pending{due: v.acknowledgeAt, slot: slot, outcome: v.outcome}
	p.mu.Lock()
	switch {
	case v.withhold:
		count(&p.dest.stats.Withheld, 1)
		p.withheld = append(p.withheld, slot)
	case next.due > 0 || p.pending.len() > 0:
		p.pending.insert(p.pending.len(), next)
	default:
		p.mu.Unlock()
		p.end(&next)
		return
	}
	p.mu.Unlock()
	p.schedule()
}

// never is how long a timer waits for nothing.
const never = time.Hour

// schedule sets the timer for the oldest send that can end.
func (p *producer) schedule() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Reset(p.wait())
}

// wait returns how long the oldest send waits for its answer. p.mu is held.
func (p *producer) wait() time.Duration {
	switch {
	case p.Dead():
		return 0
	case p.pending.len() == 0 || !p.live():
		return never
	}
	wait, _ := p.broker.wait(p.pending.list()[0].due)
	return wait
}

// settle ends the sends that are due, and all of them when the connection is lost.
func (p *producer) settle() {
	p.settling.Lock()
	defer p.settling.Unlock()
	for !p.closed {
		p.mu.Lock()
		if p.Dead() {
			p.mu.Unlock()
			p.abandon()
			break
		}
		wait := p.wait()
		if wait > 0 {
			p.timer.Reset(wait)
			p.mu.Unlock()
			break
		}
		next := p.pending.pop()
		p.mu.Unlock()
		p.end(&next)
	}
	signal(p.drained)
}

// end reports the end of a send, or of the messages of a transaction.
func (p *producer) end(next *pending) {
	if next.tx != nil {
		p.endTransaction(next)
		return
	}
	p.dest.stats.ended(next.outcome.State, 1)
	p.done.Done(next.slot, next.outcome)
}

// abandon ends all pending messages as Unknown.
func (p *producer) abandon() {
	p.mu.Lock()
	ends := slices.Clone(p.pending.list())
	p.pending.keep(0)
	for _, slot := range p.withheld {
		ends = append(ends, pending{slot: slot})
	}
	p.withheld = nil
	if p.tx != nil {
		ends = append(ends, pending{tx: p.tx})
		p.tx = nil
	}
	p.mu.Unlock()
	o := driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout}
	if p.Dead() {
		o.Class = driver.ClassConnectionLost
	}
	o.Err = driver.Errorf(o.Class, p.op, "", "the broker did not answer before the end")
	for i := range ends {
		ends[i].outcome = o
		p.end(&ends[i])
	}
}

// Close ends the open transaction and waits for acknowledgements in flight; withheld ones, which never come, end as
// Unknown at once.
func (p *producer) Close(ctx context.Context) error {
	if ctx.Err() == nil {
		_ = p.Flush(ctx) // messages without a commit end as Unknown
	}
	p.dest.flushHeld(nil)
	for p.inFlight() && ctx.Err() == nil {
		select {
		case <-p.drained:
		case <-ctx.Done():
		}
	}
	p.settling.Lock()
	defer p.settling.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.timer.Stop()
	p.abandon()
	p.broker.mu.Lock()
	delete(p.broker.producers, p)
	p.broker.mu.Unlock()
	p.lease.Release(ctx)
	return nil
}

// inFlight reports whether messages can still get an answer.
func (p *producer) inFlight() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending.len() > 0 || !p.live() && len(p.withheld) > 0
}

var (
	_ driver.Flusher = (*producer)(nil)
	_ driver.Waiter  = (*producer)(nil)
	_ driver.Located = (*producer)(nil)
)
