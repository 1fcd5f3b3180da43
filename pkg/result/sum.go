package result

// NewSum returns the result of a run without rows so far. [Result.AddRow] adds them.
func NewSum(head Head) *Result {
	return &Result{Head: head, End: head.Start, Outcome: Outcome{Reason: "the run goes on", Status: 1}}
}

// AddRow adds the next row of the run, with the histograms of its latencies, to its sums.
func (r *Result) AddRow(row *Row) {
	r.count(row)
	if row.Phase == Warmup {
		return
	}
	r.Latencies.add(&row.Latencies)
	r.Steps[len(r.Steps)-1].Latencies.add(&row.Latencies)
}

// count adds a row without its latencies.
func (r *Result) count(row *Row) {
	if n := len(r.Steps); n == 0 || r.Steps[n-1].Name != row.Step {
		r.Steps = append(r.Steps, Step{Name: row.Step, Start: max(0, row.Time-row.Length)})
	}
	step := &r.Steps[len(r.Steps)-1]
	r.End, step.End = row.Time, row.Time
	r.Total.Add(&row.Counts)
	step.Counts.Add(&row.Counts)
	r.Tester.Follow(&row.Tester)
}

// Add adds the figures of the same group elsewhere.
func (g *Group) Add(other *Group) {
	addTo(&g.Due, other.Due)
	g.Counts.Add(&other.Counts)
	g.Measured.Add(&other.Measured)
	g.Latencies.add(&other.Latencies)
}
