package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// producersAsked returns the targets and bounds of the present step, after its load.
func (r *run) producersAsked() (producers []stats.ProducerAsked, delivered, stored bool) {
	producers, delivered, stored = make([]stats.ProducerAsked, len(r.producers)), r.expectedKnown(), true
	sent, received := map[place]bool{}, map[place]bool{}
	for _, p := range r.producers {
		sent[p.place()] = true
	}
	for _, c := range r.step.consumers {
		received[c.place()] = true
		stored = stored && sent[c.place()] // what others send may come at any time
	}
	for _, u := range r.step.uses {
		due, sent, share := u.due, u.sentInStep, u.share()
		for _, p := range u.producers {
			stored = false
			delivered = delivered && p.spec.Delay == 0 && received[p.place()]
			own := p.inFlight()
			if own.Messages > p.spec.MaxPending { // then that is the bound
				own = driver.InFlight{}
			}
			if u.draws.Skew != nil { // the producers differ
				due, sent, share = p.due, p.rec.Ended()+p.rec.InFlight()-p.base, u.draws.Skew.Weight(p.index)
			}
			producers[slices.Index(r.producers, p)] = stats.ProducerAsked{
				Rated: !u.plan.Rate.IsZero(), Reached: hasReached(sent, due), InFlight: own,
				Missed: missed(sent, due, u.plan.Rate.Average(r.step.loaded)*share),
			}
		}
	}
	return producers, delivered, stored
}

// hasReached reports whether nearly all messages due were sent.
func hasReached(sent, due uint64) bool { return float64(sent) >= reached*float64(due) }

// inFlight returns the client's own bound on the messages in flight.
func (p *producer) inFlight() driver.InFlight {
	if p.broker.Factory.InFlight == nil {
		return driver.InFlight{}
	}
	return p.broker.Factory.InFlight(p.broker.Options, &p.spec)
}

// maxInFlight returns the producer's part of the messages that may be in flight. bounded holds the connections (broker
// and key) with a bound that an earlier producer has counted.
func (p *producer) maxInFlight(bounded map[[2]string]bool) int {
	bound := p.inFlight()
	if bound.Messages == 0 || bound.Messages >= p.spec.MaxPending {
		return p.spec.MaxPending
	}
	if connection := ([2]string{p.broker.URL, p.spec.Connection.Key}); bound.PerConnection && p.driver != nil {
		if bounded[connection] {
			return 0
		}
		bounded[connection] = true
	}
	return bound.Messages
}

// missed returns the time in which producers would send, at their rate, the messages that were due and not sent.
func missed(sent, due uint64, perSecond float64) time.Duration {
	if perSecond <= 0 || sent >= due {
		return 0
	}
	return time.Duration(float64(due-sent) / perSecond * float64(time.Second))
}

// longestLimit returns the limit that lasted longest in a step.
func (r *run) longestLimit() *result.Limit {
	lasted := func(s *stats.Summary) float64 {
		switch s.Limit.Kind {
		case result.LimitNone:
			return 0
		case result.LimitUnknown:
			return -1
		default:
			return s.Limit.Share * s.Average.Span.Seconds()
		}
	}
	longest := slices.MaxFunc(r.endedSteps, func(a, b stats.Summary) int { return cmp.Compare(lasted(&a), lasted(&b)) })
	l := *longest.Limit
	if l.Kind != result.LimitNone && len(r.steps) > 1 {
		l.Text = "step " + longest.Name + ": " + l.Text
	}
	return &l
}
