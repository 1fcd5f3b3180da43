package result

import "errors"

// Sum is the result of a run so far, summed up from its rows during the run. It is not safe for concurrent use.
type Sum struct {
	result Result
	warmup Latencies
}

// NewSum returns the sum of no rows.
func NewSum(head Head) *Sum {
	return &Sum{result: Result{Head: head, End: head.Start, Outcome: Outcome{Reason: "the run goes on", Status: 1}}}
}

// Add adds the next row of the run, with the histograms of its latencies.
func (s *Sum) Add(row *Row) error {
	if err := s.count(row); err != nil {
		return err
	}
	if row.Leftover != nil {
		if err := s.warmup.add(row.Leftover); err != nil {
			return err
		}
	}
	if row.Phase == Warmup {
		return s.warmup.add(&row.Latencies)
	}
	step := &s.result.Steps[len(s.result.Steps)-1]
	return errors.Join(s.result.Latencies.add(&row.Latencies), step.Latencies.add(&row.Latencies))
}

// count adds a row without its latencies.
func (s *Sum) count(row *Row) error {
	r := &s.result
	if n := len(r.Steps); n == 0 || r.Steps[n-1].Name != row.Step {
		r.Steps = append(r.Steps, Step{Name: row.Step, Start: max(0, row.Time-row.Length)})
	}
	step := &r.Steps[len(r.Steps)-1]
	r.End, step.End = row.Time, row.Time
	r.Tester.Cores, r.Tester.Memory = row.Tester.Cores, max(r.Tester.Memory, row.Tester.Memory)
	return errors.Join(r.Total.add(&row.Counts), step.Counts.add(&row.Counts), r.Tester.add(&row.Tester))
}

// Result returns the result so far, without rows, and the latencies of the messages that were due in the warm-up. Both
// share nothing with the sum.
func (s *Sum) Result() (r *Result, warmup Latencies) {
	c := s.result
	c.Steps = make([]Step, len(s.result.Steps))
	c.Total, c.Latencies = s.result.Total.clone(), s.result.Latencies.clone()
	for i := range c.Steps {
		c.Steps[i] = s.result.Steps[i]
		c.Steps[i].Counts, c.Steps[i].Latencies = c.Steps[i].Counts.clone(), c.Steps[i].Latencies.clone()
	}
	return &c, s.warmup.clone()
}

func (c *Counts) clone() (copied Counts) {
	_ = copied.add(c) // adding to zero always fits
	return copied
}

func (l *Latencies) clone() (copied Latencies) {
	_ = copied.add(l) // the same
	return copied
}

// Add adds the figures of the same group elsewhere.
func (g *Group) Add(other *Group) error {
	return errors.Join(addTo(&g.Due, other.Due), g.Counts.add(&other.Counts), g.Measured.add(&other.Measured),
		g.Latencies.add(&other.Latencies))
}
