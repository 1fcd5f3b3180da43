package load

import (
	"context"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// prepare writes a message and its place, and counts it as about to be handed over.
func (p *Producer) prepare(msg *driver.Message, index uint32, intended, actual time.Duration) (phase stats.Phase) {
	phase = p.cfg.Phases.PhaseAt(intended)
	place := &p.slots.places[index]
	place.intended, place.actual = intended, actual
	if msg.Variant < len(p.cfg.Sizes) {
		place.size = p.cfg.Sizes[msg.Variant]
	}
	msg.Time = p.stampOf(phase, actual)
	if p.kept != nil {
		p.kept[index] = kept{first: actual, stamp: msg.Time, variant: msg.Variant}
	}
	if p.cfg.Ledger != nil {
		msg.ID = p.cfg.Ledger.Next(msg.Variant)
		place.number = msg.ID.Number
	}
	p.last = actual
	p.rec.Begun(phase)
	return phase
}

// handOver gives a message to the driver, after prepare.
func (p *Producer) handOver(ctx context.Context, msg *driver.Message, index uint32) error {
	p.markInFlight(msg, index)
	err := p.producer.Send(ctx, msg)
	if err == nil {
		p.markHanded()
	}
	return err
}

// markInFlight marks a message as in flight before the driver gets it.
func (p *Producer) markInFlight(msg *driver.Message, index uint32) {
	if p.load.Timed {
		p.sending.Store(uint64(p.slots.nextSlot(index)))
	}
	msg.Slot = p.slots.beginMessage(index)
}

// markHanded notes that the driver has taken the message.
func (p *Producer) markHanded() {
	if p.load.Timed {
		p.sending.Store(0)
	}
}

// takeBack frees the place of a message that the driver has not taken. It returns false if the driver broke its
// contract, and has reported the message as well.
func (p *Producer) takeBack(slot driver.Slot) bool {
	if p.slots.endMessage(slot) == nil {
		p.rec.Stray()
		return false
	}
	p.slots.giveBack([]driver.Slot{slot})
	return true
}

// Restamp restarts the time of a message that has waited in Send for a connection. Send calls it. A message that is
// sent again keeps the time that it carries.
func (p *Producer) Restamp(msg *driver.Message) {
	index, now := msg.Slot.Index(), p.clock.Now()
	p.slots.places[index].actual, p.last = now, now
	if p.kept != nil && p.kept[index].again {
		return
	}
	p.stamp = max(p.clock.Epoch(now), p.stamp)
	msg.Time = p.stamp
	if p.kept != nil {
		p.kept[index].first, p.kept[index].stamp = now, msg.Time
	}
}

// stampOf returns the time that a message carries, in microseconds since the Unix epoch. The first one after the
// warm-up carries a later one than those before it, so that consumers can tell them apart.
func (p *Producer) stampOf(phase stats.Phase, actual time.Duration) int64 {
	stamp := max(p.clock.Epoch(actual), p.stamp)
	if phase == stats.Measure && !p.measured {
		p.measured = true
		if from, to := p.cfg.Phases.warmup(); stamp == p.stamp && from < to {
			stamp++
		}
		p.cfg.Boundary.setFirst(p.cfg.ID, stamp)
	}
	p.stamp = stamp
	return stamp
}
