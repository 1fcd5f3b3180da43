// Package page makes reports of results for people: one self-contained HTML page with verdicts, tables and charts, or
// the tables as Markdown or CSV. [Feed] serves the same page during a run.
//
// # How it is made
//
//	result.Read, or rows as they come -> Run (series, thinned; sums) -> Page
//	Page -> words and tables: html/template
//	Page -> charts: JSON, drawn by assets/page.js on uPlot
//
// This package renders all words. The script draws charts from numbers, and a live page takes words and numbers from
// the page that it fetches again, so that each has one renderer. The page loads nothing: a Content-Security-Policy
// allows only the hashes of its script and styles. html/template and encoding/json escape all texts of results.
package page

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// Limits of a page. A run gets a share of maxPoints, so that a page stays below five megabytes.
const (
	MaxRuns   = 200
	maxPoints = 2400
	minPoints = 60
)

// ErrTooMany is the error for more than [MaxRuns] runs.
var ErrTooMany = fmt.Errorf("a page has %d runs at most", MaxRuns)

// Run is a run on a page.
type Run struct {
	// Name is the name of the run on the page.
	Name string
	// Result is without rows.
	Result *result.Result
	// Live means that the run continues, so that its result is not complete yet.
	Live bool

	path   string
	of     string // the name of the group
	group  int    // runs of one group are repeats
	part   int    // the number of a load of a search, or of a cell of a sweep
	folder string // within the folder of a sweep
	series *series
	heat   *[result.NumKinds]heat // of a single run
	rows   stats.Rates            // of all rows
	steps  []stats.Summary        // of the rows of each step
}

// Page is a report on some runs.
type Page struct {
	Title string
	Runs  []*Run

	sweep   *record.Sweep
	search  *record.Search
	slowest []slow // of one run, or of a producer and a consumer
	absent  []*Run // runs of sweeps that left no result, for JUnit
	now     *now   // of a live page
}

