package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// ErrImpossible is wrapped by errors about a result with contradictory numbers.
var ErrImpossible = errors.New("no run can have these numbers")

// check refuses a result with contradictory numbers, such as more messages completed than sent: readers would believe
// the page.
func (r *Run) check(read *result.Result) error {
	for _, err := range []error{
		checkCounts(read), checkVerification(read), checkThresholds(read), r.checkRates(read),
	} {
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
	var steps, workers []*result.Counts
	for i := range r.Steps {
		steps = append(steps, &r.Steps[i].Counts)
	}
	for i := range r.Workers {
		workers = append(workers, &r.Workers[i].Counts)
	}
	total := sum(&r.Total)
	for of, parts := range map[string][]*result.Counts{"steps": steps, "workers": workers} {
		if all := sum(parts...); len(parts) > 0 && all != total {
			return fmt.Errorf("%s in all, and %s by the sums of the %s", total, all, of)
		}
	}
	return nil
}

// sum returns the messages of some counts in words.
func sum(list ...*result.Counts) string {
	var sent, completed, received uint64
	for _, c := range list {
		n := c.Values()
		sent, completed, received = sent+n[result.Sent], completed+n[result.Completed], received+n[result.Received]
	}
	return fmt.Sprintf("%d messages sent, %d completed, %d received", sent, completed, received)
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
// and the exit status with the verdicts.
func checkThresholds(r *result.Result) error {
	for i := range r.Thresholds {
		x := &r.Thresholds[i]
		t, err := threshold.Parse(x.Threshold)
		if err != nil { // of another version
			continue
		}
		latency, known := 0.0, false
		if of := latenciesOf(r, x.Step); of != nil && t.Metric.Group == "" {
			latency, known = (&result.Result{Latencies: *of}).Metrics()[t.Metric.Name]
		}
		kept := x.Measured != nil && (t.OfTarget && x.Kept || !t.OfTarget && t.Judge(*x.Measured, 0).Kept)
		switch status := r.Outcome.Status; {
		case kept != x.Kept, !kept && r.Outcome.Success && status == 0:
			return fmt.Errorf("the threshold %q, %s, is kept: %t, with status %d", x.Threshold, measured(x), x.Kept,
				status)
		case known && x.Measured != nil && !near(latency, *x.Measured):
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

// checkRates checks the latencies and rates of a result and its steps.
func (r *Run) checkRates(read *result.Result) error {
	whole := &r.rows
	if !r.complete(read) {
		whole = nil
	}
	merged := len(read.Parts) > 0
	err := errors.Join(checkLatencies(&read.Latencies), checkFigures(read.Figures, whole, merged, len(read.Steps) < 2))
	for i := range read.Steps {
		s := &read.Steps[i]
		rows := r.step(i, s)
		if merged || whole == nil {
			rows = nil
		}
		own := errors.Join(checkLatencies(&s.Latencies), checkFigures(s.Figures, rows, false, true))
		if own != nil {
			err = errors.Join(err, fmt.Errorf("step %q: %w", s.Name, own))
		}
	}
	return err
}

func checkLatencies(l *result.Latencies) error {
	for _, name := range result.KindNames() {
		l := l.Get(name)
		if l != nil && l.Count > 0 && (l.Mean() > float64(l.Max) || l.Sum < l.Max) {
			return fmt.Errorf("the %s times have the sum %d, the maximum %d and the number %d", name, l.Sum, l.Max,
				l.Count)
		}
	}
	return nil
}

// checkFigures compares rates with each other and, unless nil, with complete rows. exact is true if the lowest and
// highest rates are of all these rows.
func checkFigures(f *result.Figures, rows *stats.StepSummary, merged, exact bool) error {
	if f == nil {
		return nil
	}
	given := (&result.Result{Figures: f}).Metrics()
	for name, low := range given {
		metric, isLow := strings.CutSuffix(name, ".min")
		if high, known := given[metric+".max"]; isLow && known && low > high {
			return fmt.Errorf("the rate %s is %s; the maximum is %s", name, number(low), number(high))
		}
	}
	if rows == nil {
		return nil
	}
	if !merged && !reads(rows) && f.Span < rows.Average.Span.Microseconds() {
		// It may be longer than the rows: a short interval without messages has no row.
		return fmt.Errorf("the measured time is %s; the rows say %s", span(f.Span), rows.Average.Span)
	}
	return checkRows(f, rows, given, merged, exact)
}

// checkRows compares rates with the rows.
func checkRows(f *result.Figures, rows *stats.StepSummary, given map[string]float64, merged, exact bool) error {
	of := *rows
	of.Sends, of.Receives, of.Average.Span = true, true, time.Duration(f.Span)*time.Microsecond
	ofRows := of.Figures()
	ofRows.Offered, ofRows.Due, ofRows.Unsent = f.Offered, f.Due, f.Unsent // which rows do not have
	want := (&result.Result{Figures: ofRows}).Metrics()
	for name, v := range given {
		metric, statistic, _ := strings.Cut(name, ".")
		high, known := want[metric+".max"]
		agrees := near(v, want[name])
		switch {
		case merged: // rows of several hosts do not begin together
			agrees = statistic != "avg" || !known || f.Since != nil || v <= 1.25*high
		case statistic == "avg":
			agrees = agrees || f.Span < 1000 // which is cut to microseconds
		case !exact:
			agrees = true
		case metric == "received": // seconds of a backlog are cut, and seconds before the first message may not count
			agrees = agrees || f.Since != nil || v <= 1.001*high
		}
		if !agrees {
			return fmt.Errorf("the rate %s is %s; by the rows it is %s", name, number(v), number(want[name]))
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
