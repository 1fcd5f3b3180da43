package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
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
	if err := checkVerification(r); err != nil {
		return refuse("%v", err)
	}
	if err := checkThresholds(r); err != nil {
		return refuse("%v", err)
	}
	if err := checkMerged(r, t); err != nil {
		return refuse("%v", err)
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

// checkVerification compares the fates of the messages with their number, and with the success.
func checkVerification(r *result.Result) error {
	v := r.Verification
	if v == nil || !v.Known {
		return nil
	}
	t := &v.Total
	if expected, known := t.Expected+t.UnconfirmedArrived+t.RefusedArrived+t.WithheldArrived,
		t.Received+t.Lost+t.Left+t.Early; expected != known {
		return fmt.Errorf("of %d messages expected, %d were received, lost, left or early",
			t.Expected, known-min(known, expected-t.Expected))
	}
	var plan struct{ Allow []string }
	_ = json.Unmarshal(r.Plan, &plan) // its hash was compared: it is JSON, of whatever version
	for _, c := range []struct {
		allow string
		count uint64
	}{{"lost", t.Lost}, {"left", t.Left}, {"damaged", t.Damaged}} {
		if r.Outcome.Success && c.count > 0 && !slices.Contains(plan.Allow, c.allow) {
			return fmt.Errorf("a success with %d messages %s", c.count, c.allow)
		}
	}
	return nil
}

// checkThresholds compares the verdict on each threshold with its measured value, latencies with those of the result,
// and the exit status with the verdicts. Medians are judged over several runs.
func checkThresholds(r *result.Result) error {
	for i := range r.Thresholds {
		x := &r.Thresholds[i]
		t, err := threshold.Parse(x.Threshold)
		if err != nil || t.Median { // of another version, or judged over the repeats
			continue
		}
		if !x.Kept && r.Outcome.Success && r.Outcome.Status == 0 {
			return fmt.Errorf("the threshold %q is not kept, and the exit status is 0", x.Threshold)
		}
		if x.Measured == nil {
			if x.Kept {
				return fmt.Errorf("the threshold %q is kept, and was not measured", x.Threshold)
			}
			continue
		}
		if o := t.Judge(*x.Measured, 0); o.Kept != x.Kept && !t.OfTarget {
			return fmt.Errorf("the threshold %q is kept: %t, with a measured value of %s", x.Threshold, x.Kept, measured(x))
		}
		if of := latenciesOf(r, x.Step); of != nil && t.Metric.Group == "" {
			if v, ok := statistic(of, t.Metric.Name); ok && !near(v, *x.Measured) {
				return fmt.Errorf("the threshold %q measured %s, and that latency is %s", x.Threshold, measured(x), span(int64(v)))
			}
		}
	}
	return nil
}

// latenciesOf returns the latencies of a step or, without a name, of the run.
func latenciesOf(r *result.Result, step string) *result.Latencies {
	if step == "" {
		return &r.Latencies
	}
	if i := slices.IndexFunc(r.Steps, func(s result.Step) bool { return s.Name == step }); i >= 0 {
		return &r.Steps[i].Latencies
	}
	return nil
}

// statistic returns the value of a metric of latencies, such as "ack.p99"; false if it is none or not known.
func statistic(of *result.Latencies, metric string) (float64, bool) {
	name, what, _ := strings.Cut(metric, ".")
	l := of.Get(name)
	if l == nil || l.Count == 0 || l.Percentiles == nil {
		return 0, false
	}
	v, ok := map[string]float64{
		"mean": l.Mean(), "max": float64(l.Max), "p50": float64(l.P50), "p90": float64(l.P90), "p99": float64(l.P99),
		"p99.9": float64(l.P999), "p99.99": float64(l.P9999),
	}[what]
	return v, ok
}

// mergedSlack is how much lower the highest second of merged rows may be than a rate: a row lasts from the first begin
// to the last end of the seconds of all parts.
const mergedSlack = 1.25

// checkMerged compares the averages of a merged result with its highest second.
func checkMerged(r *result.Result, t *tally) error {
	if r.Figures == nil || len(r.Parts) == 0 || r.Figures.Since != nil || !t.complete(r) {
		return nil
	}
	for _, c := range []struct {
		name    string
		average *float64
		best    *best
	}{
		{"completed", r.Figures.Completed, &t.whole.bestCompleted}, {"received", r.Figures.Received, &t.whole.bestReceived},
	} {
		b := c.best.counted()
		if c.average != nil && b.known() && *c.average > mergedSlack*b.rates.high {
			return fmt.Errorf("the average rate of messages %s, %s, is above that of the highest second, %s", c.name,
				number(*c.average), number(b.rates.high))
		}
	}
	return nil
}

func checkLatencies(l *result.Latencies) error {
	for _, name := range result.KindNames() {
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
		// A step may have none of its workers; the seconds of a backlog are cut at its first and last message.
		if complete && rows != nil && exact && (c.name == "completed" || f.Since == nil) {
			if err := checkExtremes(c.name, c.least, c.most, c.best(rows), rows); err != nil {
				return err
			}
		}
	}
	return checkAverages(f, rows, complete)
}

// checkExtremes compares the lowest and the highest rate with the seconds of the rows. Rates of received messages may
// omit seconds without messages to receive.
func checkExtremes(name string, least, most *result.Extreme, b *best, rows *part) error {
	all := b.counted()
	received := rows.allReceived.counted()
	highest := max(received.rates.high, received.alone.high)
	for _, e := range []struct {
		name        string
		given       *result.Extreme
		rows, alone float64
	}{{"minimum", least, all.rates.low, b.alone.low}, {"maximum", most, all.rates.high, b.alone.high}} {
		switch {
		case e.given == nil, all.known() && near(e.given.PerSecond, e.rows):
		case b.full > 0 && near(e.given.PerSecond, e.alone): // of an earlier version
		case name == "received" && e.given.PerSecond <= highest*1.001:
		default:
			return fmt.Errorf("the %s rate of messages %s is %s; the rows say %s", e.name, name,
				number(e.given.PerSecond), number(e.rows))
		}
	}
	return nil
}

// checkAverages compares averages with the counts of the rows. The measured time may be longer than the rows: a short
// interval without messages has no row.
func checkAverages(f *result.Figures, rows *part, complete bool) error {
	if !complete || rows == nil {
		return nil
	}
	if f.Span < rows.length && !rows.reads() {
		return fmt.Errorf("the measured time is %s; the rows say %s", span(f.Span), span(rows.length))
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
			return fmt.Errorf("the average rate of messages %s is %s; the rows say %s", c.name, number(*c.given),
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
