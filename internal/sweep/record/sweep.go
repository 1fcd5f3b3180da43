// Package record has what sweeps and searches leave in their folders, [SweepFile] and [SearchFile], and the conclusions
// from them: which runs are left, the table of a sweep, the outcome of a search.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// SweepFile is the name of the file with the [Sweep], in its folder.
const SweepFile = "sweep.json"

// Format and Version identify a [SweepFile].
const (
	Format  = "perfmq sweep"
	Version = 1
)

// Axis is a variable, label or setting that a matrix varies.
type Axis struct {
	// Name is the name of the variable, label or setting.
	Name string `json:"name"`
	// Values are in the order of the scenario.
	Values []string `json:"values"`
}

// States of a run.
const (
	Waiting    = "waiting"
	Running    = "running"
	Done       = "done"       // it came to its end; its exit status tells how
	Unfinished = "unfinished" // it was interrupted, or no load was made: it is carried out again
)

// Limit is the bound of the rate of a step.
type Limit struct {
	// Step is missing where a run has one step.
	Step string `json:"step,omitempty"`
	// Kind is as in a result.
	Kind string `json:"kind"`
	// Text says how it shows.
	Text string `json:"text"`
}

// Run is a repeat of a cell.
type Run struct {
	// Cell and Repeat count from 1.
	Cell   int `json:"cell"`
	Repeat int `json:"repeat"`
	// Values are the values of the axes, by their names.
	Values map[string]string `json:"values"`
	// Folder has the result of the run; it is relative to the folder of the sweep, with slashes.
	Folder string `json:"folder"`
	State  string `json:"state"`
	// Attempts is the number of times that the run was begun.
	Attempts int `json:"attempts,omitempty"`
	// Status is the exit status of a run that came to its end, and Problem why it failed.
	Status  int    `json:"status"`
	Problem string `json:"problem,omitempty"`
	// Aborted: a threshold ended the run before its plan did, so that its figures cover a part of it.
	Aborted bool `json:"aborted,omitempty"`
	// AtLeast: perfmq, or its machine, was the limit of a step, so that its rates are lower bounds.
	AtLeast bool `json:"atLeast,omitempty"`
	// Start and End are moments by the wall clock, in microseconds since the Unix epoch.
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
	// Figures are values of metrics, by name, in their units; with several steps as STEP.METRIC.
	Figures map[string]float64 `json:"figures,omitempty"`
	Limits  []Limit            `json:"limits,omitempty"`
}

// Ended notes that the run, which began at one moment, ended at the other. A wall clock that was set meanwhile does not
// change its length.
func (r *Run) Ended(begun, now time.Time) { r.End = begun.Add(now.Sub(begun)).UnixMicro() }

// Good reports whether the run came to the end of its plan, with all that was sent accounted for: its figures count.
func (r *Run) Good() bool {
	return r.State == Done && (r.Status == 0 || r.Status == 3) && !r.Aborted
}

// bounded returns the steps of the run that perfmq limited.
func (r *Run) bounded() (steps []string) {
	for _, l := range r.Limits {
		if result.OfTester(l.Kind) {
			steps = append(steps, l.Step)
		}
	}
	return steps
}

// SetLimits notes the limits of the steps.
func (r *Run) SetLimits(limits []Limit) {
	r.Limits = limits
	r.AtLeast = len(r.bounded()) > 0
}

// Bound is put before a metric that is a lower bound, as perfmq was the limit: "at least ". It is empty for others.
func (r *Run) Bound(name string) string { return bound(r.bounded(), name) }

func bound(steps []string, name string) string {
	if slices.ContainsFunc(steps, func(step string) bool {
		metric, of := strings.CutPrefix(name, Name(step, ""))
		m, ok := threshold.Find(metric)
		return of && ok && m.Unit == threshold.PerSecond
	}) {
		return "at least "
	}
	return ""
}

