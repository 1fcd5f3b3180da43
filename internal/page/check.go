package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// ErrImpossible is wrapped by errors about a result with contradictory numbers.
var ErrImpossible = errors.New("no run can have these numbers")

// check refuses a result with contradictory numbers, for example more messages completed than sent: readers
// would believe the page.
func check(r *result.Result, t *tally) error {
	for _, err := range []error{checkCounts(r), checkVerification(r), checkThresholds(r), checkRates(r, t)} {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrImpossible, err)
		}
	}
	return nil
}

// checkCounts compares the totals with the sums over steps and workers; package result compares steps with rows. A
// merged result may lack workers.
func checkCounts(r *result.Result) error {
	for of, counts := range map[string]*result.Counts{"in all": &r.Total, "after the warm-up": r.Measured} {
		if counts == nil || counts.Producers == nil {
			continue
		}
		if p := counts.Producers; p.Completed+failed(p) > p.Sent {
			return fmt.Errorf("%s, %d messages succeeded or failed of %d sent", of, p.Completed+failed(p), p.Sent)
		}
	}
	if r.Expected != nil && r.Missing != nil && *r.Missing > *r.Expected {
		return fmt.Errorf("%d messages are missing of %d expected", *r.Missing, *r.Expected)
	}
	if len(r.Parts) > 0 {
		return nil
	}
	var total, steps, workers sums
	total.add(&r.Total)
	for i := range r.Steps {
		steps.add(&r.Steps[i].Counts)
	}
	for i := range r.Workers {
		workers.add(&r.Workers[i].Counts)
	}
	switch {
	case len(r.Steps) > 0 && steps != total:
		return fmt.Errorf("%v in all, and %v by the sums of the steps", total, steps)
	case len(r.Workers) > 0 && workers != total:
		return fmt.Errorf("%v in all, and %v by the sums of the workers", total, workers)
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
	for allow, count := range map[string]uint64{"lost": t.Lost, "left": t.Left, "damaged": t.Damaged} {
		if r.Outcome.Success && count > 0 && !slices.Contains(plan.Allow, allow) {
			return fmt.Errorf("a success with %d messages %s", count, allow)
		}
	}
	return nil
}

// checkThresholds compares the verdict on each threshold with its measured value, latencies with the result's,
// and the exit status with the verdicts. Medians are judged over several runs.
func checkThresholds(r *result.Result) error {
	for i := range r.Thresholds {
		x := &r.Thresholds[i]
		t, err := threshold.Parse(x.Threshold)
		if err != nil || t.Median { // of another version, or judged over the repeats
			continue
		}
		latency, known := 0.0, false
		if of := latenciesOf(r, x.Step); of != nil && t.Metric.Group == "" {
			latency, known = (&result.Result{Latencies: *of}).Metrics()[t.Metric.Name]
		}
		switch {
		case !x.Kept && r.Outcome.Success && r.Outcome.Status == 0:
			return fmt.Errorf("the threshold %q is not kept, and the exit status is 0", x.Threshold)
		case x.Measured == nil && x.Kept:
			return fmt.Errorf("the threshold %q is kept, and was not measured", x.Threshold)
		case x.Measured == nil:
		case t.Judge(*x.Measured, 0).Kept != x.Kept && !t.OfTarget:
			return fmt.Errorf("the threshold %q is kept: %t, with a measured value of %s", x.Threshold, x.Kept, measured(x))
		case known && !near(latency, *x.Measured):
			return fmt.Errorf("the threshold %q measured %s, and that latency is %s", x.Threshold, measured(x),
				span(int64(latency)))
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

// checkRates compares the latencies and rates of the run and its steps with each other and, if the rows are complete,
// the rates with the rows.
func checkRates(r *result.Result, t *tally) error {
	complete, merged := t.complete(r), len(r.Parts) > 0
	if merged && complete {
		if err := checkMerged(r.Figures, &t.whole); err != nil {
			return err
		}
	}
	if err := errors.Join(checkLatencies(&r.Latencies),
		checkFigures(r.Figures, &t.whole, complete && !merged, len(r.Steps) < 2)); err != nil {
		return err
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		rows := t.step(i, s)
		if err := errors.Join(checkLatencies(&s.Latencies),
			checkFigures(s.Figures, rows, complete && !merged && rows != nil, true)); err != nil {
			return fmt.Errorf("step %q: %w", s.Name, err)
		}
	}
	return nil
}

// checkMerged compares the averages of a merged result with its highest second. That may be lower than a rate by a
// quarter, since a row lasts from the first begin to the last end of the seconds of all parts.
func checkMerged(f *result.Figures, rows *stats.StepSummary) error {
	if f == nil || f.Since != nil {
		return nil
	}
	high := &rows.Maximum
	for name, c := range map[string]struct {
		average *float64
		high    result.Extreme
	}{"completed": {f.Completed, high.Completed}, "received": {f.Received, high.Received}} {
		if c.average != nil && c.high.Known() && *c.average > 1.25*c.high.PerSecond {
			return fmt.Errorf("the average rate of messages %s, %s, is above that of the highest second, %s", name,
				number(*c.average), number(c.high.PerSecond))
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
			return fmt.Errorf("the average %s time is above the maximum", name)
		case l.Sum < l.Max:
			return fmt.Errorf("the sum of all %s times is below the maximum", name)
		}
	}
	return nil
}

// checkFigures compares rates with each other and, if the rows are complete, with the rows. exact is true if the rates
// cover all these rows.
func checkFigures(f *result.Figures, rows *stats.StepSummary, complete, exact bool) error { //nolint:gocyclo // a list of checks
	if f == nil {
		return nil
	}
	for name, e := range map[string][2]*result.Extreme{
		"completed": {f.MinimumCompleted, f.MaximumCompleted}, "received": {f.MinimumReceived, f.MaximumReceived},
	} {
		if e[0] != nil && e[1] != nil && e[0].PerSecond > e[1].PerSecond {
			return fmt.Errorf("the minimum rate of messages %s, %s, is above the maximum, %s", name,
				number(e[0].PerSecond), number(e[1].PerSecond))
		}
	}
	if !complete {
		return nil
	}
	low, high, n := &rows.Minimum, &rows.Maximum, &rows.Average
	differs := func(what, name string, given, rows float64) error {
		return fmt.Errorf("the %s rate of messages %s is %s; the rows say %s", what, name, number(given), number(rows))
	}
	for _, c := range []struct {
		what, name string
		given      *result.Extreme
		rows       result.Extreme
	}{
		{"minimum", "completed", f.MinimumCompleted, low.Completed},
		{"maximum", "completed", f.MaximumCompleted, high.Completed},
		{"minimum", "received", f.MinimumReceived, low.Received},
		{"maximum", "received", f.MaximumReceived, high.Received},
	} {
		// A step may have none of its workers; the seconds of a backlog are cut at its first and last message.
		switch ofBacklog := c.name == "received" && f.Since != nil; {
		case c.given == nil || !exact || ofBacklog || c.rows.Known() && near(c.given.PerSecond, c.rows.PerSecond):
		case c.name == "received" && c.given.PerSecond <= high.Received.PerSecond*1.001: // seconds without any to receive
		default:
			return differs(c.what, c.name, c.given.PerSecond, c.rows.PerSecond)
		}
	}
	for _, c := range []struct {
		name    string
		average *float64
		count   uint64
	}{{"sent", f.Sent, n.Sent}, {"completed", f.Completed, n.Completed}, {"received", f.Received, n.Received}} {
		// The span is cut to microseconds: a short one has few.
		if rate := perSecond(c.count, f.Span); c.average != nil && !near(*c.average, rate) &&
			(*c.average < perSecond(c.count, f.Span+1) || f.Span > 0 && *c.average > rate) {
			return differs("average", c.name, *c.average, rate)
		}
	}
	// The measured time may be longer than the rows: a short interval without messages has no row.
	if length := n.Span.Microseconds(); f.Span < length && !reads(rows) {
		return fmt.Errorf("the measured time is %s; the rows say %s", span(f.Span), span(length))
	}
	return nil
}

// near tolerates the rounding of times to microseconds.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*max(math.Abs(a), math.Abs(b))+1e-6 }

// failed returns the number of messages that were not accepted.
func failed(p *result.Producers) uint64 {
	return p.Rejected + p.Released + p.Modified + p.Failed + p.Unconfirmed
}
