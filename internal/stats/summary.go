package stats

import (
	"cmp"
	"time"

	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Summary is the result of a run, of a step or of a group in one of these, with data for engine and outputs only. It
// has no rows. A group has the stalls of its workers, whether others stalled too or not; times, tester and limit are
// missing. Of several steps, the limit is the longest one, and the span of Offered is 0. Thresholds do not enter
// Outcome.Success.
type Summary struct {
	result.Result
	Rates
	// Name of the step or group.
	Name string
	// Loaded is the length of the load of a step.
	Loaded time.Duration
	// Sends and Receives tell which workers the step has. Counts have the roles of the run.
	Sends, Receives bool
	// Due is the number of messages that were due by the rates.
	Due uint64
	// Groups are the figures of each group.
	Groups []Summary
	// Ended are the steps of a run that has several, in order.
	Ended []Summary
	Tally *LoadTally // the waits of its workers
	// Values are the values of the metrics for thresholds, by name.
	Values map[string]float64
	// Err is the error that aborted the run, if there was one.
	Err error
	// Counters are the protocol's own, as in the last Snapshot.
	Counters []driver.Counter
	// Verified is the fate of the messages, with examples; nil if it was not asked for. With it Expected and Missing
	// are exact.
	Verified *verify.Result
	// Numbers is the last [Snapshot.Numbers].
	Numbers *verify.Side
}

// Find adds a finding, unless count is 0.
func (s *Summary) Find(kind, subject string, count uint64, values ...any) {
	if count > 0 {
		s.Findings = append(s.Findings, words.Find(kind, subject, count, values...))
	}
}

// Problems returns the texts of the problems among the findings.
func (s *Summary) Problems() []string { return result.Texts(s.Findings, result.Problem) }

// Warnings returns the texts of the warnings.
func (s *Summary) Warnings() []string { return result.Texts(s.Findings, result.Warning) }

// Notes returns the texts of the notes.
func (s *Summary) Notes() []string { return result.Texts(s.Findings, result.Note) }

// Metrics returns the metrics of the workers that there are.
func (s *Summary) Metrics() map[string]float64 {
	r := s.Result
	measured := *cmp.Or(r.Measured, &result.Counts{})
	for _, counts := range []*result.Counts{&r.Total, &measured} {
		if !s.Sends {
			counts.Producers = nil
		}
		if !s.Receives {
			counts.Consumers = nil
		}
	}
	r.Measured, r.Figures = &measured, s.FiguresOf(s.Sends, s.Receives)
	r.Rows = []result.Row{{Length: s.Tester.Wall, Tester: s.Tester}}
	return r.Metrics()
}

// sums adds up the intervals of a run or a step, or of a group in them.
type sums struct {
	Summary
	total, measured Counters // as of its begin
}

// add adds an interval of that length; first is the time of its first message received.
func (m *sums) add(row *result.Row, length, first time.Duration) {
	m.Tester.Follow(&row.Tester)
	m.Add(row, length, first)
	if row.Phase != result.Warmup {
		m.Latencies.Merge(row.Latencies)
	}
}

// periods sum up the intervals of the run, or of a group.
type periods struct {
	total     Counters        // as of the last Collect
	parts     [parts]Counters // of total, the share of messages
	run, step sums
}

// add adds an interval, with the counters at its end.
func (m *periods) add(row *result.Row, length, first time.Duration, total *Counters, share *[parts]Counters) {
	m.run.add(row, length, first)
	m.step.add(row, length, first)
	m.total, m.parts = *total, *share
}

func (m *periods) beginStep() {
	m.step = sums{total: m.total, measured: m.parts[Measure]}
	m.step.Name, m.step.Sends, m.step.Receives = m.run.Name, m.run.Sends, m.run.Receives
}

// sum returns the figures of the run, or of the present step. Their latencies are copies.
func (m *periods) sum(step bool) Summary {
	from := &m.run
	if step {
		from = &m.step
	}
	sum := from.Summary
	all, part := m.total.Sub(from.total), m.parts[Measure].Sub(from.measured)
	sum.Total, sum.Measured = all.Counts(sum.Sends, sum.Receives), new(part.Counts(sum.Sends, sum.Receives))
	sum.Latencies = sum.Latencies.Copy()
	sum.Latencies.Seal()
	return sum
}

// BeginStep lets the sums of a step begin with the last Collect, or with the run. Call it before the first Collect.
func (c *Collector) BeginStep() {
	c.tally = &LoadTally{workers: make([]workerTally, len(c.work)), producers: len(c.producers)}
	c.beginStep()
	c.step.Latencies = c.newLatencies()
	for _, g := range c.groups {
		g.beginStep()
	}
}

// EndStep returns the summary of the step that ends with the last Collect; the next one begins there.
func (c *Collector) EndStep(name string) Summary {
	c.stalls.decide(c.meter.pulse.stopped())
	sum := c.sumUp(true)
	sum.Name, sum.End, sum.Tally = name, c.last.UnixMicro(), c.tally
	c.stalls.step, c.stalls.more[1] = len(c.stalls.found), map[string]uint64{}
	c.BeginStep()
	return sum
}

// sumUp returns the figures of the run or of the present step, and of its groups.
func (c *Collector) sumUp(step bool) Summary {
	sum := c.sum(step)
	for _, g := range c.groups {
		own := g.sum(step)
		c.setStalls(&own, step, g.run.Name)
		sum.Groups = append(sum.Groups, own)
	}
	c.setStalls(&sum, step, "")
	return sum
}

// SumRun returns the figures of the run, as of the last Collect. Their latencies are copies.
func (c *Collector) SumRun() Summary { return c.sumUp(false) }

// SumsSoFar returns the figures of the run, and of the present step, as of the last Collect. Their latencies are
// copies.
func (c *Collector) SumsSoFar() (run, step Summary) { return c.sumUp(false), c.sumUp(true) }
