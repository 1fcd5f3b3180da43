package stats

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Worker is a producer or consumer of a run, with the facts that are not in its recorder.
type Worker struct {
	Name        string
	Destination string
	Group       string // empty on a command line
	// Subscription tells the consumers that compete for the messages of a destination from others; empty for a queue.
	Subscription string
	Counters     driver.Counting // nil if its driver does not count
	Waits        driver.Waiter   // nil if its driver does not report its waits
	// Closed: it has no connection now. Before are the counters of its earlier connections, CreditWaits and SocketWaits
	// their waits for credit and for the network.
	Closed bool
	// Openings counts its connections so far.
	Openings    int
	Before      []driver.Counter
	CreditWaits uint64
	SocketWaits uint64
	// Broker is its name in a scenario. Host returns the one of the hosts of its URL at which it is, and is nil if there
	// is only one. Any goroutine may call it.
	Broker string
	Host   func() string
	// Site is the broker, or the brokers, at which Destination is one and the same.
	Site string
	// Prompt: each message of the producer, or of the consumer's subscription, waits for a consumer once it is accepted.
	Prompt bool
	// MaxPending is the largest number of messages in flight of a producer. Unanswered: they end when they are written.
	MaxPending int
	Unanswered bool
}

// Collector merges the recorders of a run into snapshots. It is not safe for concurrent use.
type Collector struct {
	periods
	producers []*ProducerRecorder
	consumers []*ConsumerRecorder
	openers   []*ConnectionRecorder
	start     time.Time // of the load, with its monotonic reading
	last      time.Time
	workers   []Worker // of the producers, then of the consumers
	protocol  []driver.Counter
	verified  func() result.Progress
	stalls    stallMeter
	marker    marker
	sends     []sends // by producer, as of this Collect
	delivered delivered
	meter     *healthMeter
	work      []workerMeter
	tally     *LoadTally // of the present step
	leastAck  int64      // shortest answer so far, microseconds; math.MaxInt64 before the first
	mayPend   int        // messages that may be in flight
	open      int        // workers that have a connection
	rated     bool
	requests  bool
	responds  bool
	groups    []*groupMeter
	stages    []*Stages     // of workers without a group
	groupOf   []*groupMeter // of the producers, then of the consumers; nil entries have none
}

// NewCollector returns a collector for recorders of a load that starts now. Producer recorders must all have been made
// with the same value of rated.
func NewCollector(producers []*ProducerRecorder, consumers []*ConsumerRecorder, now time.Time) *Collector {
	c := &Collector{
		producers: producers, consumers: consumers,
		start: now, last: now, meter: newHealthMeter(now), sends: make([]sends, len(producers)),
	}
	c.work = make([]workerMeter, len(producers)+len(consumers))
	c.SetWorkers(make([]Worker, len(c.work)))
	c.leastAck = math.MaxInt64
	c.SetRoles(len(producers) > 0, len(consumers) > 0)
	for _, p := range producers {
		c.rated, c.requests = c.rated || p.rated, c.requests || p.requests
	}
	for _, k := range consumers {
		c.responds = c.responds || k.responds
	}
	c.run.Latencies = c.newLatencies()
	c.BeginStep()
	return c
}

// Expect announces the recorders of groups of connections, and whether messages of some step will have intended times.
// Call it before SetGroups.
func (c *Collector) Expect(openers []*ConnectionRecorder, rated bool) {
	c.openers, c.rated = openers, c.rated || rated
	c.run.Latencies = c.newLatencies()
}

// SetWorkers names the workers, the producers first and in the order of their recorders. Call it before the first
// Collect, and after workers were opened or closed.
func (c *Collector) SetWorkers(workers []Worker) {
	c.workers = workers
	c.delivered.setWorkers(workers[:len(c.producers)], workers[len(c.producers):])
	c.mayPend, c.open = 0, 0
	for i := range workers {
		meter, w := &c.work[i], &workers[i]
		meter.fresh = meter.openings != w.Openings && meter.openings > 0
		meter.openings = w.Openings
		if !w.Closed {
			c.mayPend += w.MaxPending
			c.open++
		}
	}
}

