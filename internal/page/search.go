package page

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
)

// searched is a search for the highest rate, on a page of its own.
type searched struct {
	*record.Search
	runs map[int]*Run // by the number of the load, the first being 1
}

// setsOfSearch returns the loads of a search.
func setsOfSearch(dir string, o *record.Search) (list []set) {
	for i := range o.Points {
		p := &o.Points[i]
		path := filepath.Join(dir, record.PointFolder(i+1, p.Rate))
		if !isResult(path) {
			continue
		}
		name := record.PerSecond(p.Rate) + "/s"
		if p.Hold {
			name += ", held"
		}
		list = append(list, set{name: fmt.Sprintf("%d: %s", i+1, name), paths: []string{path}, load: i + 1})
	}
	return list
}

// conclusion returns the set of the load that a search came to among others: the last that held the rate, or else the
// last one.
func conclusion(name string, o *record.Search, list []set) []set {
	if len(list) == 0 {
		return nil
	}
	best := list[len(list)-1]
	for _, one := range list {
		if p := &o.Points[one.load-1]; o.Held && p.Hold && p.Kept {
			best = one
		}
	}
	best.name = name
	return []set{best}
}

// verdict is the outcome in the words and colours of a run.
func (s *searched) verdict() *story {
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
		v.Limits = []Fact{{"Limit", s.Failed.Limit}}
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

// table has a row for each load, in the order in which they were tried.
func (s *searched) table() Table {
	t := Table{Title: "Rates tried", Head: []string{"load", "rate", "verdict"}, Words: true}
	metrics := s.metrics()
	t.Head = append(append(t.Head, metrics...), "why not", "limit")
	for i := range s.Points {
		p := &s.Points[i]
		verdict := p.Verdict()
		if p.Hold {
			verdict += ", for longer"
		}
		row := append([]string{fmt.Sprint(i + 1), record.PerSecond(p.Rate) + "/s", verdict}, s.measured(i+1, metrics)...)
		t.Rows = append(t.Rows, append(row, dash(p.Why), dash(p.Limit)))
	}
	return t
}

// metrics returns the metrics of the thresholds.
func (s *searched) metrics() (names []string) {
	for _, text := range s.Thresholds {
		if d, err := threshold.Parse(text); err == nil && !slices.Contains(names, d.Metric.Name) {
			names = append(names, d.Metric.Name)
		}
	}
	return names
}

// measured returns what a load measured of the metrics of the demands.
func (s *searched) measured(load int, metrics []string) []string {
	cells := make([]string, len(metrics))
	for i, name := range metrics {
		cells[i] = "-"
		if r := s.runs[load]; r != nil {
			for k := range r.Result.Thresholds {
				if x := &r.Result.Thresholds[k]; x.Metric == name {
					cells[i] = strings.Replace(measured(x), " messages/s", "/s", 1)
				}
			}
		}
	}
	return cells
}

// dash is the cell of a text that may be empty.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// grids returns figures over the rate, those of the demands first.
func (s *searched) grids() (list []grid) {
	if s == nil {
		return nil
	}
	var rates []float64
	for i := range s.Points {
		rates = append(rates, s.Points[i].Rate)
	}
	slices.Sort(rates)
	rates = slices.Compact(rates)
	for _, name := range append(s.metrics(), compare.Usual()...) {
		m, err := compare.Find(name)
		drawn := slices.ContainsFunc(list, func(g grid) bool { return g.Name == name })
		if err != nil || name == record.FoundMetric || drawn {
			continue
		}
		if g := s.grid(&m, rates); len(g.Lines) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// grid returns a metric over the rate: a line of the loads that passed, and one of the others.
func (s *searched) grid(m *compare.Metric, rates []float64) grid {
	g := grid{Name: m.Name, Axis: "rate", Unit: "us"}
	if m.Unit == threshold.PerSecond {
		g.Unit = "messages/s"
	} else if m.Unit != threshold.Time {
		return g
	}
	for _, rate := range rates {
		g.Values, g.At = append(g.Values, record.PerSecond(rate)), append(g.At, number64(rate))
	}
	for _, kept := range []bool{true, false} {
		values := make([][]float64, len(rates))
		known := false
		for i := range s.Points {
			p, r := &s.Points[i], s.runs[i+1]
			if p.Kept != kept || r == nil {
				continue
			}
			if v, ok := r.figures().Metrics()[m.Name]; ok {
				at, _ := slices.BinarySearch(rates, p.Rate)
				values[at], known = append(values[at], v), true
			}
		}
		if !known {
			continue
		}
		line := newGridLine(map[bool]string{true: "pass", false: "fail"}[kept], len(rates))
		for i, list := range values {
			if len(list) > 0 {
				slices.Sort(list)
				line.Low[i], line.High[i] = number64(list[0]), number64(list[len(list)-1])
				line.Value[i] = number64((list[(len(list)-1)/2] + list[len(list)/2]) / 2)
			}
		}
		g.Lines = append(g.Lines, line)
	}
	return g
}

// drawn tells whether the charts over time have a load: those at the rate that was found and at the lowest that failed.
func (s *searched) drawn(r *Run) bool {
	if s == nil {
		return true
	}
	for number, of := range s.runs {
		if rate := s.Points[number-1].Rate; of == r && (rate == s.Rate || rate == s.Above) {
			return true
		}
	}
	return false
}
