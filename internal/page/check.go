package page

import (
	"errors"
	"fmt"
	"math"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// ErrImpossible is wrapped by errors about a result whose numbers contradict each other.
var ErrImpossible = errors.New("no run can have these numbers")

// check refuses a result whose numbers contradict each other, for example more messages completed than sent, or a
// minimum above the average of the same seconds: readers would believe the page.
func check(r *result.Result, t *tally) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrImpossible, fmt.Sprintf(format, args...))
	}
	for _, c := range []struct {
		of     string
		counts *result.Counts
	}{{"in all", &r.Total}, {"after the warm-up", r.Measured}} {
		if c.counts == nil || c.counts.Producers == nil {
			continue
		}
		p := c.counts.Producers
		if ended := p.Completed + failed(p); ended > p.Sent {
			return refuse("%s, %d messages succeeded or failed of %d sent", c.of, ended, p.Sent)
		}
	}
	if t.over {
		return refuse("in the rows, messages succeeded before they were sent")
	}
	if err := checkTotals(r, t); err != nil {
		return refuse("%v", err)
	}
	if r.Expected != nil && r.Missing != nil && *r.Missing > *r.Expected {
		return refuse("%d messages are missing of %d expected", *r.Missing, *r.Expected)
	}
	if err := checkLatencies(&r.Latencies); err != nil {
		return err
	}
	complete := t.complete(r) && len(r.Parts) == 0
	if err := checkFigures(r.Figures, &t.whole, complete, len(r.Steps) < 2); err != nil {
		return refuse("%v", err)
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if err := checkLatencies(&s.Latencies); err != nil {
			return fmt.Errorf("step %q: %w", s.Name, err)
		}
		var rows *part
		if i < len(t.steps) && t.steps[i].step == s.Name {
			rows = &t.steps[i]
		}
		if err := checkFigures(s.Figures, rows, complete, true); err != nil {
			return refuse("step %q: %v", s.Name, err)
		}
	}
	return nil
}

// checkTotals compares the totals with the sums over steps and workers, and with the rows, of which some may be lost. A
// merged result may lack workers.
func checkTotals(r *result.Result, t *tally) error {
	if len(r.Parts) > 0 {
		return nil
	}
	type sums struct{ sent, completed, received uint64 }
	add := func(to *sums, c *result.Counts) {
		if p := c.Producers; p != nil {
			to.sent, to.completed = to.sent+p.Sent, to.completed+p.Completed
		}
		if c := c.Consumers; c != nil {
			to.received += c.Received
		}
	}
	var total, steps, workers sums
	add(&total, &r.Total)
	for i := range r.Steps {
		add(&steps, &r.Steps[i].Counts)
	}
	for i := range r.Workers {
		add(&workers, &r.Workers[i].Counts)
	}
	text := func(s sums) string {
		return fmt.Sprintf("%d messages sent, %d completed, %d received", s.sent, s.completed, s.received)
	}
	for _, parts := range []struct {
		of    string
		there bool
		sums  sums
	}{{"steps", len(r.Steps) > 0, steps}, {"workers", len(r.Workers) > 0, workers}} {
		if parts.there && parts.sums != total {
			return fmt.Errorf("%s in all, and %s by the sums of the %s", text(total), text(parts.sums), parts.of)
		}
	}
	rows := sums{t.total.Sent, t.total.Completed, t.got}
	if rows.sent > total.sent || rows.completed > total.completed || rows.received > total.received {
		return fmt.Errorf("%s in all, and %s by the rows", text(total), text(rows))
	}
	return nil
}

func checkLatencies(l *result.Latencies) error {
	for _, name := range result.Names() {
		l := l.Get(name)
		switch {
		case l == nil || l.Count <= 0:
		case l.Mean() > float64(l.Max):
			return fmt.Errorf("%w: the average %s time is above the maximum", ErrImpossible, name)
		case l.Sum < l.Max:
			return fmt.Errorf("%w: the sum of all %s times is below the maximum", ErrImpossible, name)
		}
	}
	return nil
}

// checkFigures compares rates with each other and, if the rows are complete, with the rows. exact is true if the rates
// cover all these rows.
func checkFigures(f *result.Figures, rows *part, complete, exact bool) error {
	if f == nil {
		return nil
	}
	for _, c := range []struct {
		name        string
		average     *float64
		least, most *result.Extreme
		best        func(*part) *best
	}{
		{"completed", f.Completed, f.MinimumCompleted, f.MaximumCompleted, func(p *part) *best { return &p.bestCompleted }},
		{"received", f.Received, f.MinimumReceived, f.MaximumReceived, func(p *part) *best { return &p.bestReceived }},
	} {
		if c.least != nil && c.most != nil && c.least.PerSecond > c.most.PerSecond {
			return fmt.Errorf("the minimum rate of messages %s, %s, is above the maximum, %s", c.name, number(c.least.PerSecond),
				number(c.most.PerSecond))
		}
		// A minimum is over at least stats.EnoughSeconds full seconds of the measured time.
		if c.least != nil && c.average != nil &&
			float64(stats.EnoughSeconds*fullSecond)*c.least.PerSecond > *c.average*float64(f.Span)*1.001 {
			return fmt.Errorf("the minimum rate of messages %s, %s, is above the average, %s", c.name, number(c.least.PerSecond),
				number(*c.average))
		}
		if !complete || rows == nil {
			continue
		}
		b := c.best(rows)
		for _, e := range []struct {
			name  string
			given *result.Extreme
			rows  float64
		}{{"minimum", c.least, b.rates.low}, {"maximum", c.most, b.rates.high}} {
			if e.given == nil || near(e.given.PerSecond, e.rows) && b.known() {
				continue
			}
			// Extremes may omit seconds without messages to receive, and steps without such workers.
			if exact && c.name == "completed" || e.given.PerSecond > rows.highest*1.001 {
				return fmt.Errorf("the %s rate of messages %s is %s; that of the rows is %s", e.name, c.name,
					number(e.given.PerSecond), number(e.rows))
			}
		}
	}
	return checkAverages(f, rows, complete)
}

// checkAverages compares averages with the counts of the rows. The measured time may be longer than the rows: a short
// interval without messages has no row.
func checkAverages(f *result.Figures, rows *part, complete bool) error {
	if !complete || rows == nil {
		return nil
	}
	if f.Span < rows.length && !rows.reads() {
		return fmt.Errorf("the measured time is %s; that of the rows is %s", span(f.Span), span(rows.length))
	}
	for _, c := range []struct {
		name  string
		given *float64
		count uint64
	}{{"sent", f.Sent, rows.sent}, {"completed", f.Completed, rows.completed}, {"received", f.Received, rows.received}} {
		if c.given == nil || near(*c.given, perSecond(c.count, f.Span)) {
			continue
		}
		// The span is cut to microseconds, of which a short one has few.
		if *c.given < perSecond(c.count, f.Span+1) || f.Span > 0 && *c.given > perSecond(c.count, f.Span) {
			return fmt.Errorf("the average rate of messages %s is %s; that of the rows is %s", c.name, number(*c.given),
				number(perSecond(c.count, f.Span)))
		}
	}
	return nil
}

// near tolerates the rounding of times to microseconds.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b))+1e-6 }

// failed returns the number of messages that were not accepted.
func failed(p *result.Producers) uint64 {
	return p.Rejected + p.Released + p.Modified + p.Failed + p.Unconfirmed
}
