// Package page makes reports of results for people: one self-contained HTML page with verdicts, tables and charts, or
// the tables as Markdown or CSV. [Feed] serves the same page during a run.
//
// # How it is made
//
//	result.Read, or rows as they come -> Run (series, thinned; tally) -> Page
//	Page -> words and tables: html/template
//	Page -> charts: JSON, drawn by assets/page.js on uPlot
//
// This package renders all words. The script draws charts from numbers, and a live page takes words and numbers from
// the page that it fetches again, so that each has one renderer. The page loads nothing: a Content-Security-Policy
// allows only the hashes of its script and styles. html/template and encoding/json escape all texts of results.
//
// Best and worst are computed from the rows; a result whose numbers contradict each other is refused with
// [ErrImpossible].
package page

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
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
	// Live means that the run goes on, so that its result is not complete yet.
	Live bool

	series *series
	tally  *tally
	group  int
	cell   map[string]string // the values of the axes of a sweep
}

// Group is a run, or the repeats of one.
type Group struct {
	Name string
	Runs []*Run
}

// Page is a report on some runs.
type Page struct {
	Title  string
	Groups []Group

	matrix *matrix   // of a sweep
	search *searched // of a search
}

// runs returns the runs of all groups.
func (p *Page) runs() (list []*Run) {
	for i := range p.Groups {
		list = append(list, p.Groups[i].Runs...)
	}
	return list
}

// set is a run with the folders of its repeats.
type set struct {
	name   string
	paths  []string
	values map[string]string // of the axes of a sweep
	load   int               // the number of a load of a search
}

// Read returns the page about results. Each of dirs is a result, or a folder of results (repeats of one run); a sweep
// or a search has a page of its own, unless it only repeats a run. The runs may still go on.
//
// The error is a [plan.Mistake], an error of result.Read, or wraps [ErrImpossible] or [ErrTooMany].
func Read(dirs ...string) (*Page, error) {
	p := &Page{}
	sets, err := p.sets(dirs)
	if err != nil {
		return nil, err
	}
	total := 0
	for i := range sets {
		total += len(sets[i].paths)
	}
	if total > MaxRuns {
		if p.matrix == nil {
			return nil, ErrTooMany
		}
		sets = nil // the sweep's own file has the figures of all cells
	}
	for i, one := range sets {
		g := Group{Name: one.name}
		for _, path := range one.paths {
			name := g.Name
			if len(one.paths) > 1 {
				name += " / " + strings.TrimPrefix(filepath.Base(path), "repeat-")
			}
			read, err := result.Read(path)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			r, err := newRun(name, read, total)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			r.group, r.cell = i, one.values
			if p.search != nil {
				p.search.runs[one.load] = r
			}
			g.Runs = append(g.Runs, r)
		}
		p.Groups = append(p.Groups, g)
	}
	if p.Title == "" {
		p.Title = p.title()
	}
	return p, nil
}

// sets returns the runs in folders, and notes a sweep or a search.
func (p *Page) sets(dirs []string) (sets []set, err error) {
	for i, name := range Names(dirs) {
		dir := dirs[i]
		alone := len(dirs) == 1
		switch {
		case isResult(dir):
			sets = append(sets, set{name: name, paths: []string{dir}})
		case record.IsSweep(dir):
			s, err := record.ReadSweep(dir)
			switch {
			case err != nil:
				return nil, err
			case alone:
				p.matrix, p.Title = newMatrix(s), cmp.Or(s.Name, name)
			case len(s.Axes) > 0:
				return nil, notAlone(dir)
			}
			sets = append(sets, setsOfSweep(name, dir, s)...)
		case record.IsSearch(dir):
			s, err := record.ReadSearch(dir)
			switch {
			case err != nil:
				return nil, fmt.Errorf("read %s: %w", dir, err)
			case !alone:
				return nil, notAlone(dir)
			}
			p.search, p.Title = &searched{Search: s, runs: map[int]*Run{}}, "The highest rate: "+name
			sets = setsOfSearch(dir, s)
		default:
			paths, err := results(dir)
			if err != nil {
				return nil, err
			}
			sets = append(sets, set{name: name, paths: paths})
		}
	}
	return sets, nil
}

func notAlone(dir string) error {
	return &plan.Mistake{Text: dir + " is a sweep or a search, which has a page of its own", Hint: "report it by itself"}
}

// setsOfSweep returns the repeats of each cell.
func setsOfSweep(name, dir string, s *record.Sweep) (list []set) {
	at := map[int]int{}
	for i := range s.Runs {
		r := &s.Runs[i]
		path := filepath.Join(dir, filepath.FromSlash(r.Folder))
		if !isResult(path) {
			continue
		}
		k, known := at[r.Cell]
		if !known {
			k = len(list)
			at[r.Cell] = k
			list = append(list, set{name: cmp.Or(s.Title(r.Values), name), values: r.Values})
		}
		list[k].paths = append(list[k].paths, path)
	}
	return list
}

// limitOf returns the limit of the points of a run on a page with that many runs; a series has up to twice as many.
func limitOf(runs int) int { return max(minPoints, maxPoints/2/max(1, runs)) }

// Names returns short names of folders: the last part of each path or, where these are equal, the paths.
func Names(dirs []string) []string {
	names := make([]string, len(dirs))
	seen := map[string]int{}
	for i, dir := range dirs {
		if names[i] = filepath.Base(filepath.Clean(dir)); names[i] == "." {
			names[i] = "run"
		}
		seen[names[i]]++
	}
	for i, dir := range dirs {
		if seen[names[i]] > 1 {
			names[i] = filepath.ToSlash(filepath.Clean(dir))
		}
	}
	return names
}

// results returns the results in a folder.
func results(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); e.IsDir() && isResult(path) {
			list = append(list, path)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, result.ErrNoResult)
	}
	return list, nil
}

func isResult(dir string) bool {
	for _, name := range []string{result.RowsFile, result.ResultFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// newRun returns a run of a result with its rows, on a page with that many runs. The error is [ErrImpossible].
func newRun(name string, read *result.Result, runs int) (*Run, error) {
	r := &Run{Name: name, series: &series{limit: limitOf(runs)}, tally: &tally{}}
	for i := range read.Rows {
		r.add(&read.Rows[i])
	}
	c := *read
	c.Rows = nil
	r.Result = &c
	return r, check(r.Result, r.tally)
}

func (r *Run) add(row *result.Row) {
	r.series.add(row)
	r.tally.add(row)
}

// Check refuses a result with its rows whose numbers contradict each other. The error is [ErrImpossible].
func Check(read *result.Result) error {
	_, err := newRun("", read, 1)
	return err
}

func (p *Page) title() string {
	if len(p.Groups) == 0 {
		return "no run"
	}
	text := p.Groups[0].Name
	if more := len(p.Groups) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if scenario := p.Groups[0].Runs[0].Result.Scenario; scenario != "" {
		text = scenario + ": " + text
	}
	return text
}

func (r *Run) sends() bool    { return r.Result.Total.Producers != nil }
func (r *Run) receives() bool { return r.Result.Total.Consumers != nil }

// has reports whether the run has a role of figures.
func (r *Run) has(role string) bool {
	return role == "" || role == sending && r.sends() || role == receiving && r.receives()
}
