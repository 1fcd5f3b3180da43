package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// searchVerdict is the outcome of a search in the words and colours of a run.
func searchVerdict(s *record.Search) *story {
	text, why := s.Words()
	v := &story{Verdict: sentence(text), Mark: "bad"}
	switch s.Kind() {
	case record.Maximum:
		v.Mark = "good"
	case record.AtLeast, record.Undecided, record.Open:
		v.Mark = "warn"
	}
	v.Reason = why
	if s.Failed.Limit != "" && s.Kind() != record.AtLeast && s.Kind() != record.Undecided {
		v.Limits = []string{s.Failed.Limit}
	}
	if len(s.Thresholds) > 0 {
		v.Numbers = append(v.Numbers, "The thresholds: "+strings.Join(s.Thresholds, ", ")+
			". Of few messages, two may be missing.")
	}
	tried := words.Plural(len(s.Points), "load") + " tried"
	if n := s.Bounded(); n > 0 {
		tried += fmt.Sprintf("; perfmq was the limit of %d of them, not the broker", n)
	}
	v.Numbers = append(v.Numbers, tried+".")
	return v
}

// searchData has the loads of a search, each with the values of the metrics of its thresholds.
type searchData struct {
	*record.Search
	Text   string               `json:"text"`
	Values []map[string]float64 `json:"values"`
}

// searched returns the data of a search; nil without one.
func (p *Page) searched() *searchData {
	if p.search == nil {
		return nil
	}
	d := &searchData{Search: p.search}
	d.Text, _ = p.search.Words()
	for i := range p.search.Points {
		values := map[string]float64{}
		for _, name := range metricsOf(p.search.Thresholds) {
			if list := p.thresholds(i+1, name); len(list) > 0 && list[0].Measured != nil {
				values[name] = *list[0].Measured
			}
		}
		d.Values = append(d.Values, values)
	}
	return d
}

// searchTable has a row for each load of the search, in the order in which they were tried.
func (p *Page) searchTable() Table {
	t := Table{Title: "Rates tried", Head: []string{"load", "rate", "verdict"}, Words: true}
	metrics := metricsOf(p.search.Thresholds)
	t.Head = append(append(t.Head, metrics...), "why not", "limit")
	for i, x := range p.search.Points {
		verdict := x.Verdict()
		if x.Hold {
			verdict += ", for longer"
		}
		row := []string{fmt.Sprint(i + 1), record.PerSecond(x.Rate) + "/s", verdict}
		for _, name := range metrics {
			text := "-"
			if list := p.thresholds(i+1, name); len(list) > 0 {
				text = strings.Replace(measured(list[0]), " messages/s", "/s", 1)
			}
			row = append(row, text)
		}
		t.Rows = append(t.Rows, append(row, cmp.Or(x.Why, "-"), cmp.Or(x.Limit, "-")))
	}
	return t
}

// metricsOf returns the metrics of thresholds.
func metricsOf(thresholds []string) (names []string) {
	for _, text := range thresholds {
		if d, err := threshold.Parse(text); err == nil && !slices.Contains(names, d.Metric.Name) {
			names = append(names, d.Metric.Name)
		}
	}
	return names
}

// thresholds returns the outcomes of the thresholds on a metric, or a step's metric, of a load or a cell.
func (p *Page) thresholds(part int, metric string) (list []*result.Threshold) {
	for _, r := range p.Runs {
		for i := range r.Result.Thresholds {
			x := &r.Result.Thresholds[i]
			if r.part == part && (x.Metric == metric || record.Name(x.Step, x.Metric) == metric) {
				list = append(list, x)
			}
		}
	}
	return list
}

// compared holds the sets against the first, or has the noise of the repeats of a single set.
func (p *Page) compared() *compare.Comparison {
	var sets []compare.Set
	for _, r := range p.Runs {
		if r.group == len(sets) {
			sets = append(sets, compare.Set{Name: r.of})
		}
		sets[r.group].Repeats = append(sets[r.group].Repeats, r.Result)
	}
	return compare.New(sets, compare.Usual())
}

// compare sets the sentences of a comparison, and returns a table of the sets side by side and one of the differences
// of plans, labels, versions and machines.
func (v *view) compare(all *compare.Comparison) []Table {
	rows := all.Table(inUnit)
	t := Table{
		Title: "Side by side", Head: rows[0], Rows: rows[1:],
	}
	if len(all.Sets) == 1 {
		t.Title = "Noise of the repeats"
	}
	differs := Table{Title: "What differs", Head: []string{""}, Words: true}
	for _, s := range all.Sets {
		differs.Head = append(differs.Head, s.Name)
	}
	for _, d := range all.Differences {
		differs.add(append([]string{d.Kind + " " + d.Name}, d.Values...)...)
	}
	for i := 1; i < len(all.Sets); i++ {
		mark, text := all.Headline(i)
		if i == 1 {
			v.Lead = &story{Mark: mark}
			v.Lead.Verdict, v.Lead.Reason, _ = strings.Cut(text, ": ")
			continue
		}
		v.Summaries = append(v.Summaries, text+".")
	}
	for _, note := range all.Notes() {
		v.Summaries = append(v.Summaries, sentence(note)+".")
	}
	return []Table{t, differs}
}

// inUnit writes a figure as the other tables do.
func inUnit(unit threshold.Unit, v float64) string {
	switch unit {
	case threshold.Time:
		return words.Duration(int64(math.Round(v)))
	case threshold.PerSecond:
		return number(v) + "/s"
	case threshold.Percent:
		return number(v) + "%"
	case threshold.Bytes:
		return number(v/1e6) + " MB"
	case threshold.BytesPerSecond:
		return number(v/1e6) + " MB/s"
	}
	return number(v)
}

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
