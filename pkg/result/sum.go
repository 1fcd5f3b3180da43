package result

// Sum is the result of a run so far, summed up from its rows during the run. It is not safe for concurrent use.
type Sum struct {
	result Result
}

// NewSum returns the sum of no rows.
func NewSum(head Head) *Sum {
	return &Sum{result: Result{Head: head, End: head.Start, Outcome: Outcome{Reason: "the run goes on", Status: 1}}}
}

// Add adds the next row of the run, with the histograms of its latencies.
func (s *Sum) Add(row *Row) {
	s.count(row)
	if row.Phase == Warmup {
		return
	}
	s.result.Latencies.add(&row.Latencies)
	s.result.Steps[len(s.result.Steps)-1].Latencies.add(&row.Latencies)
}

// count adds a row without its latencies.
func (s *Sum) count(row *Row) {
	r := &s.result
	if n := len(r.Steps); n == 0 || r.Steps[n-1].Name != row.Step {
		r.Steps = append(r.Steps, Step{Name: row.Step, Start: max(0, row.Time-row.Length)})
	}
	step := &r.Steps[len(r.Steps)-1]
	r.End, step.End = row.Time, row.Time
	r.Total.Add(&row.Counts)
	step.Counts.Add(&row.Counts)
	r.Tester.Follow(&row.Tester)
}

// Result returns the result so far, without rows. Add changes it.
func (s *Sum) Result() *Result { return &s.result }

// Add adds the figures of the same group elsewhere.
func (g *Group) Add(other *Group) {
	addTo(&g.Due, other.Due)
	g.Counts.Add(&other.Counts)
	g.Measured.Add(&other.Measured)
	g.Latencies.add(&other.Latencies)
}