// SetRoles sets the roles of the run, for which rows have counts. Call it before the first Collect.
func (c *Collector) SetRoles(produces, consumes bool) {
	c.run.Sends, c.run.Receives = produces, consumes
}

// SetPulse sets the pulse of perfmq. Call it before the first Collect.
func (c *Collector) SetPulse(p *Pulse) { c.meter.pulse = p }

// LastSign returns when the last answer of the broker, or message, came to any worker; false if none has come. Any
// goroutine may call it.
func (c *Collector) LastSign() (time.Time, bool) {
	var last time.Duration
	c.quiets(func(q *quiet) { last = max(last, q.sign) })
	return c.start.Add(last), last > 0
}

// SetProgress sets the function that returns the progress of the verification. Call it before the first Collect.
func (c *Collector) SetProgress(progress func() result.Progress) { c.verified = progress }

// newLatencies returns empty distributions of the kinds that the run measures, and that have occurred: from then on
// they are in every interval, so that time series have no gaps.
func (c *Collector) newLatencies() (l result.Latencies) {
	has := result.ProducerRole.If(len(c.producers) > 0) | result.ConsumerRole.If(len(c.consumers) > 0) |
		result.Rated.If(c.rated) | result.OpenerRole.If(len(c.openers) > 0) |
		result.Requesting.If(c.requests) | result.Responding.If(c.responds)
	for _, k := range result.Kinds() {
		if k.Always && k.Role&^has == 0 {
			l[k.Kind] = result.NewLatency()
		}
	}
	for _, k := range result.Kinds() {
		if c.run.Latencies[k.Kind] != nil && l[k.Kind] == nil && !k.Stage {
			l[k.Kind] = result.NewLatency()
		}
	}
	return l
}

// Collect ends the interval that began with the last call and returns it as a snapshot.
//
// A message counts as sent once the driver has taken it: a message that waits for credit may never leave. With last,
// when all workers have stopped, messages that are still being handed over count too, as messages that never ended.
func (c *Collector) Collect(phase Phase, now time.Time, last bool) *Snapshot {
	s := &Snapshot{
		// One reading of the wall clock for all times of a run: setting the clock must not let a run end before its start.
		From: c.last, To: c.start.Add(now.Sub(c.start)), Row: result.Row{
			Phase: phase.String(), Elapsed: now.Sub(c.start).Microseconds(), Latencies: c.newLatencies(),
			Workers: c.open,
		},
	}
	s.Time, s.Length = s.To.UnixMicro(), max(1, s.To.Sub(s.From).Microseconds())
	var leftover result.Latencies
	latencies := [parts]*result.Latencies{Warmup: &leftover, Measure: &s.Latencies}
	if phase == Warmup {
		// A cut may come a moment late: measured data until then waits in the recorders for the next cut.
		latencies = [parts]*result.Latencies{Warmup: &s.Latencies}
	}
	var counts [parts]Counters
	for i, r := range c.consumers {
		c.delivered.add(i, r.collect(c.targetsOf(len(c.producers)+i, &counts, latencies)))
	}
	for i, r := range c.openers {
		r.collect(c.targetsOf(len(c.work)+i, &counts, latencies))
	}
	for i, r := range c.producers {
		c.sends[i] = r.collect(c.targetsOf(i, &counts, latencies))
		c.delivered.addStored(i, c.sends[i].stored)
	}
	s.Arrivals = c.arrivals()
	c.addStages(&counts, latencies)
	c.addGroups(&counts, latencies)
	s.Latencies.Seal()
	if leftover.Seal(); leftover != (result.Latencies{}) {
		s.Leftover = &leftover
	}
	total := counts[Warmup].Add(counts[Measure])
	for _, l := range s.latencies(result.Ack) { // before its waits are judged
		c.leastAck = min(c.leastAck, l.Percentile(0))
	}
	c.readWaits(now)
	for i := range c.producers {
		c.addWaits(i, &total)
	}
	total[result.Sent] = c.sent(total[result.Sent], c.delivered.least(), last)
	for _, r := range c.producers {
		counts[Measure][result.Sent] += r.sent[Measure].Load()
	}
	delta := total.Sub(c.total)
	s.Counts, s.InFlight, s.Live = delta.Counts(c.run.Sends, c.run.Receives), total.InFlight(), total.Live()
	s.Total = total.Counts(c.run.Sends, c.run.Receives)
	s.Tester = c.meter.interval(now, &delta)
	c.tallyBounds(s)
	c.protocol = sumCounters(c.workers)
	s.Protocol = c.protocol
	if c.verified != nil {
		s.Verified = new(c.verified())
	}
	first := c.firstReceived()
	c.add(&s.Row, s.To.Sub(s.From), first, &total, &counts)
	if phase == Warmup {
		c.run.Latencies.Expect(&s.Latencies)
		c.step.Latencies.Expect(&s.Latencies)
	}
	c.findStalls(phase, now.Sub(c.start), last)
	c.marker.add(s)
	for _, p := range c.stalls.parts {
		s.Stalls = append(s.Stalls, p.PartStalls)
	}
	s.Stalled, c.stalls.fresh = c.stalls.fresh, false
	c.addRowGroups(&s.Row, s.To.Sub(s.From), first, last)
	c.last = s.To
	return s
}

