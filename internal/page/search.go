package page

import (
	"cmp"
	"fmt"
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
	page *Page
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
	for _, r := range s.page.Runs {
		for i := range r.Result.Thresholds {
			if x := &r.Result.Thresholds[i]; r.load == load && x.Metric == metric {
				return x
			}
		}
	}
	return nil
}
