// Package record has what sweeps and searches leave in their folders, [SweepFile] and [SearchFile], and the conclusions
// from them: which runs are left, the table of a sweep, the outcome of a search.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// Cells returns all combinations of the values of the axes that skip does not exclude, the last axis changing fastest.
// There is one combination of no axes.
func Cells(axes []Axis, skip func(values map[string]string) bool) []map[string]string {
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
	return slices.DeleteFunc(cells, func(c map[string]string) bool { return skip != nil && skip(c) })
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
	return []string{"completed.avg", "received.avg", "ack.p50", "ack.p99", "response.p99", "transfer.p99"}
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