// Bounded returns a sentence about the good runs that perfmq limited; empty without such runs.
func (s *Sweep) Bounded() string {
	n, all := 0, 0
	for _, row := range s.Rows() {
		n, all = n+row.Bounded, all+row.Good
	}
	return LowerBounds(n, all)
}

// LowerBounds returns a sentence about n runs, of all, that perfmq limited; empty for 0.
func LowerBounds(n, all int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("perfmq was the limit of %d of %d runs, so their rates are lower bounds", n, all)
}

// Sweep is a sweep with the state of each of its runs.
type Sweep struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// ID tells the sweep from others, in the names of fresh destinations.
	ID string `json:"id"`
	// Name is the name of the scenario.
	Name string `json:"name"`
	// Plan is a hash of the work to be done, without the seed.
	Plan string `json:"plan"`
	// Axes are missing where only repeats were asked for.
	Axes    []Axis `json:"axes"`
	Repeats int    `json:"repeats"`
	// Shuffled: each round of repeats has the cells in an order that comes from Seed.
	Shuffled bool   `json:"shuffled"`
	Seed     uint64 `json:"seed,omitempty"`
	// Steps are the steps of each run, if there are several.
	Steps []string `json:"steps,omitempty"`
	// Runs are in the order in which they are carried out.
	Runs []Run `json:"runs"`
}

// Cells returns all combinations of the values of the axes, the last axis changing fastest. There is one combination of
// no axes.
func Cells(axes []Axis) []map[string]string {
	cells := []map[string]string{{}}
	for _, a := range axes {
		var next []map[string]string
		for _, c := range cells {
			for _, v := range a.Values {
				one := maps.Clone(c)
				one[a.Name] = v
				next = append(next, one)
			}
		}
		cells = next
	}
	return cells
}

// Arrange makes the runs of cells: all cells once, then all again, and so on, so that whatever changes slowly touches
// all cells alike. A shuffled sweep has the cells of each round in an order of its own.
func (s *Sweep) Arrange(cells []map[string]string) {
	random := rand.New(rand.NewPCG(s.Seed, 0)) //nolint:gosec // an order, not a secret
	for repeat := 1; repeat <= s.Repeats; repeat++ {
		order := make([]int, len(cells))
		for i := range order {
			order[i] = i
		}
		if s.Shuffled {
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, i := range order {
			s.Runs = append(s.Runs, Run{
				Cell: i + 1, Repeat: repeat, Values: cells[i], State: Waiting,
				Folder: fmt.Sprintf("%s/repeat-%d", s.folder(i+1, cells[i]), repeat),
			})
		}
	}
}

// maxFolder bounds the name of the folder of a cell: values may be long.
const maxFolder = 100

// folder is the name of the folder of a cell: its number, and the values of the axes as far as they can be in the name
// of a file.
func (s *Sweep) folder(cell int, values map[string]string) string {
	name := fmt.Sprintf("%03d", cell)
	for _, a := range s.Axes {
		name += "_" + plain(a.Name) + "=" + plain(values[a.Name])
	}
	return name[:min(len(name), maxFolder)]
}

// plain replaces characters that may have a meaning for file systems and shells.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(".-", r) {
			return r
		}
		return '-'
	}, text)
}

// Title names a cell: "threads=16 queues=64".
func (s *Sweep) Title(values map[string]string) string { return Title(s.Axes, values) }

// Title names the values of some axes.
func Title(axes []Axis, values map[string]string) string {
	var parts []string
	for _, a := range axes {
		parts = append(parts, a.Name+"="+values[a.Name])
	}
	return strings.Join(parts, " ")
}

// Resume continues an earlier call of the same sweep: finished runs are not carried out again.
func (s *Sweep) Resume(earlier *Sweep) {
	s.ID, s.Seed, s.Runs = earlier.ID, earlier.Seed, earlier.Runs
	for i := range s.Runs {
		if s.Runs[i].State != Done {
			s.Runs[i].State = Waiting
		}
	}
}