// firstReceived returns when the first message of the step came, if that was since the last Collect; else 0.
func (c *Collector) firstReceived() (first time.Duration) {
	for _, r := range c.consumers {
		if at, _, ok := r.FirstAndLast(); ok && at >= c.last.Sub(c.start) && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// Protocol returns the protocol's own counters as of the last Collect; nil if there are none.
func (c *Collector) Protocol() []driver.Counter { return c.protocol }

// Tester returns perfmq's use of its machine over all intervals so far, with the steps of the wall clock up to now.
func (c *Collector) Tester(now time.Time) result.Tester {
	h := c.run.Tester
	forward, backward := c.meter.clockSteps(now)
	h.ClockForward, h.ClockBackward = h.ClockForward+forward, h.ClockBackward+backward
	if !c.meter.blind() {
		h.MemoryPeak = max(h.Memory, peakMemory())
	}
	return h
}

// collect also returns the number of messages received so far, without redeliveries.
func (r *ConsumerRecorder) collect(counts *[parts]Counters, latencies [parts]*result.Latencies) (once uint64) {
	r.visit(func(i int, p *ledger) {
		p.collect(&counts[i], latencies[i])
		once += p.n[result.Received] - p.n[result.Redelivered]
	})
	return once
}

// collect also returns the numbers of the messages.
func (r *ProducerRecorder) collect(counts *[parts]Counters, latencies [parts]*result.Latencies) (sum sends) {
	r.visit(func(i int, p *ledger) {
		p.collect(&counts[i], latencies[i])
		counts[i][result.Resent] += r.resent[i].Load()
		sum.handed, sum.begun = sum.handed+r.handed[i].Load(), sum.begun+r.sent[i].Load()
		sum.ended, sum.stored = sum.ended+result.Ended(p.n[:]), sum.stored+p.n[result.Completed]-p.withheld
	})
	return sum
}

// sumCounters adds up the counters of the same name, in the order in which the names first occur.
func sumCounters(workers []Worker) (sum []driver.Counter) {
	for _, w := range workers {
		sum = AddCounters(sum, w.Before)
		if w.Counters != nil {
			sum = AddCounters(sum, w.Counters.Counters())
		}
	}
	return sum
}

// AddCounters adds the counters of more to sum, by their names.
func AddCounters(sum, more []driver.Counter) []driver.Counter {
	for _, counter := range more {
		i := slices.IndexFunc(sum, func(c driver.Counter) bool { return c.Name == counter.Name })
		if i < 0 {
			sum = append(sum, counter)
			continue
		}
		sum[i].Value += counter.Value
	}
	return sum
}

// Phase is a part of a run. An interval lies in one phase, and a message belongs to the phase in which it was due to be
// sent: its latencies and its outcome count there, whenever they become known. (Where nothing is sent, it is the phase
// in which the message was received.)
type Phase uint8

// The phases of a run.
const (
	Warmup  Phase = iota // load, but the latencies of its messages do not enter the summary
	Measure              // load
	Drain                // no more sends; waiting for completions and deliveries
)

// String returns "warmup", "measure" or "drain".
func (p Phase) String() string { return [...]string{"warmup", "measure", "drain"}[p] }

// Run describes the run, for reporters.
type Run struct {
	ID                   int64 // the messages carry it
	Producing, Consuming bool
	Start                time.Time      // when the load began
	Ahead                *result.Offset // of the clock over that of the rendezvous then; nil without one
	Warmup               time.Duration  // from Start
	Protocol             string         // of the producers, or of the consumers if there are none
	ConsumerProtocol     string         // of the consumers
	Client               string         // of Protocol: driver.Native, or a client library
	ConsumerClient       string         // of ConsumerProtocol
	Destinations         []string
	Opening              bool              // connections are opened as a load
	Transacted           bool              // messages are sent or received in transactions
	Requests, Responds   bool              // messages sent are requests; messages received are answered
	Scenario             string            // name of the scenario; empty for a command line
	Steps                []string          // names of the steps
	Groups               []RunGroup        // of a scenario
	Labels               map[string]string // free texts of the user
	Windowed             bool              // losses are known during the run
}

// RunGroup is a group of a scenario, with its roles.
type RunGroup struct {
	Name            string
	Sends, Receives bool
	// Protocol and client of its producers, and of its consumers; empty without such.
	Protocol, ConsumerProtocol string
	Client, ConsumerClient     string
}

// Several reports whether the run has more than one step.
func (r *Run) Several() bool { return len(r.Steps) > 1 }

// Snapshot is a row of a result, with what only reporters during a run need. It does not change once it is published.
type Snapshot struct {
	result.Row
	From, To time.Time     // wall clock
	Total    result.Counts // at To
	// Protocol holds the protocol's own counters, as totals at To, added up over all workers.
	Protocol []driver.Counter
	// Depths are the numbers of messages at the broker at the end of the interval, by destination; missing where unknown.
	Depths []brokerside.Depth
	// Stalls are the sums so far; Stalled: some were found in the interval, and began earlier.
	Stalls  []PartStalls
	Stalled bool
	// Outage is the state of the outages at the end of the interval; nil without --reconnect.
	Outage *OutageProgress
	// SoFar is the run up to a second before, with findings, and thresholds as they stand; nil unless it was asked for.
	SoFar *Summary
	// Trace are the events of sampled messages, if they are traced.
	Trace []result.TraceEvent
	// EndedSteps are the steps that ended before the interval, if no earlier snapshot has them.
	EndedSteps []Summary
	// Numbers is what the process has learned of messages that another one judges; nil if none does.
	Numbers *verify.Side
	// Lost says which messages were found lost in the interval (--verify-window); empty for none.
	Lost string
}

// Empty reports whether nothing happened in the interval. A message counts as sent as soon as it has ended, which may
// be a moment before its delay is known: an interval without counts can have latencies.
func (s *Snapshot) Empty() bool {
	if s.Values() != [result.NumCounters]uint64{} || s.Stalled || s.Lost != "" || s.Live > 0 || len(s.Groups) > 0 {
		return false // a send may count in a later interval of its group than of the run
	}
	for kind := range s.Latencies {
		if len(s.latencies(result.Kind(kind))) > 0 {
			return false
		}
	}
	return true
}

// Join returns the snapshots of two consecutive intervals as one.
func (s *Snapshot) Join(next *Snapshot) *Snapshot {
	joined := *next
	joined.From, joined.Row = s.From, *s.Row.Join(&next.Row)
	joined.EndedSteps = slices.Concat(s.EndedSteps, next.EndedSteps)
	joined.Lost = cmp.Or(s.Lost, next.Lost)
	return &joined
}
