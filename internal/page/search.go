package page

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
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
		row := []string{fmt.Sprint(i + 1), record.PerSecond(p.Rate) + "/s", verdict}
		for _, name := range metrics {
			text := "-"
			if x := s.measured(i+1, name); x != nil {
				text = strings.Replace(measured(x), " messages/s", "/s", 1)
			}
			row = append(row, text)
		}
		t.Rows = append(t.Rows, append(row, cmp.Or(p.Why, "-"), cmp.Or(p.Limit, "-")))
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

// measured returns what a load measured of the metric of a threshold; nil if it is not known.
func (s *searched) measured(load int, metric string) *result.Threshold {
	if r := s.runs[load]; r != nil {
		list := r.Result.Thresholds
		if i := slices.IndexFunc(list, func(x result.Threshold) bool { return x.Metric == metric }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// grids returns the metrics of the thresholds over the rate: a line of the loads that passed, and one of the others.
func (s *searched) grids() (list []grid) {
	if s == nil {
		return nil
	}
	loads := make([]int, len(s.Points))
	for i := range loads {
		loads[i] = i + 1
	}
	slices.SortStableFunc(loads, func(a, b int) int { return cmp.Compare(s.Points[a-1].Rate, s.Points[b-1].Rate) })
	for _, name := range s.metrics() {
		g := grid{Name: name, Axis: "rate", Unit: "us"}
		if m, _ := threshold.Find(name); m.Unit == threshold.PerSecond {
			g.Unit = "messages/s"
		} else if m.Unit != threshold.Time {
			continue
		}
		pass, fail := newGridLine("pass", len(loads)), newGridLine("fail", len(loads))
		for i, load := range loads {
			p := &s.Points[load-1]
			g.Values, g.At = append(g.Values, record.PerSecond(p.Rate)), append(g.At, number64(p.Rate))
			line := &fail
			if p.Kept {
				line = &pass
			}
			if x := s.measured(load, name); x != nil && x.Measured != nil {
				line.Value[i] = number64(*x.Measured)
				line.Low[i], line.High[i] = line.Value[i], line.Value[i]
			}
		}
		g.Lines = known([]gridLine{pass, fail})
		if len(g.Lines) > 0 {
			list = append(list, g)
		}
	}
	return list
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
