package engine

import (
	"slices"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// silence detects a broker that has stopped answering. Without it, a run that ends only with its last message could
// wait forever for credit. A run with a duration ends by that, and a run without either is ended by its user.
type silence struct {
	run   *run
	limit time.Duration
	seen  signs
	// looked is the time of the last call of broken, lasted the time without a sign. Time without a call hardly counts: a
	// pause of this process does not make the broker silent.
	looked time.Time
	lasted time.Duration
}

// signs are signs of life: counts that grow only while the broker works for the run.
type signs struct{ sent, ended, received uint64 }

// listen returns nil if the run does not need it.
func (r *run) listen() *silence {
	ends := slices.ContainsFunc(r.step.uses, func(u *use) bool {
		_, scheduled := u.plan.Rate.End()
		return len(u.producers) > 0 && (u.plan.Count > 0 || scheduled)
	})
	if !ends || r.step.plan.Duration > 0 || r.step.plan.Idle > 0 {
		return nil
	}
	return &silence{run: r, limit: max(r.plan.DrainTimeout, minSilence), looked: time.Now()}
}

// broken returns an error if there was no sign of life for too long although messages are due. Call it each interval,
// from one goroutine.
func (s *silence) broken() error {
	r := s.run
	if r.outages != nil && r.outages.Open() { // reconnecting handles it
		s.lasted, s.looked = 0, time.Now()
		return nil
	}
	now := signs{received: r.received()}
	var waiting, unsent, count uint64
	of := "--message-count"
	later := false // no message is due now or was due lately
	for _, u := range r.step.uses {
		if len(u.producers) == 0 {
			continue
		}
		reconnects := u.to.Factory.Capabilities.Reconnects
		for _, p := range u.producers {
			if reconnects { // such a client accepts messages and gives them up without a broker
				now.ended += p.rec.Answered()
			} else {
				now.ended += p.rec.Ended()
			}
		}
		sent, inFlight := u.sent()
		if !reconnects {
			now.sent += sent
		}
		waiting += inFlight
		all := u.plan.Count
		if all == 0 {
			of = "the messages of --rate"
		}
		if end, ok := u.plan.Rate.End(); ok && (all == 0 || u.plan.Rate.Due(end) < all) {
			all = u.plan.Rate.Due(end)
		}
		next := u.nextOf(sent)
		all = u.share(all)
		count += all
		unsent += all - min(sent, all)
		later = later || sent < all && !u.plan.Rate.IsZero() && r.clock.Now()-r.step.start-u.plan.Rate.At(next) < s.limit
	}
	s.lasted += min(time.Since(s.looked), 2*sampleInterval)
	s.looked = time.Now()
	if now != s.seen {
		s.seen, s.lasted = now, 0
		return nil
	}
	if s.lasted < s.limit || later {
		return nil
	}
	return driver.Errorf(driver.ClassTimeout, "wait for the broker",
		"look at the broker: is it stalled, a queue full, or the connection half open? --drain-timeout says how long to "+
			"wait for it (10s at least), --send-timeout ends messages without an answer, and -o idle-timeout (AMQP) or "+
			"-o heart-beat (STOMP) a silent connection; with --duration the run goes on until that is over",
		"for %s it took, confirmed and delivered nothing; messages waiting for it: %d; not yet sent of %s %d: %d",
		s.limit, waiting, of, count, unsent)
}
