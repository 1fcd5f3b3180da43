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
