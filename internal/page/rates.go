package page

import (
	"slices"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// rated returns the result with the rates of its rows where it lacks them: the run continues or was killed.
func (r *Run) rated(read *result.Result) *result.Result {
	c := *read
	c.Rows, c.Steps = nil, slices.Clone(read.Steps)
	if c.Figures == nil {
		c.Figures = rates(read, &r.rows, r.steps...)
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Figures == nil && i < len(r.steps) && r.steps[i].Name == s.Name {
			s.Figures = rates(read, &r.steps[i].Rates, r.steps[i])
		}
	}
	return &c
}

// rates returns the rates of rows for the roles of the run, the lowest and highest over the steps that sent, or
// received; nil without rows.
func rates(r *result.Result, rows *stats.Rates, steps ...stats.Summary) *result.Figures {
	if rows.Average.Span <= 0 {
		return nil
	}
	sum := stats.Rates{Average: rows.Average}
	for i := range steps {
		low, high, a := steps[i].Minimum, steps[i].Maximum, &steps[i].Average
		sends := a.Sent > 0 || a.Completed > 0
		low.Only(sends, true)
		high.Only(sends, true)
		sum.Minimum.Include(&low, 1)
		sum.Maximum.Include(&high, -1)
	}
	return sum.FiguresOf(r.Total.Producers != nil, r.Total.Consumers != nil)
}
