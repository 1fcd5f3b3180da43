package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
)

type (
	// sweepData has the cells of a sweep in the order of their tables.
	sweepData struct {
		Axes    []record.Axis `json:"axes"`
		Metrics []string      `json:"metrics"`
		Cells   []sweepCell   `json:"cells"`
	}
	sweepCell struct {
		Values  map[string]string      `json:"values"`
		Figures map[string]sweepFigure `json:"figures"`
	}
	sweepFigure struct {
		record.Spread
		Text    string `json:"text"`
		Bounded bool   `json:"bounded"`
		Judged  string `json:"judged"` // by its thresholds: kept, broken, or empty
	}
)

// swept returns the data of a sweep; nil without one.
func (p *Page) swept() *sweepData {
	if p.sweep == nil {
		return nil
	}
	rows := p.sweep.Rows()
	d := &sweepData{
		Axes: p.sweep.Axes, Cells: []sweepCell{},
		Metrics: p.sweep.Columns(rows, append(record.Detailed(), record.Side()...)),
	}
	for i := range rows {
		r := &rows[i]
		c := sweepCell{r.Values, map[string]sweepFigure{}}
		for _, name := range d.Metrics {
			if f, has := r.Figures[name]; has {
				c.Figures[name] = sweepFigure{f, cellText(r, name), r.Bound(name) != "", p.judged(r.Cell, name)}
			}
		}
		d.Cells = append(d.Cells, c)
	}
	return d
}

// cellText is the median of the repeats of a cell with their spread.
func cellText(r *record.Row, name string) string {
	f, has := r.Figures[name]
	if !has {
		return "-"
	}
	return strings.TrimSpace(r.Bound(name) + inUnit(record.UnitOf(name), f.Median) + " " + f.String())
}

// judged is broken if a run of a cell fails a threshold on a metric, kept if none does, or empty without thresholds.
func (p *Page) judged(cell int, name string) (judged string) {
	for _, t := range p.thresholds(cell, name) {
		if !t.Kept {
			return "broken"
		}
		judged = "kept"
	}
	return judged
}

// sweepTables has the medians of each cell, then those of the broker.
func (p *Page) sweepTables() (list []Table) {
	rows := p.sweep.Rows()
	table := func(title string, metrics []string) {
		names := p.sweep.Columns(rows, metrics)
		t := Table{Title: title, Head: []string{"cell", "runs", "failed"}}
		for _, name := range names {
			t.Head = append(t.Head, strings.Replace(name, threshold.BrokerPrefix, "", 1))
		}
		for _, r := range rows {
			row := []string{cmp.Or(p.sweep.Title(r.Values), "all"), fmt.Sprint(r.Good), fmt.Sprint(r.Failed)}
			for _, name := range names {
				row = append(row, cellText(&r, name))
			}
			t.add(row...)
		}
		if len(names) > 0 || len(list) == 0 {
			list = append(list, t)
		}
	}
	table("Cells", record.Detailed())
	table("The broker in each cell", record.Side())
	return list
}

// sweepVerdict is the outcome of a sweep in the words and colours of a run.
func (p *Page) sweepVerdict() *story {
	good, late, failed := 0, 0, 0
	for _, r := range p.sweep.Runs {
		switch {
		case r.Good():
			good, late = good+1, late+min(r.Status, 1)
		case r.State == record.Done:
			failed++
		}
	}
	all, rows := words.Plural(len(p.sweep.Runs), "run"), p.sweep.Rows()
	v := &story{Mark: "bad", Reason: sentence(p.sweep.Bounded())}
	switch {
	case failed > 0:
		v.Verdict = fmt.Sprintf("%d of %s failed", failed, all)
	case late > 0:
		v.Verdict = fmt.Sprintf("A threshold failed in %d of %s", late, all)
	case good < len(p.sweep.Runs):
		v.Mark, v.Verdict = "warn", fmt.Sprintf("%d of %s have ended", good, all)
	case v.Reason != "":
		v.Mark, v.Verdict = "warn", all+" succeeded"
	default:
		v.Mark, v.Verdict = "good", all+" succeeded"
	}
	v.Numbers = []string{
		fmt.Sprintf("%s, %d of %s counted, %d failed.", words.Plural(len(rows), "cell"), good, all, failed),
	}
	for _, name := range p.sweep.Columns(rows, []string{"completed.avg", "received.avg"}) {
		best := slices.MaxFunc(rows, func(a, b record.Row) int {
			return cmp.Compare(a.Figures[name].Median, b.Figures[name].Median)
		})
		v.Numbers = append(v.Numbers, fmt.Sprintf("Highest %s: %s at %s.", name, cellText(&best, name),
			cmp.Or(p.sweep.Title(best.Values), "all")))
	}
	return v
}