// errFormat says that a file is not of a sweep that this program knows.
var errFormat = errors.New("it is no " + SweepFile + " that this version of perfmq knows")

// maxFile bounds the size of a file that is read, in bytes.
const maxFile = 256 << 20

// ReadSweep reads the sweep of a folder; an error that is [fs.ErrNotExist] without one.
func ReadSweep(dir string) (*Sweep, error) {
	path := filepath.Join(dir, SweepFile)
	s := new(Sweep)
	if err := read(path, maxFile, s); err != nil {
		return nil, err
	}
	if s.Format != Format || s.Version < 1 || s.Version > Version {
		return nil, fmt.Errorf("read %s: %w", path, errFormat)
	}
	for i := range s.Runs {
		if f := filepath.FromSlash(s.Runs[i].Folder); !filepath.IsLocal(f) || filepath.Clean(f) == "." {
			return nil, fmt.Errorf("read %s: the folder %q of a run is not within that of the sweep", path, s.Runs[i].Folder)
		}
	}
	return s, nil
}

// Write writes the sweep into a folder.
func (s *Sweep) Write(dir string) error { return write(filepath.Join(dir, SweepFile), s) }

// IsSweep reports whether a folder holds a sweep.
func IsSweep(dir string) bool { return exists(filepath.Join(dir, SweepFile)) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// read reads a file of at most limit bytes. The error is [fs.ErrNotExist] without one.
func read(path string, limit int64, into any) error {
	text, err := inputfile.Read(path, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func write(path string, v any) error {
	text, err := result.Encode(v, "  ")
	if err != nil {
		return err
	}
	return inputfile.Replace(path, text, 0o600)
}

// Spread is a figure over the N repeats of a cell that have it.
type Spread struct {
	Minimum, Median, Maximum float64
	N                        int
}

// spreadOf returns the spread of one or more values. The median of an even number is the mean of
// the middle two.
func spreadOf(values []float64) Spread {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Spread{v[0], (v[(n-1)/2] + v[n/2]) / 2, v[n-1], n}
}

// String returns the largest distance of a repeat from the median: ±1.5% (2 runs). It is empty for one run.
func (s Spread) String() string {
	switch {
	case s.N < 2:
		return ""
	case s.Median == 0:
		return fmt.Sprintf("(%d runs)", s.N)
	}
	share := 100 * max(s.Maximum-s.Median, s.Median-s.Minimum) / s.Median
	text := fmt.Sprintf("%.1f", share)
	if share >= 9.95 {
		text = fmt.Sprintf("%.0f", share)
	}
	return fmt.Sprintf("±%s%% (%d runs)", text, s.N)
}

// Row is a cell with the figures of its repeats.
type Row struct {
	Cell    int
	Values  map[string]string
	Good    int // repeats that count
	Failed  int // repeats that came to their end, but not well, or not to that of their plan
	Figures map[string]Spread
	Bounded int // repeats that count, and of which perfmq was the limit

	bounded []string // steps of which perfmq was the limit
}

// Bound is put before a metric that is a lower bound, as perfmq was the limit of a repeat: "at least ". It is empty for
// others.
func (r *Row) Bound(name string) string { return bound(r.bounded, name) }

// Rows returns the cells with the figures of their good runs. A cell without an ended run has a row, too.
func (s *Sweep) Rows() (list []Row) {
	cells := map[int][]*Run{}
	for i := range s.Runs {
		r := &s.Runs[i]
		cells[r.Cell] = append(cells[r.Cell], r)
	}
	for _, cell := range slices.Sorted(maps.Keys(cells)) {
		list = append(list, rowOf(cells[cell]))
	}
	return list
}

func rowOf(runs []*Run) Row {
	row := Row{Cell: runs[0].Cell, Values: runs[0].Values, Figures: map[string]Spread{}}
	values := map[string][]float64{}
	for _, r := range runs {
		switch steps := r.bounded(); {
		case !r.Good():
			if r.State == Done {
				row.Failed++
			}
			continue
		case len(steps) > 0:
			row.Bounded++
			row.bounded = append(row.bounded, steps...)
		}
		row.Good++
		for name, v := range r.Figures {
			values[name] = append(values[name], v)
		}
	}
	for name, v := range values {
		row.Figures[name] = spreadOf(v)
	}
	return row
}

// Usual returns the metrics of tables.
func Usual() []string {
	return []string{
		"completed.avg", "received.avg", "ack.p50", "ack.p99", "response.p99", "transfer.p99", "connections.opened",
		"connections.live",
	}
}

// Detailed returns the metrics of the cells on a page: the usual ones, and those of the benchmark reports.
func Detailed() []string { return append(Usual(), "completed.min", "received.min", "ack.mean") }

// Side returns the metrics of the broker's process and host in tables.
func Side() []string {
	return []string{"broker.cpu", "broker.memory", "broker.disk", "broker.network", "broker.loopback", "broker.load"}
}

// Names returns the names of metrics by step.
func (s *Sweep) Names(metrics []string) (names []string) {
	for _, step := range append([]string{""}, s.Steps...) {
		for _, metric := range metrics {
			names = append(names, Name(step, metric))
		}
	}
	return names
}

// Columns returns the names of metrics, by step, that some row has.
func (s *Sweep) Columns(rows []Row, metrics []string) []string {
	return slices.DeleteFunc(s.Names(metrics), func(name string) bool {
		return !slices.ContainsFunc(rows, func(r Row) bool {
			_, known := r.Figures[name]
			return known
		})
	})
}

// Name is the name of a metric of a step; runs of one step omit the step.
func Name(step, metric string) string {
	if step == "" {
		return metric
	}
	return step + "." + metric
}

// UnitOf returns the unit of a figure of a run or of a step.
func UnitOf(name string) threshold.Unit {
	for {
		if m, ok := threshold.Find(name); ok {
			return m.Unit
		}
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return threshold.PerSecond
		}
		name = rest
	}
}

// SearchFile is the name of the file with a [Search], in the folder of a search.
const SearchFile = "search.json"

// maxSearchFile bounds the size of [SearchFile], in bytes.
const maxSearchFile = 16 << 20

// PointFolder is the folder of a point's result, within the folder of the search. The first point is number 1.
func PointFolder(number int, rate float64) string {
	return fmt.Sprintf("%03d-%s", number, strconv.FormatFloat(rate, 'f', -1, 64))
}

// Write writes the search into a folder.
func (s *Search) Write(dir string) error { return write(filepath.Join(dir, SearchFile), s) }

// IsSearch reports whether a folder holds a search.
func IsSearch(dir string) bool { return exists(filepath.Join(dir, SearchFile)) }

// ReadSearch reads the search in a folder. The error is [fs.ErrNotExist] without one.
func ReadSearch(dir string) (*Search, error) {
	o := new(Search)
	if err := read(filepath.Join(dir, SearchFile), maxSearchFile, o); err != nil {
		return nil, err
	}
	if o.Held && o.Rate <= 0 {
		return nil, fmt.Errorf("%s: a rate of %v cannot have been held", SearchFile, o.Rate)
	}
	for i := range o.Points {
		if rate := o.Points[i].Rate; rate <= 0 || math.IsInf(rate, 0) {
			return nil, fmt.Errorf("%s: point %d has a rate of %v", SearchFile, i+1, rate)
		}
	}
	return o, nil
}

// Point is one tried rate.
type Point struct {
	Rate float64 `json:"rate"` // messages per second
	// Hold: the rate was tried for longer, to verify the result.
	Hold bool `json:"hold,omitempty"`
	// Kept: the load passed all thresholds. Otherwise Why names the failed ones, and Tester is true if perfmq, or its
	// machine, was the limit.
	Kept   bool   `json:"kept"`
	Why    string `json:"why,omitempty"`
	Tester bool   `json:"tester,omitempty"`
	// Limit is the limit of the rate, in words.
	Limit string `json:"limit,omitempty"`
}

// Verdict is the outcome of the load in a word or two.
func (p *Point) Verdict() string {
	switch {
	case p.Kept:
		return "pass"
	case p.Tester:
		return "undecided"
	default:
		return "fail"
	}
}

// Search is the outcome of a search.
type Search struct {
	Thresholds []string `json:"demands"`
	// Rate is the highest rate that passed all thresholds, also when it was held; 0 if none did. Above is the lowest rate
	// that failed; 0 if none did.
	Rate  float64 `json:"rate"`
	Above float64 `json:"above"`
	// Held: Rate was tried for longer, and passed all thresholds. It is false if the search ended earlier.
	Held bool `json:"held"`
	// Failed is the point at Above.
	Failed Point `json:"failed"`
	// Complete: the search came to its end. Otherwise it is running, or was interrupted.
	Complete bool `json:"complete"`
	// Points are all tried rates, in order.
	Points []Point `json:"points"`
}

// The kinds of outcomes.
const (
	Maximum   = "maximum"    // Rate is the highest sustainable rate
	AtLeast   = "at least"   // Rate was held: perfmq was the limit above it, or it is the highest that a search tries
	Undecided = "undecided"  // perfmq was the limit, and no rate was held
	Nothing   = "nothing"    // even the lowest rate failed
	NotSteady = "not steady" // no rate was held
	Open      = "open"       // the search is running, or ended early
)

// Kind returns the kind of the outcome.
func (s *Search) Kind() string {
	switch {
	case s.Held && (s.Above == 0 || s.Failed.Tester):
		return AtLeast
	case s.Held:
		return Maximum
	case !s.Complete:
		return Open
	case s.Failed.Tester:
		return Undecided
	case s.Rate == 0:
		return Nothing
	default:
		return NotSteady
	}
}

// Words returns the outcome in words, and the reason why the rate is not higher; empty if unknown.
func (s *Search) Words() (text, why string) {
	rate := func(v float64) string { return PerSecond(v) + " msg/s" }
	failed := "at " + rate(s.Above) + ": " + s.Failed.Why
	limit := "at " + rate(s.Above) + " the limit was " + s.Failed.Limit
	switch s.Kind() {
	case Maximum:
		return "maximum: " + rate(s.Rate), failed
	case AtLeast:
		if s.Above == 0 {
			limit = "that is as far as the search goes"
		}
		return "at least " + rate(s.Rate), limit
	case Undecided:
		text := fmt.Sprintf("undecided: perfmq was the limit of %d of %d loads, and no rate was held", s.Bounded(),
			len(s.Points))
		if s.Rate > 0 {
			text += "; " + rate(s.Rate) + " had passed"
		}
		return text, limit
	case Nothing:
		return "not even " + rate(s.Above) + " passes the thresholds", s.Failed.Why
	case NotSteady:
		return "no rate was held: the broker, or the machine, is not steady; the last that was tried is " +
			rate(s.Failed.Rate), s.Failed.Why
	}
	passed := "no rate"
	if s.Rate > 0 {
		passed = rate(s.Rate)
	}
	return "the search has not come to its end; " + passed + " had passed", ""
}

// Bounded is the number of loads that failed with perfmq, or its machine, as the limit.
func (s *Search) Bounded() (n int) {
	for i := range s.Points {
		if s.Points[i].Tester {
			n++
		}
	}
	return n
}

// String returns the outcome with the reason why the rate is not higher.
func (s *Search) String() string {
	text, why := s.Words()
	switch {
	case why == "":
		return text
	case s.Kind() == Maximum:
		return text + "; " + why
	default:
		return text + ": " + why
	}
}

// PerSecond formats a rate with commas between the thousands.
func PerSecond(rate float64) string {
	whole, rest, fraction := strings.Cut(strconv.FormatFloat(rate, 'f', -1, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction {
		whole += "." + rest
	}
	return whole
}
