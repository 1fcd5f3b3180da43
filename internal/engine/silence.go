package engine

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// leastSilence is how long a run that nothing but --message-count ends waits for a sign of life at least, however short
	// its drain time-out is: brokers that page, fail over or collect garbage are silent for seconds and go on.
	leastSilence = 10 * time.Second
	// lastLook is how long the drain may still take once the broker was silent for longer than that.
	lastLook = 2 * time.Second
)

// silence notices a broker that has stopped answering. Without it, a run that only ends with its last message would wait
// for ever for the leave to send it; a run with a duration ends by that, and one with neither when its user wants it to.
type silence struct {
	run   *run
	limit time.Duration
	seen  signs
	// looked is when broken was called last, and lasted how long there has been no sign. Time in which nobody looked counts
	// for little: what stops this process for a minute does not make the broker silent.
	looked time.Time
	lasted time.Duration
}

// signs of life: each of them only grows while the broker does anything for the run.
type signs struct{ sent, ended, received uint64 }

// listen returns nil if the run needs no such watch.
func (r *run) listen() *silence {
	if len(r.producers) == 0 || r.plan.Count == 0 || r.plan.Duration > 0 {
		return nil
	}
	return &silence{run: r, limit: max(r.plan.DrainTimeout, leastSilence), looked: time.Now()}
}

// broken returns an error if there was no sign of life for too long although messages are due. Call it each interval, from
// one goroutine.
func (s *silence) broken() error {
	r := s.run
	now := signs{received: r.received()}
	reconnects := r.plan.Producer.Factory.Capabilities.Reconnects
	var sent, waiting uint64
	for _, p := range r.producers {
		ended, inFlight := p.rec.Ended(), p.rec.InFlight()
		sent += ended + inFlight
		waiting += inFlight
		if reconnects { // it takes messages and gives them up without a broker
			now.ended += p.rec.Answered()
		} else {
			now.ended += ended
		}
	}
	if !reconnects {
		now.sent = sent
	}
	s.lasted += min(time.Since(s.looked), 2*interval)
	s.looked = time.Now()
	if now != s.seen {
		s.seen, s.lasted = now, 0
		return nil
	}
	if s.lasted < s.limit || !r.plan.Rate.IsZero() && r.clock.Now()-r.plan.Rate.At(sent) < s.limit {
		return nil
	}
	return driver.Errorf(driver.ClassTimeout, "wait for the broker",
		"look at the broker: is it stalled, or a queue full? --drain-timeout says how long to wait for it (10s at least); with --duration the run goes on until that is over",
		"for %s it took, confirmed and delivered nothing; messages waiting for it: %d; not yet sent of --message-count %d: %d",
		s.limit, waiting, r.plan.Count, r.plan.Count-min(sent, r.plan.Count))
}
