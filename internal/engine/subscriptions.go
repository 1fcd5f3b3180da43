package engine

import (
	"math"
	"slices"

	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// place is a destination at a broker, or at brokers that pass messages on to each other.
type place struct {
	site        string
	destination driver.Destination
}

func (p *producer) place() place { return place{p.broker.Site, p.spec.Destination} }

func (c *consumer) place() place { return place{c.broker.Site, c.spec.Destination} }

// subscription is a set of consumers that get each message once together: all consumers of a queue, one consumer of a
// topic, or the consumers that share a subscription.
type subscription struct {
	place
	name      string // unique at its place; empty for a queue
	again     string // distinguishes later subscriptions of the same name
	consumers []*consumer
	over      bool // it has ended and no longer exists at the broker

	// before and until count the messages completed at its place by its beginning and, if it is over, by its end; had
	// counts the messages that its consumers received before it began.
	before, until, had uint64

	// With verification.
	tracker  *verify.Tracker
	arrivals *arrivals
	opened   int64          // microseconds since the Unix epoch
	sent     verify.Periods // messages sent while it existed; nil while it exists from the begin of the run
	ended    int64          // of its last consumers; 0 before
	drained  bool           // they waited, the broker answered a probe, and no message arrived

	receiving []chan struct{} // closed at the end of each consumer that has begun to receive; nil between steps
}

// subscriptionName returns the name of a consumer's subscription, unique at its place.
func (c *consumer) subscriptionName() string {
	switch {
	case c.spec.Shared:
		return c.spec.Subscription
	case c.spec.Destination.Kind == driver.Topic:
		return c.spec.Name
	default:
		return ""
	}
}

// addSubscriptions records the subscriptions of the present step's consumers that are open and not started.
func (r *run) addSubscriptions() {
	for _, c := range r.step.consumers {
		if c.load != nil {
			continue
		}
		var s *subscription
		if i := slices.IndexFunc(r.subs, func(s *subscription) bool { return !s.over && s.isOf(c) }); i >= 0 {
			s = r.subs[i]
		} else {
			s = r.newSubscription(c)
			r.mu.Lock()
			r.subs = append(r.subs, s)
			r.mu.Unlock()
		}
		if !slices.Contains(s.consumers, c) {
			r.mu.Lock()
			s.consumers = append(s.consumers, c)
			r.mu.Unlock()
			s.had += c.rec.Total()
		}
		if r.verify != nil {
			c.checker = verify.NewChecker(s.tracker, r.ownMessages())
		}
	}
}

// isOf reports whether the subscription is that of the consumer, or an earlier one of its name.
func (s *subscription) isOf(c *consumer) bool {
	return s.place == c.place() && s.name == c.subscriptionName()
}

func (r *run) newSubscription(c *consumer) *subscription {
	s := &subscription{place: c.place(), name: c.subscriptionName(), opened: r.clock.Epoch(r.clock.Now())}
	if r.verify != nil {
		s.tracker, s.arrivals = verify.NewTracker(), new(arrivals)
		if r.plan.VerifyWindow > 0 {
			s.tracker.Window()
		}
		if r.outages != nil {
			s.tracker.Reconnecting(r.outages)
		}
	}
	if slices.ContainsFunc(r.subs, func(o *subscription) bool { return o.isOf(c) }) {
		s.again = " in step " + r.step.plan.Name
	}
	if s.name != "" && r.step.index > 0 && c.spec.StreamOffset != driver.StreamFirst {
		s.before = r.completed()[s.place]
		r.bound(s, false)
	}
	return s
}

// bound records that the messages of a subscription begin, or end, with the ones sent now.
func (r *run) bound(s *subscription, over bool) {
	if r.verify == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.sent == nil {
		s.sent = verify.Periods{}
	}
	for _, l := range r.verify.ledgers[s.place] {
		b := verify.Bounds{From: l.Count(), To: math.MaxUint64}
		if over {
			b = verify.Bounds{From: s.sent[l.Stream()].From, To: l.Count()}
		}
		s.sent[l.Stream()] = b
	}
}

// subscriptionsOf returns the subscriptions that lose their last consumers when these consumers close.
func (r *run) subscriptionsOf(closing []*consumer) (list []*subscription) {
	for _, s := range r.subs {
		if !s.over && !slices.ContainsFunc(s.consumers, func(c *consumer) bool {
			return c.driver != nil && !slices.Contains(closing, c)
		}) && slices.ContainsFunc(s.consumers, func(c *consumer) bool { return slices.Contains(closing, c) }) {
			list = append(list, s)
		}
	}
	return list
}

// lasts reports whether s keeps messages without a consumer: a queue, or a durable subscription that is not removed
// when its consumers close.
func (s *subscription) lasts() bool {
	return s.destination.Kind == driver.Queue ||
		slices.ContainsFunc(s.consumers, func(c *consumer) bool {
			return c.kept || c.spec.Durable && c.spec.KeepSubscription
		})
}

// endSubscription records that a subscription has lost its last consumer during the run.
func (r *run) endSubscription(s *subscription) {
	if s.lasts() {
		return
	}
	s.over = true
	s.until = r.completed()[s.place]
	r.bound(s, true)
}

// isParked reports whether a subscription keeps messages and has no consumer in the present step.
func (r *run) isParked(s *subscription) bool {
	return s.lasts() && !slices.ContainsFunc(r.step.consumers,
		func(c *consumer) bool { return slices.Contains(s.consumers, c) })
}

// parked returns the number of messages of a verified run that stay at the broker in this step by plan.
func (r *run) parked() (n uint64) {
	for _, s := range r.subs {
		if r.isParked(s) {
			n += r.verify.missingAt(s)
		}
	}
	return n
}

func (s *subscription) received() (n uint64) {
	for _, c := range s.consumers {
		n += c.rec.Total()
	}
	return n - s.had
}

// expected returns the number of messages completed at its place that the subscription should receive.
func (s *subscription) expected(completed map[place]uint64) uint64 {
	if s.over {
		return s.until - s.before
	}
	return completed[s.place] - s.before
}
