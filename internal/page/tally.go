package page

import (
	"slices"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// tally has the counts and rates of the rows of a run, as a whole and for each step.
type tally struct {
	whole stats.StepSummary
	steps []stats.StepSummary
}

func (t *tally) add(r *result.Row) {
	t.whole.AddRow(r)
	if n := len(t.steps); n == 0 || t.steps[n-1].Name != r.Step {
		t.steps = append(t.steps, stats.StepSummary{Name: r.Step})
	}
	t.steps[len(t.steps)-1].AddRow(r)
}

// step returns the rows of step number i of a result; nil if there are none.
func (t *tally) step(i int, s *result.Step) *stats.StepSummary {
	if i < len(t.steps) && t.steps[i].Name == s.Name {
		return &t.steps[i]
	}
	return nil
}

// complete reports whether the rows add up to the totals of the result.
func (t *tally) complete(r *result.Result) bool {
	total, n := r.Total.Values(), &t.whole.Total
	return total[result.Sent] == n[result.Sent] && total[result.Completed] == n[result.Completed] &&
		total[result.Received] == n[result.Received]
}

// reads reports that nothing was sent: the rate of receiving may then cover only the time from the first to the last
// message.
func reads(rows *stats.StepSummary) bool {
	return rows.Average.Sent == 0 && rows.Average.Completed == 0
}

// rated returns the result with the rates of its rows where it lacks them: the run continues or was killed.
func (t *tally) rated(r *result.Result) *result.Result {
	c := *r
	c.Rows, c.Steps = nil, slices.Clone(r.Steps)
	if c.Figures == nil {
		c.Figures = rates(r, &t.whole, t.steps...)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if p := t.step(i, s); p != nil && s.Figures == nil {
			s.Figures = rates(r, p, *p)
		}
	}
	return &c
}

// rates returns the rates of rows for the roles of the run, the lowest and highest over the steps that sent, or
// received; nil without rows.
func rates(r *result.Result, rows *stats.StepSummary, steps ...stats.StepSummary) *result.Figures {
	if rows.Average.Span <= 0 {
		return nil
	}
	sum := stats.StepSummary{
		Sends: r.Total.Producers != nil, Receives: r.Total.Consumers != nil, Average: rows.Average,
	}
	for i := range steps {
		low, high := steps[i].Minimum, steps[i].Maximum
		low.Only(!reads(&steps[i]), true)
		high.Only(!reads(&steps[i]), true)
		sum.Minimum.Include(&low, 1)
		sum.Maximum.Include(&high, -1)
	}
	return sum.Figures()
}
