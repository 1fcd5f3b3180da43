// Package page makes reports of results for people: one self-contained HTML page with verdicts, tables and charts, or
// the tables as Markdown or CSV. [Server] serves the same page during a run.
//
// # How it is made
//
//	result.Read, or rows as they come -> Run (series, thinned; tally) -> Page
//	Page -> words and tables: html/template
//	Page -> charts: JSON, drawn by assets/page.js on uPlot
//
// This package renders all words. The script draws charts from numbers, and on a live page it inserts the words that
// the server has rendered, so that each has one renderer. The page loads nothing: a Content-Security-Policy allows only
// the hashes of its script and styles. html/template and encoding/json escape all texts of results.
//
// Best and worst are computed from the rows; a result whose numbers contradict each other is refused with
// [ErrImpossible].
package page

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	// Warmup are the latencies of the messages that were due in the warm-up.
	Warmup result.Latencies
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

	search string // the folder of the search that the run concludes
}

// Page is a report on some runs.
type Page struct {
	Title  string
	Groups []Group

	matrix *matrix   // of a sweep
	search *searched // of a search
	notes  []string  // on searches among others
}

// runs returns the runs of all groups.
func (p *Page) runs() (list []*Run) {
	for i := range p.Groups {
		list = append(list, p.Groups[i].Runs...)
	}
	return list
}

// Read returns the page about results. Each of dirs is a result, a folder of results (repeats of one run), a sweep, or
// a search. The runs may still go on. If a sweep is not the only folder, each of its cells is a
// set of repeats; a search then has the load that held the rate.
//
// The error is an error of result.Read, or wraps [ErrImpossible] or [ErrTooMany].
func Read(dirs ...string) (*Page, error) {
	p := &Page{}
	var sets []set
	total := 0
	for i, name := range Names(dirs) {
		found, sweep, search, err := setsOf(name, dirs[i])
		if err != nil {
			return nil, err
		}
		switch {
		case sweep != nil && len(dirs) == 1:
			p.matrix = newMatrix(sweep)
			p.Title = cmp.Or(sweep.Name, name)
		case search != nil && len(dirs) == 1:
			p.search = &searched{Search: search, runs: map[int]*Run{}}
			p.Title = "The highest rate: " + name
		case search != nil:
			text, _ := search.Words()
			p.notes = append(p.notes, name+": "+text+".")
			found = conclusion(name, search, found)
			for k := range found {
				found[k].search = dirs[i]
			}
		}
		for _, one := range found {
			total += len(one.paths)
		}
		sets = append(sets, found...)
	}
	if total > MaxRuns {
		if p.matrix == nil {
			return nil, ErrTooMany
		}
		sets = nil // the sweep's own file has the figures of all cells
	}
	for i, one := range sets {
		g := Group{Name: one.name, search: one.search}
		for _, path := range one.paths {
			name := g.Name
			if len(one.paths) > 1 {
				name += " / " + strings.TrimPrefix(filepath.Base(path), "repeat-")
			}
			r, err := readRun(name, path, limitOf(total))
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
	if p.matrix == nil && p.search == nil {
		p.Title = p.title()
	}
	return p, nil
}

// set is a run with the folders of its repeats.
type set struct {
	name   string
	paths  []string
	values map[string]string // of the axes of a sweep
	load   int               // the number of a load of a search
	search string            // the folder of a search, of which this is the only load on the page
}

// setsOf returns what a folder has: a run or repeats of one, the cells of a sweep, or the loads of a search.
func setsOf(name, dir string) (sets []set, sweep *record.Sweep, search *record.Search, err error) {
	switch {
	case isResult(dir):
	case record.IsSweep(dir):
		if sweep, err = record.ReadSweep(dir); err == nil {
			sets = setsOfSweep(name, dir, sweep)
		}
		return sets, sweep, nil, err
	case record.IsSearch(dir):
		if search, err = record.ReadSearch(dir); err != nil {
			return nil, nil, nil, fmt.Errorf("read %s: %w", dir, err)
		}
		return setsOfSearch(dir, search), nil, search, nil
	}
	paths, err := results(dir)
	return []set{{name: name, paths: paths}}, nil, nil, err
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

// results returns the folder if it is a result, else the results in it.
func results(dir string) ([]string, error) {
	if isResult(dir) {
		return []string{dir}, nil
	}
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

func readRun(name, dir string, limit int) (*Run, error) {
	r := &Run{Name: name, series: &series{limit: limit}, tally: &tally{}}
	read, err := result.Read(dir, result.WarmupLatencies(&r.Warmup))
	if err != nil {
		return nil, err
	}
	r.Live = !read.Complete && growing(dir)
	return r, r.take(read)
}

// growingTime is the time after its last change during which an incomplete result counts as one of a live run.
const growingTime = 10 * time.Second

func growing(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, result.RowsFile))
	return err == nil && time.Since(info.ModTime()) < growingTime
}

// NewRun returns a run of a result with its rows. The error is [ErrImpossible].
func NewRun(name string, read *result.Result) (*Run, error) {
	r := &Run{Name: name, series: &series{limit: limitOf(1)}, tally: &tally{}}
	return r, r.take(read)
}

// Check refuses a result with its rows whose numbers contradict each other. The error is [ErrImpossible].
func Check(read *result.Result) error {
	_, err := NewRun("", read)
	return err
}

func (r *Run) take(read *result.Result) error {
	for i := range read.Rows {
		r.series.add(&read.Rows[i])
		r.tally.add(&read.Rows[i])
	}
	c := *read
	c.Rows = nil
	r.Result = &c
	return check(r.Result, r.tally)
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

// IsMissing reports whether an error of [Read] means that there is no result.
func IsMissing(err error) bool { return errors.Is(err, result.ErrNoResult) }
