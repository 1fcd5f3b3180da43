package engine

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// quiet measures the time without a sign of life. Time without a call of look hardly counts: if the machine stops this
// process, it receives nothing either.
type quiet[T comparable] struct {
	most   time.Duration // that counts between two calls of look
	seen   T
	looked time.Time // zero before the first call
	lasted time.Duration
}

// look takes the signs so far, and returns the time since their last change.
func (q *quiet[T]) look(signs T) time.Duration {
	now := time.Now()
	if q.looked.IsZero() {
		q.looked = now
	}
	q.lasted += min(now.Sub(q.looked), q.most)
	q.looked = now
	if signs != q.seen {
		q.seen, q.lasted = signs, 0
	}
	return q.lasted
}

// newSilenceCheck returns a function that returns an error if the broker gave no sign of life for too long although
// messages are due. Call it each interval, from one goroutine. It is nil for a run that does not end with its last
// message.
func (r *run) newSilenceCheck() func() error {
	ends := slices.ContainsFunc(r.step.uses, func(u *use) bool {
		return len(u.producers) > 0 && u.toSend(0) < math.MaxUint64
	})
	if !ends || r.step.plan.Duration > 0 {
		return nil
	}
	limit, q := max(r.plan.DrainTimeout, minSilence), quiet[signs]{most: 2 * sampleInterval, looked: time.Now()}
	return func() error { return r.checkSilence(limit, &q) }
}

// toSend returns the number of messages that the group is to send in a step of that duration, which may be 0; the
// maximum without a count or an end.
func (u *use) toSend(duration time.Duration) uint64 {
	all := cmp.Or(u.plan.Count, math.MaxUint64)
	if end, ok := u.plan.Rate.End(); ok {
		all = min(all, u.plan.Rate.Due(end))
	}
	if duration > 0 && !u.plan.Rate.IsZero() {
		all = min(all, u.plan.Rate.Due(duration))
	}
	return all
}

// signs of life are messages that the broker took, and the time of the last answer or message to any worker.
type signs struct {
	sent uint64
	last time.Time
}

// checkSilence returns an error if there was no sign of life for that long.
func (r *run) checkSilence(limit time.Duration, q *quiet[signs]) error {
	if r.outages != nil && r.outages.Open() { // reconnecting handles it
		q.lasted, q.looked = 0, time.Now()
		return nil
	}
	var seen signs
	var waiting uint64
	later := false // no message is due now or was due lately
	for _, u := range r.step.uses {
		if len(u.producers) == 0 {
			continue
		}
		sent, inFlight := u.sent()
		if !u.to.Factory.Capabilities.Reconnects { // such a client takes messages without a broker
			seen.sent += sent
		}
		waiting += inFlight
		if u.awaitsDraw() {
			q.lasted, q.looked = 0, time.Now()
			return nil
		}
		left := u.ownShare(u.toSend(0)) > sent
		// The schedule counts the messages of all shards.
		due := u.plan.Rate.At(uint64(float64(sent) / u.share()))
		later = later || left && !u.plan.Rate.IsZero() && r.clock.Now()-r.step.start-due < limit
	}
	if last, ok := r.collector.LastSign(); ok {
		seen.last = last
	}
	if q.look(seen) < limit || later {
		return nil
	}
	return driver.Errorf(driver.ClassTimeout, "wait for the broker",
		"is the broker stalled, a queue full, or the connection half open? --drain-timeout is the time to wait (10s "+
			"at least), --send-timeout ends messages without an answer, -o idle-timeout (AMQP) or -o heart-beat "+
			"(STOMP) a silent connection, --duration the run",
		"it did nothing for %s; messages waiting for it: %d", limit, waiting)
}
