package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// StepSummary has the figures of a step, or of a group in a step or the whole run. A group has nil for latencies
// without a value, and the stalls of its workers, whether others stalled too or not; times, health and limit are
// missing.
type StepSummary struct {
	// Name of the step, and why its load ended.
	Name, Reason string
	// Start and End of the step, drain included, and the length of its load.
	Start, End time.Time
	Loaded     time.Duration
	// Sends and Receives tell which workers the step has.
	Sends, Receives bool
	// Delivered: consumers of the step receive from all destinations to which it sends, without a delay.
	Delivered bool
	// Due is the number of messages that were due by the rates.
	Due uint64

	Total     Counters         // of the step, warm-up included
	Measured  Counters         // of messages due after the warm-up; waits and LateSends are of no message, and 0
	Latencies result.Latencies // of messages due after the warm-up
	Tester    result.Tester
	Extremes  Extremes // Minimum and Maximum are of them
	Minimum   Peaks
	Maximum   Peaks
	Average   Average
	Offered   Offered
	// Stalls are nil if they were not looked for. MoreStalls are measured ones beside them, none of them longer.
	Stalls     []result.Stall
	MoreStalls uint64
	// Groups are the figures of each group of the step.
	Groups []StepSummary
	Tally  *LoadTally // the waits of its workers
	Limit  result.Limit

	// Metrics are the values of the metrics for thresholds, by name.
	Metrics map[string]float64
	// Thresholds are the demands on them, with the measured values.
	Thresholds []result.Threshold
}

// Result returns the figures as results have them, for their metrics: without groups, and with one row for all
// processor time.
func (s *StepSummary) Result() *result.Result {
	measured := result.NewCounts(s.Measured[:], s.Sends, s.Receives, nil)
	return &result.Result{
		Total: result.NewCounts(s.Total[:], s.Sends, s.Receives, nil), Measured: &measured, Latencies: s.Latencies,
		Figures: s.Figures(), Stalls: s.Stalls, Unlisted: s.MoreStalls, End: s.End.UnixMicro(),
		Rows: []result.Row{{
			Length: s.Tester.Wall, Tester: s.Tester,
		}},
	}
}

// Figures returns the rates and extremes.
func (s *StepSummary) Figures() *result.Figures {
	a, o := &s.Average, &s.Offered
	average := func(known bool, n uint64) *float64 {
		if !known || a.Span <= 0 {
			return nil
		}
		v := a.PerSecond(n)
		return &v
	}
	f := &result.Figures{
		Span: a.Span.Microseconds(), Sent: average(s.Sends, a.Sent), Completed: average(s.Sends, a.Completed),
		Received: average(s.Receives, a.Received), CompletedBytes: average(s.Sends, a.CompletedBytes),
		ReceivedBytes: average(s.Receives, a.ReceivedBytes),
	}
	if a.Read {
		since := a.Since.Microseconds()
		f.Since = &since
	}
	if o.Known() {
		due, unsent := o.Due, o.Unsent()
		f.Due, f.Unsent = &due, &unsent
		if o.Span > 0 {
			v := o.Rate
			f.Offered = &v
		}
	}
	low, high := s.Minimum, s.Maximum
	low.Only(s.Sends, s.Receives)
	high.Only(s.Sends, s.Receives)
	f.MinimumCompleted, f.MaximumCompleted = low.Completed.IfKnown(), high.Completed.IfKnown()
	f.MinimumReceived, f.MaximumReceived = low.Received.IfKnown(), high.Received.IfKnown()
	return f
}

// AddRow adds a row of a result to the counts and rates. first is the time of the first message of a backlog; 0 if that
// is unknown.
func (s *StepSummary) AddRow(row *result.Row, first time.Duration) {
	n := row.Values()
	if row.Phase == result.Measure {
		interval := stretch{0, row.Length, row.Time, row.Elapsed}
		s.Extremes.add(n[result.Completed], n[result.Received], interval, s.Total[result.Received] > 0, first)
		s.Average.Add(time.Duration(row.Length)*time.Microsecond, n[:])
		s.Minimum, s.Maximum = s.Extremes.Both()
	}
	for i := range n {
		s.Total[i] += n[i]
	}
}

// sums adds up the intervals of a run or a step, or of a group in them.
type sums struct {
	StepSummary
	total, measured Counters // as of its begin
}

// add adds an interval; received is the number of messages received before it, and first the time of its first one.
func (m *sums) add(s *Snapshot, received uint64, first time.Duration) {
	m.Tester.Follow(&s.Tester)
	switch s.Phase {
	case result.Warmup:
		return
	case result.Measure:
		interval := stretch{0, s.To.Sub(s.From).Microseconds(), s.Time, s.Elapsed}
		m.Extremes.add(s.Get(result.Completed), s.Get(result.Received), interval,
			received > m.total[result.Received], first)
		counts := s.Values()
		m.Average.Add(s.To.Sub(s.From), counts[:])
	}
	m.Latencies.Merge(s.Latencies)
}

// upTo returns the figures up to the time with these counters. Their latencies are copies.
func (m *sums) upTo(total, measured *Counters) StepSummary {
	sum := m.StepSummary
	sum.Total, sum.Measured = total.Sub(m.total), measured.Sub(m.measured)
	sum.Latencies = sum.Latencies.Copy()
	sum.Latencies.Seal()
	sum.Minimum, sum.Maximum = sum.Extremes.Both()
	return sum
}

// SplitSteps lets the collector sum up each step as well: [Collector.EndStep] returns it. Call it before the first
// Collect.
func (c *Collector) SplitSteps() { c.beginStep() }

func (c *Collector) beginStep() {
	c.newTally()
	c.step = &sums{total: c.total, measured: c.parts[Measure]}
	c.step.Start = c.last
	c.step.Latencies = c.newLatencies()
	for _, g := range c.groups {
		g.step = sums{StepSummary: g.named(), total: g.total, measured: g.parts[Measure]}
	}
}

// EndStep returns the summary of the step that ends with the last Collect; the next one begins there.
func (c *Collector) EndStep(name string) StepSummary {
	c.stalls.decide(c.meter.pulse.stopped())
	sum := c.stepSoFar()
	sum.Name, sum.End, sum.Tally = name, c.last, c.tally
	c.stalls.step, c.stalls.more[1] = len(c.stalls.found), map[string]uint64{}
	c.beginStep()
	return sum
}

func (c *Collector) stepSoFar() StepSummary {
	sum := c.step.upTo(&c.total, &c.parts[Measure])
	sum.Groups = c.groupSums(true)
	c.setStalls(&sum, true, "")
	return sum
}

// SumRun returns the figures of the run, as of the last Collect. Their latencies are copies.
func (c *Collector) SumRun() StepSummary {
	sum := c.run.upTo(&c.total, &c.parts[Measure])
	sum.Groups = c.groupSums(false)
	c.setStalls(&sum, false, "")
	return sum
}

// SumsSoFar returns the figures of the run, and of the present step, as of the last Collect. Their latencies are
// copies.
func (c *Collector) SumsSoFar() (run, step StepSummary) {
	run = c.SumRun()
	if c.step == nil {
		return run, run
	}
	return run, c.stepSoFar()
}
