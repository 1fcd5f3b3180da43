package load

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// doubts are the messages of a load that ended without an answer and will be sent again. Completions add them, and
// Run's goroutine removes them.
type doubts struct {
	count atomic.Int64 // of them

	mu   sync.Mutex
	open bool // Run sends them again
	list []doubt
	// queue has messages from list, in the order of their times
	queue []doubt
}

// doubt is a message that will be sent again, with the data of its first send.
type doubt struct {
	kept
	intended time.Duration
	number   int64 // with a ledger or templates
	size     uint32
	outcome  driver.Outcome // of the last attempt
}

// kept is the part of a message in flight that only sending it again needs.
type kept struct {
	first   time.Duration // when it was sent first
	stamp   int64         // the time that it carries
	made    int64         // the time in its body
	variant int
	group   string
	again   bool // it was sent before
	outage  int  // that left it in doubt; 0 for none
}

// prepareResend prepares the next Run to send messages without an answer again.
func (p *Producer) prepareResend() {
	if p.kept == nil {
		p.kept = make([]kept, len(p.slots.places))
	}
	p.doubts.mu.Lock()
	p.doubts.open = true
	p.doubts.mu.Unlock()
}

// endDoubts ends the messages that were waiting to be sent again, at the end of the load.
func (p *Producer) endDoubts() {
	d := &p.doubts
	d.mu.Lock()
	list := slices.Concat(d.queue, d.list)
	d.open, d.list, d.queue = false, nil, nil
	d.count.Store(0)
	d.mu.Unlock()
	now := p.clock.Now()
	for i := range list {
		p.endDoubt(&list[i], now)
	}
}

// endDoubt ends a message in doubt.
func (p *Producer) endDoubt(m *doubt, now time.Duration) {
	place := place{intended: m.intended, actual: m.first, number: m.number, size: m.size}
	p.recordEnd(&place, m.outcome, now)
	p.rec.Done(p.endOf(&place, m.outage), m.outcome, now)
}

// holdDoubt keeps a message that has ended to be sent again, if its end leaves it in doubt. Otherwise o is how it ends:
// one that was sent before may have arrived, whatever the broker says of it later.
func (p *Producer) holdDoubt(slot driver.Slot, place *place, o *driver.Outcome, outage int) bool {
	if p.kept == nil || o.State == driver.Accepted {
		return false
	}
	k := &p.kept[slot.Index()]
	switch {
	case o.State == driver.Unknown:
	case !k.again:
		return false
	default:
		if o.State != driver.Failed || o.Class != driver.ClassConnect {
			o.State = driver.Unknown
			return false
		}
		o.State, outage = driver.Unknown, k.outage // the message was not sent again
	}
	d := &p.doubts
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.open {
		return false
	}
	again := *k
	again.again, again.outage = true, outage
	d.list = append(d.list, doubt{again, place.intended, place.number, place.size, *o})
	d.count.Add(1)
	p.news.signal(nil)
	return true
}

// takeNext takes a message in doubt: from batches of those known, each in the order of due times.
func (d *doubts) takeNext() (m doubt, ok bool) {
	if d.count.Load() == 0 {
		return m, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		d.queue, d.list = d.list, nil
		slices.SortStableFunc(d.queue, func(a, b doubt) int { return cmp.Compare(a.intended, b.intended) })
	}
	if len(d.queue) == 0 {
		return m, false
	}
	m = d.queue[0]
	d.queue = d.queue[1:]
	d.count.Add(-1)
	return m, true
}

// putBack puts back a message taken by next.
func (d *doubts) putBack(m doubt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = append([]doubt{m}, d.queue...)
	d.count.Add(1)
}

// numbers returns the messages' numbers.
func (d *doubts) numbers() (list []int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range slices.Concat(d.queue, d.list) {
		list = append(list, m.number)
	}
	return list
}

// sendAgain sends a message in doubt in a free place, if there is one.
func (p *Producer) sendAgain(ctx context.Context, index uint32, now time.Duration) (found, stopped bool, err error) {
	if !p.load.Resend {
		return false, false, nil
	}
	m, found := p.doubts.takeNext()
	if !found {
		return false, false, nil
	}
	phase := p.cfg.Phases.PhaseAt(m.intended)
	place := &p.slots.places[index]
	place.intended, place.actual, place.number, place.size = m.intended, now, m.number, m.size
	p.kept[index] = m.kept
	msg := driver.Message{Variant: m.variant, Group: m.group, Time: m.stamp}
	msg.More = p.doubts.count.Load() > 0 && p.slots.hasRoom()
	if p.cfg.Templates != nil {
		p.fillFields(&msg, m.number, m.made)
	}
	switch {
	case p.cfg.Ledger != nil:
		msg.ID = p.cfg.Ledger.Again(m.number, m.variant)
	case p.cfg.Trace != nil:
		msg.ID = p.cfg.Trace.identify(m.number, &msg)
	}
	if err = p.handOver(ctx, &msg, index); err == nil {
		p.rec.Resent(phase)
		if p.cfg.Trace != nil {
			p.trace(place, result.TraceResent, place.actual)
		}
		if m.outage > 0 && p.cfg.Resent != nil {
			p.cfg.Resent(m.outage)
		}
		return true, false, nil
	}
	if p.cfg.Ledger != nil {
		p.cfg.Ledger.NotAgain(m.number)
	}
	if !p.takeBack(msg.Slot) {
		return true, false, err
	}
	p.doubts.putBack(m)
	if ctx.Err() != nil {
		return true, true, nil //nolint:nilerr // the load is over
	}
	return true, false, err
}

// finishResends sends the messages in doubt again until all messages have ended or ctx has.
func (p *Producer) finishResends(ctx context.Context) error {
	if !p.load.Resend {
		return nil
	}
	if err := p.flush(ctx); err != nil { // otherwise they would not end
		return err
	}
	for !stopped(ctx) {
		if p.doubts.count.Load() == 0 {
			if p.slots.idle() && p.doubts.count.Load() == 0 {
				return nil
			}
			p.rec.Wait(stats.WaitSlot, p.clock.Now())
			ended := p.slots.awaitEnd(ctx)
			p.rec.Waited(p.clock.Now())
			if !ended {
				return nil
			}
			continue
		}
		now := p.clock.Now()
		index, ok := p.slots.takePlace()
		if !ok {
			if index, now, ok = p.awaitPlace(ctx, now); !ok {
				return nil
			}
		}
		if found, stopped, err := p.sendAgain(ctx, index, now); stopped || err != nil {
			return err
		} else if !found {
			p.slots.putBack(index)
		} else if p.doubts.count.Load() == 0 {
			if err := p.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasDoubts reports whether messages wait to be sent again.
func (p *Producer) hasDoubts() bool { return p.load.Resend && p.doubts.count.Load() > 0 }
