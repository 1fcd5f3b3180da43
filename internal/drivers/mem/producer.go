package mem

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// pending is a send that has not ended.
type pending struct {
	due     int64
	slot    driver.Slot
	outcome driver.Outcome
}

// producer sends. Sends that do not end at once wait in a FIFO for its acker, a goroutine that exists from the first
// such send to Close.
type producer struct {
	broker     *Broker
	conn       *conn
	dest       *destination
	op         string
	done       driver.Completions
	variants   []driver.Variant
	origin     driver.ID
	ttl        int64
	persistent bool
	space      chan struct{}
	tally      tally
	room       *driver.Meter // waits for room in a full queue

	work    chan struct{} // something was added
	drained chan struct{} // nothing is left
	stop    chan struct{} // Close ends the acker
	gone    chan struct{} // the acker has ended

	mu       sync.Mutex
	fifo     ring[pending]
	withheld []driver.Slot
	acking   bool // the acker exists
	closed   bool
}

func (b *Broker) newProducer(c *conn, spec driver.ProducerSpec, done driver.Completions) *producer {
	p := &producer{
		broker: b, conn: c, op: fmt.Sprintf("send to %s", spec.Destination), done: done,
		variants: spec.Variants, origin: spec.Origin, ttl: int64(spec.TTL), persistent: spec.Persistent,
		room: driver.NewMeter(), space: make(chan struct{}, 1), work: make(chan struct{}, 1), drained: make(chan struct{}, 1),
		stop: make(chan struct{}), gone: make(chan struct{}),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.dest = b.destination(spec.Destination)
	b.tallies[&p.tally] = struct{}{}
	b.producers++
	return p
}

// Send stores m. It blocks only for room in a full queue.
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if p.conn.dead.Load() {
		return p.conn.lostError(p.op)
	}
	v := &p.variants[m.Variant]
	it := item{body: v.Body, time: m.Time, id: m.ID, properties: v.Properties}
	if it.id == (driver.ID{}) {
		it.id = p.origin
	}
	if p.ttl > 0 {
		it.expires = p.broker.now() + p.ttl
	}
	if f := p.broker.faults.Load(); f != nil {
		return p.sendFaulty(ctx, m.Slot, &it, f)
	}
	p.dest.mu.Lock()
	p.store(&it)
	p.dest.mu.Unlock()
	p.arrive()
	p.end(m.Slot, driver.Outcome{})
	return nil
}

func (p *producer) arrive() {
	p.tally.add(arrived)
	if p.persistent {
		p.tally.add(persistent)
	}
}

// store puts it into the queues, and what waited to be overtaken behind it.
func (p *producer) store(it *item) {
	p.tally.add(stored)
	if !p.dest.put(it) {
		p.tally.add(unrouted)
	}
	if p.dest.held != nil && p.dest.release() {
		p.tally.add(reordered)
	}
}

// sendFaulty is Send with faults.
func (p *producer) sendFaulty(ctx context.Context, slot driver.Slot, it *item, f *faults) error {
	d := p.dest
	d.mu.Lock()
	full := !d.room(f.Limit)
	for full && f.Full == FullBlock {
		d.waiting = append(d.waiting, p)
		d.mu.Unlock()
		if err := p.waitForRoom(ctx, f); err != nil {
			return err
		}
		if f = p.broker.faults.Load(); f == nil {
			f = newFaults(DefaultOptions())
		}
		d.mu.Lock()
		full = !d.room(f.Limit)
	}
	v := f.judge(p.broker.now(), full)
	it.due = v.deliverAt
	if v.outcome.Withheld {
		p.tally.add(rolledBack)
	}
	if v.damage {
		it.body = flipped(it.body)
		p.tally.add(damaged)
	}
	if v.damageID && it.id != (driver.ID{}) {
		it.id.Number ^= 1 << 20
		p.tally.add(damagedIDs)
	}
	switch {
	case !v.store:
	case v.lose:
		p.tally.add(stored)
		p.tally.add(lost)
	case v.reorder && d.held == nil:
		p.tally.add(stored)
		d.hold(it, f.ReorderWait)
	default:
		p.store(it)
		if v.duplicate {
			p.tally.add(duplicated)
			it.redelivered = !f.DuplicateUnmarked
			d.put(it)
		}
	}
	d.mu.Unlock()
	p.arrive()
	p.settle(slot, &v)
	if v.disconnect {
		p.broker.Disconnect()
	}
	return nil
}

