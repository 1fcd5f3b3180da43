package mem

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	defaultPriority = 4 // of JMS and AMQP

	// pipeSize is how many messages of a producer can be in flight on a frozen [Line] before Send blocks.
	pipeSize = 50
)

// answer is the end of a send, or of a transaction.
type answer struct {
	due     time.Duration
	slots   []driver.Slot
	outcome driver.Outcome
	began   time.Time // of the commit; zero for a single send
}

// producer sends. Answers that are not due at once wait in a list; a timer gives them when they are due.
type producer struct {
	*conn
	lease   *transport.Lease[*conn]
	dest    *destination
	spec    driver.ProducerSpec
	op      string
	done    driver.Completions
	room    *driver.Meter // waits for room in a full queue
	socket  *driver.Meter // waits on a frozen line
	ended   func(error)   // see OnEnd
	closing sync.Once

	timer    *time.Timer // calls settle
	answers  fifo[answer]
	withheld []driver.Slot // without an answer until the end
	items    []Message     // of the open transaction, like slots
	slots    []driver.Slot
}

// Producer opens a producer.
func (d *memDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	lease, err := d.Acquire(ctx, spec.Connection)
	if err != nil {
		return nil, fmt.Errorf("open producer on %s: %w", spec.Destination, err)
	}
	p := &producer{
		conn: lease.Conn, lease: lease, spec: spec, op: fmt.Sprintf("send to %s", spec.Destination), done: done,
		room: driver.NewMeter(), socket: driver.NewMeter(),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(time.Hour, p.locked(p.settle))
	p.timer.Stop()
	p.dest = p.destination(spec.Destination)
	p.producers[p] = struct{}{}
	return p, nil
}

// Send stores m, or adds it to the transaction. It blocks only for room in a full queue, and on a frozen line.
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	p.mu.Lock()
	accepted, err := p.send(ctx, m)
	p.mu.Unlock()
	if accepted {
		p.done.Done(m.Slot, driver.Outcome{})
	}
	return err
}

// send is Send. It returns true for a message that is accepted at once.
func (p *producer) send(ctx context.Context, m *driver.Message) (accepted bool, err error) {
	switch {
	case p.frozen && !p.lost && len(p.withheld) < pipeSize:
		p.stats.Arrived++
		p.withheld = append(p.withheld, m.Slot)
		return false, nil
	case p.frozen || p.lost:
		p.socket.Begin()
		defer p.socket.End()
		return false, p.passes(ctx, p.op)
	case p.dest.full():
		p.room.Begin()
		err = p.await(ctx, p.op, "receive from it or raise -o limit", func() bool { return !p.dest.full() })
		if p.room.End(); err != nil {
			return false, err
		}
	}
	p.stats.Arrived++
	it := p.message(m)
	switch {
	case p.spec.CommitInterval > 0:
		p.items, p.slots = append(p.items, it), append(p.slots, m.Slot)
		if len(p.slots) >= p.spec.CommitInterval {
			p.commit()
		}
	case p.told:
		p.sendFaulty(m.Slot, &it)
	default:
		p.store(&it)
		p.stats.Accepted++
		return true, nil
	}
	return false, nil
}

// message returns a message as it is stored.
func (p *producer) message(m *driver.Message) Message {
	it := Message{
		Time: m.Time, ID: cmp.Or(m.ID, p.spec.Origin), Variant: p.spec.Variants[m.Variant],
		Persistent: p.spec.Persistent, TTL: p.spec.TTL,
	}
	if it.Priority < 0 {
		it.Priority = defaultPriority
	}
	if it.TTL > 0 {
		it.expires = p.now() + it.TTL
	}
	return it
}

// store puts the message into the queues, followed by the held message that it overtakes.
func (p *producer) store(it *Message) {
	p.stats.Stored++
	if p.spec.Delay > 0 {
		later := *it
		time.AfterFunc(p.spec.Delay, p.locked(func() { p.dest.put(&later) }))
		return
	}
	p.dest.put(it)
	if p.dest.release() {
		p.stats.Reordered++
	}
}

