package load

import (
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

var _ driver.Completions = (*Producer)(nil)

// Done implements [driver.Completions].
func (p *Producer) Done(slot driver.Slot, o driver.Outcome) {
	now := p.clock.Now()
	place := p.slots.endMessage(slot)
	if place == nil {
		p.stray(o)
		return
	}
	p.ended(slot, place, o, now, 0)
}

// InDoubt ends messages that an outage has left in doubt, as DoneAll does, and returns the number of messages that had
// not ended yet. outage is the number of the outage, from 1 on, for [ProducerConfig].Resent.
func (p *Producer) InDoubt(outage int, list []driver.Slot, o driver.Outcome) (n int) {
	now := p.clock.Now()
	for _, slot := range list {
		if place := p.slots.endMessage(slot); place != nil {
			p.ended(slot, place, o, now, outage)
			n++
		}
	}
	return n
}

// ended counts the end of a message, unless it will be sent again, and frees its place.
func (p *Producer) ended(slot driver.Slot, place *place, o driver.Outcome, now time.Duration, outage int) {
	if !p.holdDoubt(slot, place, &o, outage) {
		p.recordEnd(place, o, now)
		p.rec.Done(p.endOf(place, outage), o, now)
	}
	if p.cfg.Requests == nil || p.cfg.Requests.ended(slot.Index(), &o) {
		p.release(slot)
	}
}

// DoneAll implements [driver.Completions]. It reads the clock once, and takes one lock for many messages.
func (p *Producer) DoneAll(list []driver.Slot, o driver.Outcome) {
	if p.kept != nil && o.State != driver.Accepted { // each may end differently
		for _, slot := range list {
			p.Done(slot, o)
		}
		return
	}
	now := p.clock.Now()
	for len(list) > 0 {
		n := min(len(list), doneChunk)
		p.doneChunk(list[:n], o, now)
		list = list[n:]
	}
}

// doneChunk is the maximum number of messages that end under one lock.
const doneChunk = 64

func (p *Producer) doneChunk(list []driver.Slot, o driver.Outcome, now time.Duration) {
	var ends [doneChunk]stats.End
	var ended [doneChunk]driver.Slot
	n, free := 0, 0
	for _, slot := range list {
		place := p.slots.endMessage(slot)
		if place == nil {
			p.stray(o)
			continue
		}
		p.recordEnd(place, o, now)
		ends[n] = p.endOf(place, 0)
		n++
		if p.cfg.Requests == nil || p.cfg.Requests.ended(slot.Index(), &o) {
			ended[free] = slot
			free++
		}
	}
	p.rec.DoneAll(ends[:n], o, now)
	p.release(ended[:free]...)
}

// stray counts an answer to no message in flight. Unknown is not an answer.
func (p *Producer) stray(o driver.Outcome) {
	if o.State != driver.Unknown {
		p.rec.Stray()
	}
}

// endOf returns the recorder's data on a message that has ended, in an outage if its number is above 0.
func (p *Producer) endOf(place *place, outage int) stats.End {
	return stats.End{
		Due: p.cfg.Phases.PhaseAt(place.intended), Size: place.size, Intended: place.intended,
		Actual: place.actual, Outage: outage > 0,
	}
}

// recordEnd records a message in the ledger, if it keeps such an end, and any in the trace.
func (p *Producer) recordEnd(place *place, o driver.Outcome, now time.Duration) {
	if p.cfg.Trace != nil {
		p.traceEnd(place, &o, now)
	}
	if p.cfg.Ledger != nil && (o.State != driver.Accepted || o.Withheld || p.cfg.Ledger.Windowed()) {
		p.cfg.Ledger.Done(place.number, o)
	}
}

// release gives back the places of messages that have ended. If Run's goroutine waits for one, it sends the next
// message (relay.go), or that goroutine is woken.
func (p *Producer) release(ended ...driver.Slot) {
	if p.slots.giveBack(ended) && !p.relayNext() {
		p.slots.wakeUp()
	}
}

// ExpireEvery returns the time between two calls of [Producer.Expire]: a message ends at most two of them after its
// time, so at most a tenth of that, and 100 ms, too late.
func ExpireEvery(limit time.Duration) time.Duration {
	return max(min(limit/20, 50*time.Millisecond), time.Millisecond)
}

// Expire ends messages as unknown that the driver has had for longer than limit, in looks that are ExpireEvery(limit)
// apart, or less. A message counts from the first look that finds it at the driver. Time in which nobody looked counts
// as one of two looks at most: the answers that came meanwhile have not been read either. One goroutine calls it while
// Run sends. It also ends the wait for replies that did not come in time. A limit of 0 ends no messages.
func (p *Producer) Expire(limit time.Duration) {
	now := p.clock.Now()
	if p.cfg.Requests != nil {
		p.expireReplies(now)
	}
	if limit == 0 {
		return
	}
	if p.looked > 0 {
		p.watched += min(now-p.looked, max(2*ExpireEvery(limit), stats.PauseLimit/4))
	}
	p.looked = now
	used := p.slots.used()
	if more := used - len(p.sights); more > 0 {
		p.sights = slices.Grow(p.sights, more)[:used]
	}
	var expired driver.Outcome
	for i := range p.sights[:used] {
		seen := &p.sights[i]
		generation := p.slots.places[i].generation.Load()
		slot := driver.NewSlot(uint32(i), generation) //nolint:gosec // below MaxPending
		switch {
		case generation%2 == 0: // nothing is in flight
		case generation != seen.generation:
			if p.sending.Load() != uint64(slot) { // else it waits for the broker's leave, and has not left
				seen.generation, seen.since = generation, p.watched
			}
		case p.watched-seen.since >= limit:
			if expired.Err == nil {
				expired = timedOut(limit)
			}
			if place := p.slots.endMessage(slot); place != nil { // else it has ended meanwhile
				p.expired.Add(1)
				p.ended(slot, place, expired, now, 0)
			}
		}
	}
}

// Unanswered reports whether messages that Expire ended have had no answer since.
func (p *Producer) Unanswered() bool { return p.expired.Load() > p.rec.Strays() }

func timedOut(limit time.Duration) driver.Outcome {
	return driver.Outcome{
		State: driver.Unknown, Class: driver.ClassTimeout,
		Err: driver.Errorf(driver.ClassTimeout, "send",
			"is the broker overloaded or paused, or the connection half open? A larger --send-timeout waits longer; "+
				"-o idle-timeout (AMQP) or -o heart-beat (STOMP) ends a silent connection",
			"no answer within %s", limit),
	}
}
