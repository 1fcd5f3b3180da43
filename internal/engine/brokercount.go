package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// counting holds the run against the counts of its brokers.
type counting struct {
	watch   *brokerside.Counts
	brokers []*counted // in the order of the watch
	early   bool       // there was no time for the last count
}

// counted has the destinations that a broker counts, in the order of the watch. A place is counted at one broker.
type counted struct {
	*Endpoint
	destinations []driver.Destination
}

// inspector returns the source of the counts of an endpoint's broker, or nil.
func (r *run) inspector(e *Endpoint) driver.Inspector {
	if e.Inspector != nil {
		return e.Inspector
	}
	if r.spreads(e) { // the driver asks one of the hosts, which need not know the messages of the others
		return nil
	}
	inspector, _ := r.driver(e).(driver.Inspector)
	return inspector
}

// countFrom reads the counts of the present step's new destinations before its first message. A place with producers is
// counted at their broker, another place at the consumers' broker.
func (r *run) countFrom(ctx context.Context) {
	if r.counting == nil {
		return
	}
	known := len(r.counting.brokers)
	for _, side := range []func(*plan.Group) *Endpoint{r.sendsTo, r.readsFrom} {
		for _, u := range r.step.uses {
			e := side(u.plan)
			if e == nil || r.inspector(e) == nil {
				continue
			}
			for _, d := range u.plan.Destinations {
				if slices.ContainsFunc(r.counting.brokers, func(c *counted) bool {
					return c.Site == e.Site && slices.Contains(c.destinations, d)
				}) {
					continue
				}
				i := slices.IndexFunc(r.counting.brokers[known:], func(c *counted) bool { return c.Same(e.Broker) })
				if i < 0 {
					i = len(r.counting.brokers) - known
					r.counting.brokers = append(r.counting.brokers, &counted{Endpoint: e})
				}
				c := r.counting.brokers[known+i]
				c.destinations = append(c.destinations, d)
			}
		}
	}
	for _, c := range r.counting.brokers[known:] {
		r.counting.watch.Add(ctx, c.Name, r.inspector(c.Endpoint), c.destinations)
	}
}

// sameCounter reports whether both endpoints are counted by one broker: counts of two brokers cannot be compared.
func sameCounter(a, b *Endpoint) bool {
	return a.Same(b.Broker) || a.Inspector != nil && a.Inspector == b.Inspector
}

// onlyAt reports whether all producers, or all consumers, of a place are at the broker of an endpoint.
func (r *run) onlyAt(at place, e *Endpoint, side func(*plan.Group) *Endpoint) bool {
	return !slices.ContainsFunc(r.plan.Groups(), func(g *plan.Group) bool {
		o := side(g)
		return o != nil && o.Site == at.site && slices.Contains(g.Destinations, at.destination) && !sameCounter(o, e)
	})
}

// depths returns the numbers of messages at the brokers; nil if they are not known.
func (r *run) depths() []brokerside.Depth {
	if r.counting == nil {
		return nil
	}
	return r.counting.watch.Depths()
}

// awaitCount asks for the counts until they agree with the run's, for a time.
func (r *run) awaitCount(ctx context.Context, while, every time.Duration) {
	if r.counting == nil || ctx.Err() != nil {
		return
	}
	if r.silent || inFlight(r.producers) > 0 { // the broker hardly answers
		while = 0
	}
	for deadline := time.Now().Add(while); ; {
		r.counting.watch.Ask(ctx)
		if r.countsAgree() || !time.Now().Before(deadline) || !sleep(ctx, every) {
			return
		}
	}
}

// countsAgree reports whether no later count can be nearer to the run.
func (r *run) countsAgree() bool {
	return !slices.ContainsFunc(r.compareCounts(), func(d result.DestinationCount) bool {
		return d.Added.Differs() < 0 || d.Acknowledged.Differs() < 0
	})
}

