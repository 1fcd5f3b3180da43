package load

import (
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// ExpireEvery returns the time between two calls of [Producer.Expire]: a message ends at most two of them after its
// time, so at most a tenth of that, and 100 ms, too late.
func ExpireEvery(limit time.Duration) time.Duration {
	return max(min(limit/20, 50*time.Millisecond), time.Millisecond)
}

// Expire ends messages as unknown that the driver has had for longer than limit, in looks that are ExpireEvery(limit)
// apart. A message counts from the first look that finds it at the driver: its times are not read, so that the sending
// costs nothing more. Time in which nobody looked counts as one of two looks at most: the answers that came meanwhile
// have not been read either. A late answer then ends nothing, and is counted as a stray. One goroutine calls it, during
// Run of a timed load.
func (p *Producer) Expire(limit time.Duration) {
	now := p.clock.Now()
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