// flipped returns a copy of body with one bit changed, or a single byte if there is none to change.
func flipped(body []byte) []byte {
	if len(body) == 0 {
		return []byte{1}
	}
	body = bytes.Clone(body)
	body[len(body)/2] ^= 1 << 3
	return body
}

func (p *producer) waitForRoom(ctx context.Context, f *faults) error {
	p.room.Begin()
	defer p.room.End()
	var err error
	select {
	case <-p.space:
		return nil
	case <-f.replaced:
	case <-p.conn.lost:
		err = p.conn.lostError(p.op)
	case <-ctx.Done():
		err = driver.Errorf(driver.ClassTimeout, p.op, "receive from the queue or raise -o limit", "wait for room: %w", ctx.Err())
	}
	p.dest.mu.Lock()
	p.dest.waiting = slices.DeleteFunc(p.dest.waiting, func(w *producer) bool { return w == p })
	p.dest.mu.Unlock()
	return err
}

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits { return driver.Waits{Credit: p.room.Wait()} }

// settle ends the send now, later or never.
func (p *producer) settle(slot driver.Slot, v *verdict) {
	p.mu.Lock()
	switch {
	case v.withhold:
		p.tally.add(withheld)
		p.withheld = append(p.withheld, slot)
	case v.acknowledgeAt > 0 || p.fifo.len() > 0:
		p.fifo.push(&pending{due: v.acknowledgeAt, slot: slot, outcome: v.outcome})
	default:
		p.mu.Unlock()
		p.end(slot, v.outcome)
		return
	}
	if !p.acking {
		p.acking = true
		go p.acknowledge()
	}
	p.mu.Unlock()
	signal(p.work)
}

func (p *producer) end(slot driver.Slot, o driver.Outcome) {
	p.tally.add(accepted + counter(o.State))
	p.done.Done(slot, o)
}

// acknowledge ends the sends of the FIFO when they are due, and all of them when the connection is lost.
func (p *producer) acknowledge() {
	defer close(p.gone)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	connLost := p.conn.lost
	for {
		if p.conn.dead.Load() {
			connLost = nil
			p.abandon()
		}
		next, wait := p.nextDue()
		if wait == 0 {
			p.end(next.slot, next.outcome)
			continue
		}
		var replaced chan struct{}
		if f := p.broker.faults.Load(); f != nil {
			replaced = f.replaced
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-p.work:
		case <-replaced:
		case <-connLost:
		case <-p.stop:
			return
		}
	}
}

// nextDue removes the head if it is due; otherwise it tells how long to wait.
func (p *producer) nextDue() (next pending, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fifo.len() == 0 {
		signal(p.drained)
		return next, time.Hour
	}
	now := p.broker.now()
	due := max(now, p.fifo.at(0).due)
	if f := p.broker.faults.Load(); f != nil {
		due = f.afterStall(due)
	}
	if due > now {
		return next, time.Duration(due - now)
	}
	return p.fifo.pop(), 0
}

// abandon ends all that is pending as Unknown.
func (p *producer) abandon() {
	p.mu.Lock()
	slots := p.withheld
	p.withheld = nil
	for p.fifo.len() > 0 {
		slots = append(slots, p.fifo.pop().slot)
	}
	p.mu.Unlock()
	for _, slot := range slots {
		o := driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout}
		if p.conn.dead.Load() {
			o.Class = driver.ClassConnectionLost
		}
		o.Err = driver.Errorf(o.Class, p.op, "", "the broker did not answer before the end")
		p.end(slot, o)
	}
}

// Close waits for acknowledgements on their way; withheld ones, which never come, end as Unknown at once.
func (p *producer) Close(ctx context.Context) error {
	p.mu.Lock()
	first, acking := !p.closed, p.acking
	p.closed = true
	p.mu.Unlock()
	if !first {
		return nil
	}
	p.dest.flushHeld(nil)
	for acking && p.inFlight() > 0 {
		select {
		case <-p.drained:
			continue
		case <-ctx.Done():
		}
		break
	}
	if acking {
		close(p.stop)
		<-p.gone
	}
	p.abandon()
	b := p.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retire(&p.tally)
	b.producers--
	return nil
}

func (p *producer) inFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fifo.len()
}
