package page

import (
	"slices"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// step returns the sums of the rows of step number i of a result; nil if there are none.
func (r *Run) step(i int, s *result.Step) *stats.Summary {
	if i < len(r.steps) && r.steps[i].Name == s.Name {
		return &r.steps[i]
	}
	return nil
}

// reads reports that nothing was sent: the rate of receiving may then cover only the time from the first to the last
// message.
func reads(rows *stats.Summary) bool {
	return rows.Average.Sent == 0 && rows.Average.Completed == 0
}

// rated returns the result with the rates of its rows where it lacks them: the run continues or was killed.
func (r *Run) rated(read *result.Result) *result.Result {
	c := *read
	c.Rows, c.Steps = nil, slices.Clone(read.Steps)
	if c.Figures == nil {
		c.Figures = rates(read, &r.rows, r.steps...)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if rows := r.step(i, s); rows != nil && s.Figures == nil {
			s.Figures = rates(read, rows, *rows)
		}
	}
	return &c
}

// rates returns the rates of rows for the roles of the run, the lowest and highest over the steps that sent, or
// received; nil without rows.
func rates(r *result.Result, rows *stats.Summary, steps ...stats.Summary) *result.Figures {
	if rows.Average.Span <= 0 {
		return nil
	}
	sum := stats.Rates{Average: rows.Average}
	for i := range steps {
		low, high := steps[i].Minimum, steps[i].Maximum
		low.Only(!reads(&steps[i]), true)
		high.Only(!reads(&steps[i]), true)
		sum.Minimum.Include(&low, 1)
		sum.Maximum.Include(&high, -1)
	}
	return sum.FiguresOf(r.Total.Producers != nil, r.Total.Consumers != nil)
}
