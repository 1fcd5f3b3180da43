package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
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
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
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
	own      int           // number of demands of the search itself, which are the last ones
	first    float64       // the first rate; 0 for the default
	measured time.Duration // measured time of a load that is not held
	dir      string        // for the results; empty for none
	json     string        // file for the outcome; empty for none
	silent   bool
	tried    int
	// run runs a load of that rate, longer if hold is set. It writes the result into dir, unless dir is empty.
	run func(rate string, hold bool, dir string) (run.Ending, error)
}

// searchMistakes refuses settings that have no meaning in a search, or that the search sets itself.
func (r *resolver) searchMistakes() {
	if r.ResultDir != "" {
		if entries, err := os.ReadDir(r.ResultDir); err == nil && len(entries) > 0 {
			r.refuse("name another folder, or remove this one",
				"--result %s: the folder is not empty, and a search keeps several results in it", r.ResultDir)
		}
	}
	for _, name := range []string{
		"message-count", "hdr", "verify-file", "metrics", "web", "format", "show-latency",
		"shard", "run-id", "start-at",
	} {
		if r.Has(name) {
			r.refuse("leave one of them out", "--%s does not work with the several runs of a search", name)
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

// newMaxFinder returns a search for the highest rate that passes the thresholds of --find-max and --threshold, and at
// which messages do not queue at the broker or in perfmq.
func (a *app) newMaxFinder(
	v *setting.Values, role plan.Role, resolve func(*setting.Values) *plan.Plan,
) (*maxFinder, error) {
	f := &maxFinder{
		a: a, demands: append(append([]threshold.Threshold{}, v.FindMax...), v.Thresholds...), asked: len(v.FindMax),
		first:    v.Rate.Peak(),
		measured: v.Duration - v.Warmup, dir: v.ResultDir, json: v.JSONFile, silent: v.Silent,
	}
	f.run = func(rate string, hold bool, dir string) (run.Ending, error) {
		one := *v
		var err error
		if one.Rate, err = load.ParseSchedule(rate); err != nil {
			return run.Ending{}, err
		}
		if hold {
			one.Duration = one.Warmup + holdTimes*(one.Duration-one.Warmup)
		}
		if one.Thresholds, err = f.demandsOf(one.Rate.Peak(), hold); err != nil {
			return run.Ending{}, err
		}
		one.ResultDir = dir
		p := resolve(&one)
		if err := p.Validate(a.driver); err != nil {
			return run.Ending{}, err
		}
		one.Silent, one.JSONFile = true, ""
		return a.newRun(p, &one).Do(), nil
	}
	return f, f.queueing(role == plan.Client)
}

// reached is the share of the target, in percent, that a rate must reach.
const reached = 99

// atBorders is the number of messages by which a load may miss its target in any case: one that was due just before the
// measured time ends comes after it, and so may another, if the broker takes longer for it. At low rates that is more
// than the share.
const atBorders = 2

// queueing adds demands that refuse a rate at which messages queue in the tester, or at the broker if the run also
// receives.
func (f *maxFinder) queueing(receives bool) error {
	own, err := queueing(reached, receives)
	f.demands, f.own = append(f.demands, own...), len(own)
	return err
}

// queueing returns the demands that a search adds, with that share of the target in percent.
func queueing(share float64, receives bool) (list []threshold.Threshold, err error) {
	of := " >= " + strconv.FormatFloat(share, 'f', -1, 64) + "% of target"
	own := []string{"completed.avg" + of, "delay.p99 < 100ms"}
	if receives {
		own = append(own, "received.avg"+of)
	}
	for _, text := range own {
		t, err := threshold.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("make the demand %q of a search: %w", text, err)
		}
		list = append(list, t)
	}
	return list, nil
}

// demandsOf returns the demands on one load. Its own result is judged by them, so that it says the same as the search.
func (f *maxFinder) demandsOf(target float64, hold bool) ([]threshold.Threshold, error) {
	asked := f.demands[:len(f.demands)-f.own]
	own, err := queueing(shareOf(target*f.measuredTime(hold).Seconds()), f.own > 2)
	return append(slices.Clone(asked), own...), err
}

// shareOf returns the share of the target, in percent, that a load of that many messages must reach.
func shareOf(messages float64) float64 {
	if messages <= atBorders {
		return 0
	}
	return min(reached, math.Floor(1e4*(1-atBorders/messages))/100)
}

// measuredTime is the measured time of a load.
func (f *maxFinder) measuredTime(hold bool) time.Duration {
	if hold {
		return holdTimes * f.measured
	}
	return f.measured
}

// do runs the search and returns the exit status.
func (f *maxFinder) do() int {
	var asked []string
	for i := range f.demands {
		asked = append(asked, f.demands[i].String())
	}
	if dir := f.dir; dir != "" {
		err := os.MkdirAll(dir, 0o755) //nolint:gosec // results are for all to read
		if err != nil && !errors.Is(err, fs.ErrExist) {
			f.a.errors.print(fmt.Errorf("make the folder of --result: %w", bare(err)))
			return exitUsage
		}
	}
	f.print("--- FIND-MAX: the highest rate at which %s; a load may miss its target by %d messages\n",
		strings.Join(asked, ", "), atBorders)
	found := new(search.Found)
	kept := f.keep(asked, found)
	err := kept
	if err == nil {
		found, err = search.Max(context.Background(), search.Config{
			First: f.first,
			Note: func(so *search.Found) error {
				kept = f.keep(asked, so)
				return kept
			},
		}, f.probe)
	}
	status := f.conclude(found, err)
	if kept == nil {
		kept = f.keep(asked, found)
		f.a.errors.print(kept)
	}
	written := f.writeJSON(asked, found)
	f.a.errors.print(written)
	if kept != nil || written != nil {
		status = result.Graver(status, exitFailed)
	}
	return status
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
	e, err := f.run(text, hold, dir)
	if err != nil {
		return search.Point{}, err
	}
	if !e.Finished() {
		return search.Point{}, &endingError{f.a.endedOneOf(e)}
	}
	switch driver.ClassOf(e.Summary.Err) {
	case driver.ClassConnectionLost, driver.ClassConnect: // no load tells what such a broker can do
		f.a.errors.print(e.Summary.Err)
		return search.Point{}, &endingError{exitFailed}
	}
	point := judgePoint(e.Summary)
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

// judgePoint takes over the verdict on a load.
func judgePoint(s *stats.Summary) search.Point {
	var p search.Point
	// a load that reached its rate has no other limit, even if a threshold failed
	if s.Limit.Kind != stats.LimitNone {
		p.Limit = s.Limit.String()
	}
	var broken []string
	for i := range s.Thresholds {
		o := &s.Thresholds[i]
		if o.Broken() {
			broken = append(broken, o.Threshold.String()+": "+o.Value())
		}
	}
	if !s.Success {
		broken = append(broken, s.Problems...)
	}
	p.Kept = len(broken) == 0
	p.Why = strings.Join(broken, ", ")
	if crowded := s.Health.Crowded(); !p.Kept && crowded && !s.Limit.OfTester() {
		p.Tester = true
		p.Limit = fmt.Sprintf("the machine (others than perfmq, such as a broker on it, took %.0f%% of its processors)",
			100*s.Health.OthersShare())
	}
	p.Tester = p.Tester || !p.Kept && s.Limit.OfTester()
	return p
}

// report prints a line about a load.
func (f *maxFinder) report(rate float64, hold bool, p *search.Point, s *stats.Summary) {
	verdict := p.Verdict()
	if hold {
		verdict += " for " + f.measuredTime(hold).String()
	}
	var measured []string
	for i := range s.Thresholds {
		o := &s.Thresholds[i]
		if i < f.asked || o.Broken() {
			measured = append(measured, fmt.Sprintf("%s %s", o.Threshold.Metric.Name, o.Value()))
		}
	}
	f.print("--- %12s msg/s: %-9s  %s; limit: %s\n", search.PerSecond(rate), verdict, strings.Join(measured, ", "),
		cmp.Or(p.Limit, string(stats.LimitNone)))
}

// conclude prints the outcome and returns the exit status.
func (f *maxFinder) conclude(found *search.Found, err error) int {
	var ended *endingError
	text := found.String()
	switch {
	case errors.As(err, &ended):
		f.print("--- %s\n", text)
		return ended.status
	case err != nil && !errors.Is(err, search.ErrNothing) && !errors.Is(err, search.ErrUndecided):
		f.a.errors.print(err)
		return exitFailed
	case found.Kind() == search.Undecided:
		f.a.errors.write(text, "search on an idle machine, or begin with a lower --rate")
		return exitUndecided
	case !found.Held:
		f.a.errors.write(text, "")
		return exitThreshold
	}
	f.print("--- %s\n", text)
	if limit := found.Failed.Limit; limit != "" && found.Kind() == search.Maximum {
		f.print("--- limit: %s\n", limit)
	}
	return exitOK
}

// keep writes the findings so far into --result: a search that is killed has them, and perfmq report shows them.
func (f *maxFinder) keep(asked []string, found *search.Found) error {
	if f.dir == "" {
		return nil
	}
	text, err := textOf(asked, found)
	if err == nil {
		err = replaceFile(filepath.Join(f.dir, search.File), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write --result: %w", bare(err))
	}
	return nil
}

func textOf(asked []string, found *search.Found) ([]byte, error) {
	text, err := json.MarshalIndent(search.Outcome{Demands: asked, Found: found}, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(safetext.JSON(text), '\n'), nil
}

// writeJSON writes the outcome to --json.
func (f *maxFinder) writeJSON(asked []string, found *search.Found) error {
	if f.json == "" {
		return nil
	}
	text, err := textOf(asked, found)
	if err != nil {
		return err
	}
	if f.json == "-" {
		if _, err := f.a.Stdout.Write(text); err != nil {
			return &plan.Mistake{Text: "write --json: " + bare(err).Error(), Hint: "look at where standard output goes"}
		}
		return nil
	}
	if err := replaceFile(f.json, text, 0o600); err != nil {
		return fileNotWritten("--json", err)
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
