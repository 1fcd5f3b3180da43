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

// pending is a send, or a transaction, that has not ended.
type pending struct {
	due     int64
	slot    driver.Slot
	outcome driver.Outcome
	tx      *transaction // its messages end with it; nil for a single send
}

// producer sends. Sends that do not end at once wait in a FIFO for its acker, a goroutine that runs from the first such
// send to Close.
type producer struct {
	broker     *Broker
	conn       *conn
	dest       *destination
	op         string
	done       driver.Completions
	variants   []driver.Variant
	origin     driver.ID
	ttl        time.Duration
	delay      time.Duration
	persistent bool
	space      chan struct{}
	tally      tally
	room       *driver.Meter // waits for room in a full queue
	socket     *driver.Meter // waits on a frozen line
	size       int           // messages per transaction; 0 for none
	commits    driver.Commits

	work    chan struct{} // something was added
	drained chan struct{} // nothing is left
	stop    chan struct{} // Close ends the acker
	gone    chan struct{} // the acker has ended

	mu       sync.Mutex
	tx       *transaction // the open one
	fifo     ring[pending]
	withheld []driver.Slot
	stuck    int  // how many of these are in flight on a frozen line
	acking   bool // the acker is running
	closed   bool
}

func (b *Broker) newProducer(c *conn, spec driver.ProducerSpec, done driver.Completions) *producer {
	p := &producer{
		broker: b, conn: c, op: fmt.Sprintf("send to %s", spec.Destination), done: done,
		variants: spec.Variants, origin: spec.Origin, ttl: spec.TTL, delay: spec.Delay, persistent: spec.Persistent,
		room: driver.NewMeter(), socket: driver.NewMeter(), size: spec.CommitInterval, commits: spec.Commits,
		space: make(chan struct{}, 1), work: make(chan struct{}, 1), drained: make(chan struct{}, 1),
		stop: make(chan struct{}), gone: make(chan struct{}),
	}
	if p.commits == nil {
		p.commits = func(time.Duration, bool) {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.dest = b.destination(spec.Destination)
	b.tallies[&p.tally] = struct{}{}
	b.producers++
	return p
}

// Send stores m, or adds it to the transaction. It blocks only for room in a full queue, and on a frozen line.
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if p.conn.state.Load() != connLive {
		return p.sendNowhere(ctx, m.Slot)
	}
	v := &p.variants[m.Variant]
	it := item{
		body: v.Body, time: m.Time, id: m.ID, properties: v.Properties, group: v.Group, priority: defaultPriority,
		persistent: p.persistent, text: v.Text, ttl: p.ttl,
	}
	if it.id == (driver.ID{}) {
		it.id = p.origin
	}
	if v.Priority >= 0 {
		it.priority = uint8(min(v.Priority, numPriorities-1)) //nolint:gosec // 0 to 9
	}
	if p.ttl > 0 {
		it.expires = p.broker.now() + int64(p.ttl)
	}
	if p.size > 0 {
		p.sendInTransaction(m.Slot, &it)
		return nil
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

// OnEnd implements [driver.Watched].
func (p *producer) OnEnd(ended func(error)) {
	p.broker.mu.Lock()
	defer p.broker.mu.Unlock()
	if p.conn.dead() {
		ended(p.conn.lostError(p.op))
		return
	}
	p.conn.ends = append(p.conn.ends, func() { ended(p.conn.lostError(p.op)) })
}

// sendNowhere is Send on a frozen or lost connection.
func (p *producer) sendNowhere(ctx context.Context, slot driver.Slot) error {
	if p.conn.dead() {
		return p.conn.lostError(p.op)
	}
	p.mu.Lock()
	if p.stuck < pipeSize {
		p.stuck++
		p.tally.add(arrived)
		p.withheld = append(p.withheld, slot)
		p.startAcker()
		p.mu.Unlock()
		signal(p.work)
		return nil
	}
	p.mu.Unlock()
	p.socket.Begin()
	defer p.socket.End()
	return p.conn.passes(ctx, p.op)
}

func (p *producer) arrive() {
	p.tally.add(arrived)
	if p.persistent {
		p.tally.add(persistent)
	}
}

// store puts the message into the queues, followed by the held message that it overtakes.
func (p *producer) store(it *item) {
	p.tally.add(stored)
	if p.delay > 0 {
		later := *it
		time.AfterFunc(p.delay, func() {
			p.dest.mu.Lock()
			defer p.dest.mu.Unlock()
			p.dest.put(&later)
		})
		return
	}
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
	p.place(it, &v, f)
	d.mu.Unlock()
	p.arrive()
	p.settle(slot, &v)
	if v.disconnect {
		p.broker.Disconnect()
	}
	return nil
}

// place applies the verdict to a message. The lock of the destination is held.
func (p *producer) place(it *item, v *verdict, f *faults) {
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
	case v.reorder && p.dest.held == nil:
		p.tally.add(stored)
		p.dest.hold(it, f.ReorderWait)
	default:
		p.store(it)
		if v.duplicate {
			p.tally.add(duplicated)
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
		err = driver.Errorf(driver.ClassTimeout, p.op, "receive from the queue or raise -o limit", "wait for room: %w",
			ctx.Err())
	}
	p.dest.mu.Lock()
	p.dest.waiting = slices.DeleteFunc(p.dest.waiting, func(w *producer) bool { return w == p })
	p.dest.mu.Unlock()
	return err
}

// Host implements [driver.Located].
func (p *producer) Host() string { return p.conn.host }

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	return driver.Waits{Credit: p.room.Wait(), Socket: p.socket.Wait()}
}

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
	p.startAcker()
	p.mu.Unlock()
	signal(p.work)
}

// Close ends the open transaction and waits for acknowledgements in flight; withheld ones, which never come, end as
// Unknown at once.
func (p *producer) Close(ctx context.Context) error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	if !first {
		return nil
	}
	if ctx.Err() == nil {
		_ = p.Flush(ctx) // messages without a commit end as Unknown
	}
	p.dest.flushHeld(nil)
	p.mu.Lock()
	acking := p.acking
	p.mu.Unlock()
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

// inFlight returns the number of messages that can still get an answer.
func (p *producer) inFlight() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fifo.len() + p.stuck
}

var (
	_ driver.Flusher = (*producer)(nil)
	_ driver.Waiter  = (*producer)(nil)
	_ driver.Located = (*producer)(nil)
)