// Read returns the page about results. Each of dirs is a result, or a folder of results (repeats of one run); a sweep
// or a search has a page of its own, unless it only repeats a run. The runs may still continue.
//
// The error is a [plan.Mistake], an error of result.Read, or wraps [ErrTooMany].
func Read(dirs ...string) (*Page, error) {
	p := &Page{}
	for i, name := range compare.NamesOf(dirs) {
		if err := p.find(name, dirs[i], len(dirs) == 1); err != nil {
			return nil, err
		}
	}
	total := len(p.Runs)
	if total > MaxRuns {
		if p.sweep == nil {
			return nil, ErrTooMany
		}
		p.Runs = nil // the sweep's own file has the figures of all cells
	}
	if err := p.readSlowest(); err != nil {
		return nil, err
	}
	for i, r := range p.Runs {
		if i > 0 && p.Runs[i-1].group == r.group || i+1 < total && p.Runs[i+1].group == r.group {
			r.Name += " / " + strings.TrimPrefix(filepath.Base(r.path), "repeat-")
		}
		r.begin(total)
		read, err := result.ReadEach(r.path, func(row *result.Row) {
			r.add(row)
			for k := range p.slowest {
				p.slowest[k].add(row)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", r.path, err)
		}
		r.Result = r.rated(read)
	}
	if p.Title == "" {
		p.Title = p.title()
	}
	return p, nil
}

// find adds the runs in a folder, and notes a sweep or a search.
func (p *Page) find(name, dir string, alone bool) error {
	switch {
	case isResult(dir):
		p.add(&Run{of: name, path: dir})
	case record.IsSweep(dir):
		s, err := record.ReadSweep(dir)
		switch {
		case err != nil:
			return err
		case alone:
			p.sweep, p.Title = s, cmp.Or(s.Name, name)
		case len(s.Axes) > 0:
			return notAlone(dir)
		}
		slices.SortStableFunc(s.Runs, func(a, b record.Run) int { return cmp.Compare(a.Cell, b.Cell) })
		for i := range s.Runs {
			r := &s.Runs[i]
			path := filepath.Join(dir, filepath.FromSlash(r.Folder))
			run := &Run{of: cmp.Or(s.Title(r.Values), name), path: path, part: r.Cell, folder: r.Folder}
			if !p.add(run) {
				run.Name, run.Result = fmt.Sprintf("%s / %d", run.of, r.Repeat), withoutResult(r)
				run.Result.Scenario = s.Name
				p.absent = append(p.absent, run)
			}
		}
	case record.IsSearch(dir):
		s, err := record.ReadSearch(dir)
		switch {
		case err != nil:
			return fmt.Errorf("read %s: %w", dir, err)
		case !alone:
			return notAlone(dir)
		}
		p.search, p.Title = s, "The highest rate: "+name
		for i, point := range s.Points {
			of := fmt.Sprintf("%d: %s/s", i+1, record.PerSecond(point.Rate))
			if point.Hold {
				of += ", held"
			}
			p.add(&Run{of: of, path: filepath.Join(dir, record.PointFolder(i+1, point.Rate)), part: i + 1})
		}
	default:
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		before := len(p.Runs)
		for _, e := range entries {
			p.add(&Run{of: name, path: filepath.Join(dir, e.Name())})
		}
		if len(p.Runs) == before {
			return fmt.Errorf("%s: %w", dir, result.ErrNoResult)
		}
	}
	return nil
}

func notAlone(dir string) error {
	return &plan.Mistake{Text: dir + " is a sweep or a search, which has a page of its own", Hint: "report it by itself"}
}

// add adds a run if there is a result of it, and reports that. One with the group of the run before it is a repeat.
func (p *Page) add(r *Run) bool {
	if !isResult(r.path) {
		return false
	}
	if n := len(p.Runs); n > 0 {
		r.group = p.Runs[n-1].group
		if p.Runs[n-1].of != r.of {
			r.group++
		}
	}
	r.Name = r.of
	p.Runs = append(p.Runs, r)
	return true
}

// limitOf returns the limit of the points of a run on a page with that many runs; a series has up to twice as many.
func limitOf(runs int) int { return max(minPoints, maxPoints/2/max(1, runs)) }

func isResult(dir string) bool {
	for _, name := range []string{result.RowsFile, result.ResultFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// begin makes a run ready for rows, on a page with that many runs. Only a single run has heat maps.
func (r *Run) begin(runs int) {
	r.series = &series{limit: limitOf(runs)}
	if runs == 1 {
		r.heat = &[result.NumKinds]heat{}
	}
}

// add takes a row; heat maps need its histograms.
func (r *Run) add(row *result.Row) {
	r.series.add(row)
	for kind, l := range row.Latencies {
		if r.heat != nil && (!result.Kinds()[kind].Stage || row.Connections != nil) {
			r.heat[kind].add(row, l)
		}
	}
	if n := len(r.steps); n == 0 || r.steps[n-1].Name != row.Step {
		r.steps = append(r.steps, stats.Summary{Name: row.Step})
	}
	for _, sum := range []*stats.Rates{&r.rows, &r.steps[len(r.steps)-1].Rates} {
		sum.Add(row, time.Duration(row.Length)*time.Microsecond, 0)
	}
}

func (p *Page) title() string {
	if len(p.Runs) == 0 {
		return "no run"
	}
	text := p.Runs[0].of
	switch last := p.Runs[len(p.Runs)-1]; {
	case last.group == 1:
		text += " and " + last.of
	case last.group > 1:
		text += fmt.Sprintf(" and %d more", last.group)
	}
	if scenario := p.Runs[0].Result.Scenario; scenario != "" {
		text = scenario + ": " + text
	}
	return text
}

// rated returns the result with the rates of its rows where it lacks them: the run continues or was killed.
func (r *Run) rated(read *result.Result) *result.Result {
	c := *read
	c.Rows, c.Steps = nil, slices.Clone(read.Steps)
	if c.Figures == nil {
		c.Figures = rates(read, &r.rows, r.steps...)
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Figures == nil && i < len(r.steps) && r.steps[i].Name == s.Name {
			s.Figures = rates(read, &r.steps[i].Rates, r.steps[i])
		}
	}
	return &c
}

// rates returns the rates of rows for the roles of the run, the lowest and highest over the steps that sent, or
// received; nil without rows.
func rates(r *result.Result, rows *stats.Rates, steps ...stats.Summary) *result.Figures {
	if rows.Average.Span <= 0 {
		return nil
	}
	sum := stats.Rates{Average: rows.Average}
	for i := range steps {
		low, high, a := steps[i].Minimum, steps[i].Maximum, &steps[i].Average
		sends := a.Sent > 0 || a.Completed > 0
		low.Only(sends, true)
		high.Only(sends, true)
		sum.Minimum.Include(&low, 1)
		sum.Maximum.Include(&high, -1)
	}
	return sum.FiguresOf(r.Total.Producers != nil, r.Total.Consumers != nil)
}
