package page

import (
	"cmp"
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
	full         stats.Extremes // as of earlier versions: without intervals that are shorter than a second
	everReceived uint64         // in any phase
}

func (p *part) add(r *result.Row) {
	var row sums
	row.add(&r.Counts)
	if r.Phase == result.Measure {
		p.length += r.Length
		p.sums.add(&r.Counts)
		p.AddRow(r, p.everReceived > 0)
		if r.Length >= fullSecond {
			p.full.AddRow(r, p.everReceived > 0)
		}
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

// rated returns the result with the rates of its rows where it has none: the run continues or was killed, or an earlier
// version merged it, without lowest and highest seconds.
func (t *tally) rated(r *result.Result) *result.Result {
	c := *r
	c.Rows, c.Steps = nil, slices.Clone(r.Steps)
	if c.Figures == nil || len(r.Parts) > 0 {
		c.Figures = rates(r.Figures, r, &t.whole, t.steps...)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if p := t.step(i, s); p != nil && (s.Figures == nil || len(r.Parts) > 0) {
			s.Figures = rates(s.Figures, r, p, *p)
		}
	}
	return &c
}

// rates returns the known figures or those of rows for the roles of the run, and the lowest and highest rates where
// they are missing: over the steps that sent, and over those that received. Without an average, the parts of a merged
// result were apart.
func rates(known *result.Figures, r *result.Result, rows *part, steps ...part) *result.Figures {
	var f result.Figures
	rate := func(n uint64) *float64 {
		v := perSecond(n, rows.length)
		return &v
	}
	sends, receives := r.Total.Producers != nil, r.Total.Consumers != nil
	switch {
	case known != nil:
		f = *known
	case rows.length <= 0:
		return nil
	default:
		f.Span = rows.length
		if sends {
			f.Sent, f.Completed = rate(rows.sent), rate(rows.completed)
		}
		if receives {
			f.Received = rate(rows.received)
		}
	}
	var lowest, highest stats.Peaks
	for i := range steps {
		low, high := steps[i].Both()
		sent, received := f.Completed != nil && !steps[i].reads(), f.Received != nil
		low.Only(sent, received)
		high.Only(sent, received)
		lowest.Include(&low, 1)
		highest.Include(&high, -1)
	}
	f.MinimumCompleted = cmp.Or(f.MinimumCompleted, lowest.Completed.Extreme())
	f.MaximumCompleted = cmp.Or(f.MaximumCompleted, highest.Completed.Extreme())
	f.MinimumReceived = cmp.Or(f.MinimumReceived, lowest.Received.Extreme())
	f.MaximumReceived = cmp.Or(f.MaximumReceived, highest.Received.Extreme())
	return &f
}
