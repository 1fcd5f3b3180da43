package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/search"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
)

// Defaults of --find-max.
const (
	searchDuration   = 6 * time.Second
	searchWarmup     = time.Second
	searchMaxPending = 1000 // high enough that the broker is the limit
	holdTimes        = 3    // the found rate is held for so many loads
)

// maxFinder is a search for the highest rate: a sequence of loads with different rates.
type maxFinder struct {
	a        *app
	demands  []threshold.Threshold
	asked    int           // number of demands from the user; their measured values are printed
	first    float64       // the first rate; 0 for the default
	measured time.Duration // measured time of a load that is not held
	dir      string        // for the results; empty for none
	json     string        // file for the outcome; empty for none
	silent   bool
	tried    int
	// run runs a load of that rate, longer if hold is set. It writes the result into dir, unless dir is empty.
	run func(rate string, hold bool, demands []threshold.Threshold, dir string) (run.Ending, error)
}

// searchMistakes refuses settings that have no meaning in a search, or that the search sets itself.
func (r *resolver) searchMistakes() {
	if r.ResultDir != "" {
		if entries, err := os.ReadDir(r.ResultDir); err == nil && len(entries) > 0 {
			r.refuse("name another folder, or remove this one",
				"--result %s: the folder is not empty, and --find-max keeps several results in it", r.ResultDir)
		}
	}
	for _, name := range []string{
		"message-count", "hdr", "verify-file", "metrics", "web", "format", "show-latency",
		"shard", "run-id", "start-at",
	} {
		if r.Has(name) {
			r.refuse("leave one of them out", "--%s does not work with the several runs of --find-max", name)
		}
	}
	if _, constant := r.Rate.Constant(); !r.Rate.IsZero() && !constant {
		r.refuse("give --rate one number: --find-max begins with it", "--find-max does not go with a rate in segments")
	}
}

// searchDefaults sets the defaults of a search.
func searchDefaults(v *setting.Values) {
	if !v.Has("duration") {
		v.Duration = searchDuration
	}
	if !v.Has("warmup") {
		v.Warmup = min(searchWarmup, v.Duration/4)
	}
	if !v.Has("max-pending") {
		v.MaxPending = searchMaxPending
	}
}

// newMaxFinder returns a search for the highest rate that keeps the demands of --find-max and --threshold, and at which
// messages do not queue at the broker or in the tester.
func (a *app) newMaxFinder(
	v *setting.Values, role plan.Role, resolve func(*setting.Values) *plan.Plan,
) (*maxFinder, error) {
	f := &maxFinder{
		a: a, demands: append(append([]threshold.Threshold{}, v.FindMax...), v.Thresholds...), asked: len(v.FindMax),
		first:    v.Rate.Peak(),
		measured: v.Duration - v.Warmup, dir: v.ResultDir, json: v.JSONFile, silent: v.Silent,
	}
	f.run = func(rate string, hold bool, demands []threshold.Threshold, dir string) (run.Ending, error) {
		one := *v
		var err error
		if one.Rate, err = load.ParseSchedule(rate); err != nil {
			return run.Ending{}, err
		}
		if hold {
			one.Duration = one.Warmup + holdTimes*(one.Duration-one.Warmup)
		}
		one.Thresholds, one.ResultDir = demands, dir
		p := resolve(&one)
		if err := p.Validate(); err != nil {
			return run.Ending{}, err
		}
		p.MakeBodies()
		one.Silent, one.JSONFile = true, ""
		return a.newRun(p, &one).Do(), nil
	}
	return f, f.queueing(role == plan.Client)
}

// queueing adds demands that refuse a rate at which messages queue in the tester, or at the broker if the run also
// receives.
func (f *maxFinder) queueing(receives bool) error {
	own := []string{"completed.avg >= 99% of target", "delay.p99 < 100ms"}
	if receives {
		own = append(own, "received.avg >= 99% of target")
	}
	for _, text := range own {
		t, err := threshold.Parse(text)
		if err != nil {
			return err
		}
		f.demands = append(f.demands, t)
	}
	return nil
}

// do runs the search and returns the exit status.
func (f *maxFinder) do() int {
	_, status := f.find()
	return status
}

// find runs the search and returns its outcome and the exit status.
func (f *maxFinder) find() (*search.Found, int) {
	var asked []string
	for i := range f.demands {
		asked = append(asked, f.demands[i].String())
	}
	if dir := f.dir; dir != "" {
		err := os.MkdirAll(dir, 0o755) //nolint:gosec // results are for all to read
		if err != nil && !errors.Is(err, fs.ErrExist) {
			f.a.errors.print(fmt.Errorf("make the folder of --result: %w", bare(err)))
			return new(search.Found), exitUsage
		}
	}
	f.print("--- FIND-MAX: the highest rate at which %s\n", strings.Join(asked, ", "))
	found, err := search.Max(context.Background(), search.Config{First: f.first}, f.probe)
	status := f.conclude(found, err)
	if err := f.write(found, asked); err != nil {
		f.a.errors.print(err)
		return found, max(status, exitFailed)
	}
	return found, status
}

// endingError ends a search with the exit status of a run that failed.
type endingError struct{ status int }

func (e *endingError) Error() string { return fmt.Sprintf("a load ended with status %d", e.status) }