// sendFaulty lets the faults decide on a message.
func (p *producer) sendFaulty(slot driver.Slot, it *Message) {
	p.arrive()
	outcome, refused := p.refuse()
	if !refused {
		p.storeFaulty(it)
	}
	if !refused && every(p.options.Withhold, p.arrived) {
		p.stats.Withheld++
		p.withheld = append(p.withheld, slot)
		p.answer()
	} else {
		p.answer(answer{due: p.now() + p.options.Latency, slots: []driver.Slot{slot}, outcome: outcome})
	}
}

// answer ends sends, at once or when that is due; then connections may break.
func (p *producer) answer(answers ...answer) {
	for _, a := range answers {
		p.answers.insert(len(p.answers.list()), a)
	}
	if p.settle(); p.breaks {
		p.breaks = false
		p.disconnect(nil)
	}
}

// settle ends the sends that are due, and all of them when the connection is lost.
func (p *producer) settle() {
	if p.lost {
		if p.ended != nil {
			p.ended(p.passes(context.Background(), p.op))
			p.ended = nil
		}
		p.abandon()
	}
	for len(p.answers.list()) > 0 && !p.frozen {
		if wait := p.until(p.answers.list()[0].due); wait > 0 {
			p.timer.Reset(wait)
			return
		}
		p.end(p.answers.remove(0))
	}
	p.changed.Broadcast()
}

// end reports the end of sends, and of their commit.
func (p *producer) end(a answer) {
	p.stats.ended(a.outcome.State, len(a.slots))
	p.done.DoneAll(a.slots, a.outcome)
	if !a.began.IsZero() {
		p.committed(p.spec.Commits, a.began, a.outcome.State == driver.Accepted)
	}
}

// abandon ends all messages without an answer as Unknown.
func (p *producer) abandon() {
	o := driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout}
	if p.lost {
		o.Class = driver.ClassConnectionLost
	}
	o.Err = driver.Errorf(o.Class, p.op, "", "the broker did not answer before the end")
	for len(p.answers.list()) > 0 {
		a := p.answers.remove(0)
		a.outcome = o
		p.end(a)
	}
	if left := slices.Concat(p.withheld, p.slots); len(left) > 0 {
		p.end(answer{slots: left, outcome: o})
	}
	p.withheld, p.slots, p.items = nil, nil, nil
}

// Flush implements [driver.Flusher]: it commits a transaction that is not full.
func (p *producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.slots) == 0 {
		return nil
	}
	if err := p.passes(ctx, p.op); err != nil {
		return err
	}
	p.commit()
	return nil
}

// commit stores the messages of the open transaction, all or none. It does not wait for room.
func (p *producer) commit() {
	a, items := answer{slots: p.slots, began: time.Now()}, p.items
	p.slots, p.items = nil, nil
	var refused bool
	if refused, a.due = p.refuseCommit(); refused {
		a.outcome, items = told(driver.Rejected, "told to refuse the commit"), nil
	}
	for i := range items {
		p.arrive()
		p.storeFaulty(&items[i])
	}
	p.answer(a)
}

// OnEnd implements [driver.Watched].
func (p *producer) OnEnd(ended func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = ended
	p.settle()
}

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	return driver.Waits{Credit: p.room.Wait(), Socket: p.socket.Wait()}
}

// Close ends the open transaction and waits for acknowledgements in flight; withheld ones, which never come, end as
// Unknown at once.
func (p *producer) Close(ctx context.Context) error {
	p.closing.Do(func() {
		if ctx.Err() == nil {
			_ = p.Flush(ctx) // messages without a commit end as Unknown
		}
		p.locked(func() {
			p.dest.release()
			for ctx.Err() == nil && (len(p.answers.list()) > 0 || p.frozen && len(p.withheld) > 0) {
				p.wait(ctx, 0)
			}
			p.timer.Stop()
			p.abandon()
			delete(p.producers, p)
		})()
		p.lease.Release(ctx)
	})
	return nil
}

var _ interface {
	driver.Flusher
	driver.Waiter
	driver.Watched
	driver.Located
} = (*producer)(nil)
