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

// silence detects a broker that has stopped answering. Without it, a run that ends only with its last message could
// wait forever for credit. A run with a duration ends by that, and a run without either is ended by its user.
type silence struct {
	run   *run
	limit time.Duration
	quiet quiet[signs]
}

// signs are signs of life: counts that grow only while the broker works for the run.
type signs struct{ sent, ended, received uint64 }

// listen returns nil if the run does not need it.
func (r *run) listen() *silence {
	ends := slices.ContainsFunc(r.step.uses, func(u *use) bool { return len(u.producers) > 0 && u.all() < math.MaxUint64 })
	if !ends || r.step.plan.Duration > 0 || r.step.plan.Idle > 0 {
		return nil
	}
	return &silence{r, max(r.plan.DrainTimeout, minSilence), quiet[signs]{most: 2 * sampleInterval, looked: time.Now()}}
}

// all returns how many messages the group is to send in the step; the maximum if neither count nor schedule ends them.
func (u *use) all() uint64 {
	all := cmp.Or(u.plan.Count, math.MaxUint64)
	if end, ok := u.plan.Rate.End(); ok {
		all = min(all, u.plan.Rate.Due(end))
	}
	return all
}

// broken returns an error if there was no sign of life for too long although messages are due. Call it each interval,
// from one goroutine.
func (s *silence) broken() error {
	r := s.run
	if r.outages != nil && r.outages.Open() { // reconnecting handles it
		s.quiet.lasted, s.quiet.looked = 0, time.Now()
		return nil
	}
	now := signs{received: r.received()}
	var waiting, unsent uint64
	later := false // no message is due now or was due lately
	for _, u := range r.step.uses {
		if len(u.producers) == 0 {
			continue
		}
		sent, inFlight := u.sent()
		if u.to.Factory.Capabilities.Reconnects { // such a client accepts messages and gives them up without a broker
			for _, p := range u.producers {
				now.ended += p.rec.Answered()
			}
		} else {
			now.sent, now.ended = now.sent+sent, now.ended+sent-inFlight
		}
		waiting += inFlight
		if u.all() == math.MaxUint64 { // how many it will send is unknown
			continue
		}
		left := u.share(u.all()) - min(sent, u.share(u.all()))
		unsent += left
		due := u.plan.Rate.At(u.nextOf(sent))
		later = later || left > 0 && !u.plan.Rate.IsZero() && r.clock.Now()-r.step.start-due < s.limit
	}
	if s.quiet.look(now) < s.limit || later {
		return nil
	}
	return driver.Errorf(driver.ClassTimeout, "wait for the broker",
		"look at the broker: is it stalled, a queue full, or the connection half open? --drain-timeout says how long to "+
			"wait for it (10s at least), --send-timeout ends messages without an answer, and -o idle-timeout (AMQP) or "+
			"-o heart-beat (STOMP) a silent connection; with --duration the run goes on until that is over",
		"for %s it took, confirmed and delivered nothing; messages waiting for it: %d; not yet sent: %d", s.limit, waiting,
		unsent)
}
