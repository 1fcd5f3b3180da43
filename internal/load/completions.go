package load

import (
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
		p.recordEnd(place, o)
		p.rec.Done(p.endOf(place, outage), o, now)
	}
	p.release(slot)
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
	n := 0
	for _, slot := range list {
		place := p.slots.endMessage(slot)
		if place == nil {
			p.stray(o)
			continue
		}
		p.recordEnd(place, o)
		ends[n] = p.endOf(place, 0)
		ended[n] = slot
		n++
	}
	p.rec.DoneAll(ends[:n], o, now)
	p.release(ended[:n]...)
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

// recordEnd records a message that was withheld or not accepted in the ledger.
func (p *Producer) recordEnd(place *place, o driver.Outcome) {
	if p.cfg.Ledger != nil && (o.State != driver.Accepted || o.Withheld) {
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
