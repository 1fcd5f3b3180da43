package page

import (
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// fullSecond is [stats.FullSecond] in the microseconds of a result.
const fullSecond = int64(stats.FullSecond / time.Microsecond)

// sums are the messages of some rows or workers.
type sums struct{ sent, completed, received uint64 }

func (s *sums) add(c *result.Counts) {
	if p := c.Producers; p != nil {
		s.sent, s.completed = s.sent+p.Sent, s.completed+p.Completed
	}
	if c := c.Consumers; c != nil {
		s.received += c.Received
	}
}

func (s sums) String() string {
	return fmt.Sprintf("%d messages sent, %d completed, %d received", s.sent, s.completed, s.received)
}

// part has the sums of the measured rows of a run or a step, and the seconds that are the lowest and the highest.
type part struct {
	step   string
	length int64
	sums
	stats.Extremes
	everReceived uint64 // in any phase
}

func (p *part) add(r *result.Row) {
	var row sums
	row.add(&r.Counts)
	if r.Phase == result.Measure {
		p.length += r.Length
		p.sums.add(&r.Counts)
		p.AddRow(r, p.everReceived > 0)
	}
	p.everReceived += row.received
}

// reads reports that nothing was sent: the rate of receiving may then cover only the time from the first to the last
// message.
func (p *part) reads() bool { return p.sent == 0 && p.completed == 0 }

// tally has the sums of the rows of a run, as a whole and for each step.
type tally struct {
	whole part
	steps []part
	all   sums // in any phase
}

func (t *tally) add(r *result.Row) {
	t.whole.add(r)
	if n := len(t.steps); n == 0 || t.steps[n-1].step != r.Step {
		t.steps = append(t.steps, part{step: r.Step})
	}
	t.steps[len(t.steps)-1].add(r)
	t.all.add(&r.Counts)
}

// step returns the rows of step number i of a result; nil if there are none.
func (t *tally) step(i int, s *result.Step) *part {
	if i < len(t.steps) && t.steps[i].step == s.Name {
		return &t.steps[i]
	}
	return nil
}

// complete reports whether the rows add up to the totals of the result.
func (t *tally) complete(r *result.Result) bool {
	var total sums
	total.add(&r.Total)
	return t.all == total
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
func rates(r *result.Result, rows *part, steps ...part) *result.Figures {
	if rows.length <= 0 {
		return nil
	}
	f := &result.Figures{Span: rows.length}
	rate := func(n uint64) *float64 {
		v := perSecond(n, rows.length)
		return &v
	}
	sends, receives := r.Total.Producers != nil, r.Total.Consumers != nil
	if sends {
		f.Sent, f.Completed = rate(rows.sent), rate(rows.completed)
	}
	if receives {
		f.Received = rate(rows.received)
	}
	var lowest, highest stats.Peaks
	for i := range steps {
		low, high := steps[i].Both()
		low.Only(sends && !steps[i].reads(), receives)
		high.Only(sends && !steps[i].reads(), receives)
		lowest.Include(&low, 1)
		highest.Include(&high, -1)
	}
	f.MinimumCompleted, f.MaximumCompleted = lowest.Completed.IfKnown(), highest.Completed.IfKnown()
	f.MinimumReceived, f.MaximumReceived = lowest.Received.IfKnown(), highest.Received.IfKnown()
	return f
}
