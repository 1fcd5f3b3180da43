package stats

import (
	"time"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// StepSummary has the figures of a step, or of a group in a step or the whole run: then its latencies are nil where
// there is no value, its stalls are those of its workers, whether others stalled too or not, and times, health and
// limit are missing.
type StepSummary struct {
	// Name of the step, and why its load ended.
	Name, Reason string
	// Start and End of the step, drain included, and how long its load took.
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
	Health    Health
	Extremes  Extremes // Minimum and Maximum are of them
	Minimum   Peaks
	Maximum   Peaks
	Average   Average
	Offered   Offered
	Stalls    Stalls
	// Groups are the figures of each group of the step.
	Groups []StepSummary
	Tally  *LoadTally // the waits of its workers
	Limit  Limit

	// Figures are the values of the metrics for thresholds, by name.
	Figures map[string]float64
	// Thresholds are the demands on the figures, with the measured values.
	Thresholds []threshold.Outcome
}

// stepMeter sums up the intervals of one step.
type stepMeter struct {
	sum            StepSummary
	total, measure Counters // as of its begin
}

// Split lets the collector sum up each step as well: [Collector.EndStep] returns it. Call it before the first Collect.
func (c *Collector) Split() { c.beginStep() }

func (c *Collector) beginStep() {
	c.limits.tally = newTally(len(c.producers), len(c.work.workers))
	c.step = &stepMeter{total: c.total, measure: c.parts[Measure]}
	c.step.sum.Start = c.last
	c.step.sum.Latencies = c.newLatencies()
	for _, g := range c.groups {
		g.beginStep()
	}
}

// add takes an interval, before the collector takes its totals.
func (m *stepMeter) add(c *Collector, s *Snapshot) {
	m.sum.Health.Add(&s.Health)
	switch s.Phase {
	case Warmup:
		m.sum.Latencies.Expect(&s.Latencies)
		return
	case Measure:
		m.sum.Extremes.add(s, c.total[result.Received] > m.total[result.Received])
		m.sum.Average.add(s)
	case Drain:
	}
	m.sum.Latencies.Merge(s.Latencies)
}

// EndStep returns the summary of the step that ends with the last Collect; the next one begins there.
func (c *Collector) EndStep(name string) StepSummary {
	sum := c.step.sum
	sum.Name, sum.End, sum.Tally = name, c.last, c.limits.tally
	sum.Total, sum.Measured = c.total.Sub(c.step.total), c.parts[Measure].Sub(c.step.measure)
	sum.Minimum, sum.Maximum = sum.Extremes.Both()
	c.stalls.decide(c.meter.pulse.stopped())
	sum.Groups = c.groupSums(true)
	sum.Stalls = c.stalls.endStep()
	c.beginStep()
	return sum
}

// SoFar returns the figures of the run, and of the present step, as of the last Collect. Their latencies are copies.
func (c *Collector) SoFar() (whole, step StepSummary) {
	whole = StepSummary{
		Total: c.total, Measured: c.parts[Measure], Latencies: c.whole.Copy(), Health: c.meter.sum, Extremes: c.extremes,
		Average: c.average,
		Groups:  c.GroupSums(), Stalls: c.StallsFound(),
	}
	whole.Minimum, whole.Maximum = c.extremes.Both()
	if c.step == nil {
		return whole, whole
	}
	step = c.step.sum
	step.Stalls = c.stalls.sum(c.stalls.first(true), listed)
	step.Total, step.Measured = c.total.Sub(c.step.total), c.parts[Measure].Sub(c.step.measure)
	step.Latencies = c.step.sum.Latencies.Copy()
	step.Minimum, step.Maximum = step.Extremes.Both()
	step.Groups = c.groupSums(true)
	return whole, step
}