// probe runs a load of the given rate and judges it.
func (f *maxFinder) probe(_ context.Context, rate float64, hold bool) (search.Point, error) {
	text := strconv.FormatFloat(rate, 'f', -1, 64)
	f.tried++
	dir := ""
	if f.dir != "" {
		dir = filepath.Join(f.dir, search.Folder(f.tried, rate))
	}
	e, err := f.run(text, hold, f.demands, dir)
	if err != nil {
		return search.Point{}, err
	}
	measured := f.measured
	if hold {
		measured *= holdTimes
	}
	if e.Summary == nil || e.Interrupted || e.Abandoned || e.Err != nil || e.Closing != nil {
		return search.Point{}, &endingError{f.a.endedOneOf(e)}
	}
	point := judgePoint(e.Summary, measured)
	// both may contain texts of the broker
	point.Why, point.Limit = f.a.secrets.Line(point.Why), f.a.secrets.Line(point.Limit)
	f.report(rate, hold, &point, e.Summary)
	if e.Summary.Missing > 0 {
		f.a.errors.write(fmt.Sprintf("%d messages were left at the broker when --drain-timeout ended: they would disturb "+
			"the next load",
			e.Summary.Missing), "purge the destination, and raise --drain-timeout")
		return point, &endingError{exitFailed}
	}
	return point, nil
}

// slack is the number of messages that a load may miss in addition to the share that its demand allows: at low rates,
// one message in flight at the end of the load is more than that share.
const slack = 2

// judgePoint judges whether a load kept the demands; measured is the length of its measured part.
func judgePoint(s *stats.Summary, measured time.Duration) search.Point {
	var p search.Point
	// a load that reached its rate has no other limit, even if it broke a demand
	if s.Limit.Kind != stats.LimitNone {
		p.Limit = s.Limit.String()
	}
	var broken []string
	for i := range s.Thresholds {
		o := &s.Thresholds[i]
		if o.Threshold.OfTarget && o.Known && (o.Target-o.Measured)*measured.Seconds() <= slack {
			o.Kept = true
		}
		if !o.Kept {
			broken = append(broken, o.Threshold.String()+": "+o.Value())
		}
	}
	if len(broken) == 0 && !s.Success {
		broken = s.Problems
	}
	p.Kept = len(broken) == 0
	p.Why = strings.Join(broken, ", ")
	if crowded := s.Health.Crowded(); !p.Kept && crowded && !s.Limit.OfTester() {
		p.Tester = true
		p.Limit = fmt.Sprintf("the machine (others than the tester, such as a broker on it, took %.0f%% of its processors)",
			100*s.Health.OthersShare())
	}
	p.Tester = p.Tester || !p.Kept && s.Limit.OfTester()
	return p
}

// report prints a line about a load.
func (f *maxFinder) report(rate float64, hold bool, p *search.Point, s *stats.Summary) {
	verdict := "kept"
	if !p.Kept {
		verdict = "NOT KEPT"
	}
	if hold {
		verdict += " for " + (holdTimes * f.measured).String()
	}
	var measured []string
	for i := range s.Thresholds {
		o := &s.Thresholds[i]
		if i < f.asked || !o.Kept {
			measured = append(measured, fmt.Sprintf("%s %s", o.Threshold.Metric.Name, o.Value()))
		}
	}
	f.print("--- %12s msg/s: %-8s  %s\n", perSecond(rate), verdict, strings.Join(measured, ", "))
}

// conclude prints the outcome and returns the exit status.
func (f *maxFinder) conclude(found *search.Found, err error) int {
	var ended *endingError
	switch {
	case errors.As(err, &ended):
		if found.Rate > 0 {
			f.print("--- the search ended early; %s msg/s had been kept\n", perSecond(found.Rate))
		}
		return ended.status
	case errors.Is(err, search.ErrNothing):
		f.a.errors.write(fmt.Sprintf("not even %s msg/s keeps the demands: %s", perSecond(found.Above), found.Failed.Why), "")
		return exitThreshold
	case err != nil:
		f.a.errors.print(err)
		return exitFailed
	case !found.Held:
		f.a.errors.write("no rate was kept for longer: the broker, or the machine, is not steady; the last that was tried "+
			"is "+
			perSecond(found.Failed.Rate)+" msg/s: "+found.Failed.Why, "")
		return exitThreshold
	}
	switch {
	case found.Above == 0:
		f.print("--- at least %s msg/s: that is as far as the search goes\n", perSecond(found.Rate))
	case found.Failed.Tester:
		f.print("--- at least %s msg/s: at %s the limit was %s\n", perSecond(found.Rate), perSecond(found.Above),
			found.Failed.Limit)
	default:
		f.print("--- maximum: %s msg/s; at %s: %s\n", perSecond(found.Rate), perSecond(found.Above), found.Failed.Why)
		if found.Failed.Limit != "" {
			f.print("--- limit: %s\n", found.Failed.Limit)
		}
	}
	return exitOK
}

// write writes the outcome to --json and into --result.
func (f *maxFinder) write(found *search.Found, asked []string) error {
	text, err := json.MarshalIndent(struct {
		Demands []string `json:"demands"`
		*search.Found
	}{asked, found}, "", "  ")
	if err != nil {
		return err
	}
	text = append(safetext.JSON(text), '\n')
	if f.dir != "" {
		if err := os.WriteFile(filepath.Join(f.dir, search.File), text, 0o600); err != nil {
			return fmt.Errorf("write --result: %w", bare(err))
		}
	}
	switch f.json {
	case "":
	case "-":
		if _, err := f.a.Stdout.Write(text); err != nil {
			return fmt.Errorf("write --json: %w", bare(err))
		}
	default:
		if err := os.WriteFile(f.json, text, 0o600); err != nil {
			return fmt.Errorf("write --json: %w", bare(err))
		}
	}
	return nil
}

func (f *maxFinder) print(format string, args ...any) {
	if f.silent {
		return
	}
	out := f.a.Stdout
	if f.json == "-" {
		out = f.a.Stderr
	}
	_, _ = fmt.Fprintf(out, format, args...)
}

// perSecond writes a rate with commas between the thousands.
func perSecond(rate float64) string {
	text := strconv.FormatFloat(rate, 'f', -1, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}