// lastCount takes the counts when the workers have closed.
func (r *run) lastCount(ctx context.Context) {
	if r.counting == nil {
		return
	}
	r.awaitCount(ctx, countWhenClosed, countEvery)
	if lag := r.counting.watch.Lag(); lag > 0 && !r.silent {
		_ = sleep(ctx, lag)
		r.awaitCount(ctx, lag, countLagging) // a busy broker may lag more than it should
	}
	r.counting.early = ctx.Err() != nil
	r.counting.watch.Close()
}

// brokerCount returns the brokers' own counts; nil if no broker was asked.
func (r *run) brokerCount() *result.BrokerCount {
	if r.counting == nil || len(r.counting.brokers) == 0 {
		return nil
	}
	return &result.BrokerCount{Destinations: r.compareCounts(), Notes: r.counting.watch.Notes()}
}

// compareCounts compares each destination's count with the messages of its workers, as of now.
func (r *run) compareCounts() (list []result.DestinationCount) {
	for i, c := range r.counting.brokers {
		for k, d := range c.destinations {
			g := r.counting.watch.Growth(i, k)
			if r.counting.early {
				g = brokerside.Growth{Why: "there was no time for the last count"}
			}
			list = append(list, r.compareCount(place{c.Site, d}, c.Endpoint, &g))
		}
	}
	return list
}

// compareCount compares the count of a place, at the broker of an endpoint, with the messages of its workers.
func (r *run) compareCount(at place, e *Endpoint, g *brokerside.Growth) result.DestinationCount {
	d := result.DestinationCount{Destination: at.destination.String(), Why: g.Why, Unreached: g.Broke}
	if g.Depth.Known {
		d.Depth = &g.Depth.N
	}
	added, acknowledged := &result.Compared{Count: g.Added.N}, &result.Compared{Count: g.Acknowledged.N}
	var sends, receives bool
	for _, p := range r.producers {
		if p.place() == at {
			sends = true
			withheld, n := p.rec.Withheld(), p.rec.Taken() // before the completed, of which they are a part
			d.Sent += n[result.Sent]
			completed := n[result.Completed] - withheld
			added.Least += completed
			added.Most += completed + n[result.Unconfirmed] + p.rec.AllResent() // which the broker may have twice
		}
	}
	for _, k := range r.consumers {
		if k.place() == at {
			receives = true
			back, rejected := k.rec.Count(result.ConsumerReleased), k.rec.Count(result.ConsumerRejected)
			received := k.rec.Arrived() - back
			d.Received += received
			// A released message may have been acknowledged before; some brokers do not acknowledge rejected ones.
			acknowledged.Most += received + back
			acknowledged.Least += received - min(received, k.rec.Count(result.Redelivered)+rejected)
		}
	}
	if g.Added.Known && sends && r.onlyAt(at, e, r.sendsTo) {
		d.Added = added
	}
	if g.Acknowledged.Known && receives && at.destination.Kind == driver.Queue && r.onlyAt(at, e, r.readsFrom) {
		d.Acknowledged = acknowledged
	}
	// More may have come after the last count of a destination that is gone.
	for _, compared := range []**result.Compared{&d.Added, &d.Acknowledged} {
		if by := (*compared).Differs(); g.Gone && (by < 0 || by > 0 && compared == &d.Acknowledged) {
			*compared, d.Why = nil, fmt.Sprintf("the broker removed %s with its count", at.destination)
		}
	}
	return d
}

// countedAnew drops counts that are too low after an outage, or after a broker could not be reached: a restarted broker
// counts from 0, and a message with a lost settlement is received twice and acknowledged once. It adds notes on these.
func countedAnew(s *stats.Summary) {
	if s.BrokerCount == nil {
		return
	}
	for i := range s.BrokerCount.Destinations {
		d := &s.BrokerCount.Destinations[i]
		if d.Unreached && d.Added.Differs() < 0 {
			d.Added, d.Why = nil, "the broker was away, and may have counted anew"
		}
		if (d.Unreached || len(s.Outages) > 0) && d.Acknowledged.Differs() < 0 {
			d.Acknowledged, d.Why = nil, "messages may have been delivered twice and acknowledged once"
		}
	}
	s.BrokerCount.Notes = s.BrokerCount.Unknown()
}
