package stats

import (
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Collector merges the recorders of a run into snapshots. It is not safe for concurrent use.
type Collector struct {
	producers []*ProducerRecorder
	consumers []*ConsumerRecorder
	start     time.Time // of the load, with its monotonic reading
	last      time.Time
	total     Counters
	whole     Latencies   // of all phases but the warm-up
	spares    [5]*Latency // empty; swapped into one recorder after the other. The last two are made when needed
	reporters []driver.Reporter
	protocol  []driver.Counter // as of the last Collect
	verified  func() verify.Progress
	minimum   Minimum
	ended     []uint64 // by producer: messages that have ended, as of this Collect
	meter     *healthMeter
}

// NewCollector returns a collector for recorders, whose load starts now. Producer recorders must all have been made with
// the same value of rated.
func NewCollector(producers []*ProducerRecorder, consumers []*ConsumerRecorder, now time.Time) *Collector {
	c := &Collector{
		producers: producers, consumers: consumers,
		start: now, last: now, meter: newHealthMeter(now), ended: make([]uint64, len(producers)),
	}
	for i := range c.spares[:3] {
		c.spares[i] = NewLatency()
	}
	c.whole = c.newLatencies()
	return c
}

// Watch names the workers that have counters of their protocol's own. Call it before the first Collect.
func (c *Collector) Watch(reporters []driver.Reporter) { c.reporters = reporters }

// Verify names what tells how the verification stands. Call it before the first Collect.
func (c *Collector) Verify(progress func() verify.Progress) { c.verified = progress }

func (c *Collector) newLatencies() Latencies {
	var l Latencies
	if len(c.producers) > 0 {
		l.Ack = NewLatency()
		if c.producers[0].rated {
			l.Delay, l.Response = NewLatency(), NewLatency()
		}
	}
	if len(c.consumers) > 0 {
		l.Transfer = NewLatency()
	}
	if c.whole.B2C != nil { // once there, in every interval, so that time series have no gaps
		l.B2C = NewLatency()
	}
	if c.whole.S2C != nil {
		l.S2C = NewLatency()
	}
	return l
}

// Collect ends the interval that began with the last call and returns it as a snapshot. Unless phase is Warmup, its
// latencies enter those of the run.
//
// A message counts as sent once the driver has taken it: one that waits for credit may never leave. With last, when no
// worker goes on, those that are still being handed over count too, as messages that never ended.
func (c *Collector) Collect(phase Phase, now time.Time, last bool) *Snapshot {
	s := &Snapshot{
		Phase: phase, From: c.last, To: now, Elapsed: now.Sub(c.start),
		Latencies: c.newLatencies(), Workers: len(c.producers) + len(c.consumers),
	}
	for _, r := range c.consumers {
		c.collectConsumer(r, s)
	}
	for i, r := range c.producers {
		c.ended[i] = c.collectCompletions(r, s)
	}
	for _, r := range c.producers {
		s.Total.Blocked += r.blocked.Load()
		s.Total.LateSends += r.late.Load()
	}
	s.Total.Sent = c.sent(s.Total.Received-s.Total.Redelivered, last)
	s.Delta = s.Total.Sub(c.total)
	s.InFlight = s.Total.InFlight()
	s.Health = c.meter.interval(now, s.Delta)
	c.protocol = sumCounters(c.reporters)
	s.Protocol = c.protocol
	if c.verified != nil {
		progress := c.verified()
		s.Verified = &progress
	}
	switch phase {
	case Warmup:
		c.whole.expect(s.Latencies)
	case Measure:
		c.minimum.add(s)
		c.whole.merge(s.Latencies)
	default:
		c.whole.merge(s.Latencies)
	}
	c.total, c.last = s.Total, now
	return s
}

// sent returns how many messages are known to have left. That is those which the driver took, and also one that it is
// still taking if that has ended or been received already; delivered is the number of messages received.
func (c *Collector) sent(delivered uint64, last bool) uint64 {
	var known, begun uint64
	for i, r := range c.producers {
		known += max(r.handed.Load(), c.ended[i])
		begun += r.sent.Load()
	}
	switch {
	case last:
		known = begun
	case known < delivered && delivered <= begun: // more than begun: each goes to several consumers
		known = delivered
	}
	return max(known, c.total.Sent)
}

// Total returns the totals as of the last Collect.
func (c *Collector) Total() Counters { return c.total }

// Latencies returns the latencies of all intervals so far, the warm-up left out. The caller must not use it after the
// next Collect.
func (c *Collector) Latencies() Latencies { return c.whole }

// Minimum returns the lowest rates of all full seconds so far.
func (c *Collector) Minimum() Minimum { return c.minimum }

// Protocol returns the protocol's own counters as of the last Collect; nil if there are none.
func (c *Collector) Protocol() []driver.Counter { return c.protocol }

// Health returns the tester's health over all intervals so far.
func (c *Collector) Health() Health { return c.meter.whole(c.last, c.total) }

func (c *Collector) collectConsumer(r *ConsumerRecorder, s *Snapshot) {
	r.mu.Lock()
	n := r.n
	r.transfer, c.spares[0] = c.spares[0], r.transfer
	c.swapIfUsed(3, &r.b2c)
	c.swapIfUsed(4, &r.s2c)
	r.mu.Unlock()

	s.Total.Received += n.total
	s.Total.Redelivered += n.redelivered
	s.Total.Unstamped += n.unstamped
	s.Total.Foreign += n.foreign
	s.Total.NegativeTransfers += n.negative
	s.Total.NegativeAges += n.negativeAges
	s.Total.OutOfRange += n.outOfRange
	c.take(0, s.Latencies.Transfer)
	c.takeNew(3, &s.Latencies.B2C)
	c.takeNew(4, &s.Latencies.S2C)
}

func (c *Collector) collectCompletions(r *ProducerRecorder, s *Snapshot) (ended uint64) {
	r.mu.Lock()
	n := r.ended
	r.ack, c.spares[0] = c.spares[0], r.ack
	if r.rated {
		r.delay, c.spares[1] = c.spares[1], r.delay
		r.resp, c.spares[2] = c.spares[2], r.resp
	}
	r.mu.Unlock()

	c.take(0, s.Latencies.Ack)
	if r.rated {
		c.take(1, s.Latencies.Delay)
		c.take(2, s.Latencies.Response)
	}
	s.Total.Completed += n.states[driver.Accepted]
	s.Total.Rejected += n.states[driver.Rejected]
	s.Total.Released += n.states[driver.Released]
	s.Total.Failed += n.states[driver.Failed]
	s.Total.Unconfirmed += n.states[driver.Unknown]
	s.Total.Unsent += n.unsent
	s.Total.OutOfRange += n.outOfRange
	for state, classes := range n.failures {
		for class, f := range classes {
			s.Total.Failures[class] += f
			s.Total.FailuresOf[state][class] += f
		}
	}
	return n.total()
}

// take moves what is in a spare, just swapped out of a recorder, into dst.
func (c *Collector) take(spare int, dst *Latency) {
	if c.spares[spare].Count() > 0 {
		dst.Merge(c.spares[spare])
		c.spares[spare].Reset()
	}
}

// swapIfUsed swaps a recorder's histogram that may not be there, or have nothing new, for a spare.
func (c *Collector) swapIfUsed(spare int, l **Latency) {
	if *l == nil || (*l).Count() == 0 {
		return
	}
	if c.spares[spare] == nil {
		c.spares[spare] = NewLatency()
	}
	*l, c.spares[spare] = c.spares[spare], *l
}

// takeNew is take, for a dst that may not be there yet.
func (c *Collector) takeNew(spare int, dst **Latency) {
	if c.spares[spare] == nil || c.spares[spare].Count() == 0 {
		return
	}
	if *dst == nil {
		*dst = NewLatency()
	}
	c.take(spare, *dst)
}

// sumCounters adds up the counters of the same name, in the order in which the names first come.
func sumCounters(reporters []driver.Reporter) []driver.Counter {
	var sum []driver.Counter
	for _, r := range reporters {
		for _, counter := range r.Counters() {
			i := slices.IndexFunc(sum, func(c driver.Counter) bool { return c.Name == counter.Name })
			if i < 0 {
				sum = append(sum, counter)
				continue
			}
			sum[i].Value += counter.Value
		}
	}
	return sum
}

// expect makes those of the latencies that other has and that do not come with every run.
func (l *Latencies) expect(other Latencies) {
	if l.B2C == nil && other.B2C != nil {
		l.B2C = NewLatency()
	}
	if l.S2C == nil && other.S2C != nil {
		l.S2C = NewLatency()
	}
}

func (l *Latencies) merge(other Latencies) {
	l.expect(other)
	for _, pair := range [][2]*Latency{
		{l.Delay, other.Delay},
		{l.Ack, other.Ack},
		{l.Response, other.Response},
		{l.Transfer, other.Transfer},
		{l.B2C, other.B2C},
		{l.S2C, other.S2C},
	} {
		if pair[0] != nil {
			pair[0].Merge(pair[1])
		}
	}
}
