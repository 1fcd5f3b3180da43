package page

import (
	"fmt"
	"slices"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// The charts get their numbers as JSON: a column per curve, with null for a missing value. Times are in milliseconds
// from the start of the load, latencies in microseconds, rates in messages per second.
type (
	chartData struct {
		Runs     []runData     `json:"runs"`
		Note     string        `json:"note,omitempty"` // names the runs, if not all are drawn
		Lines    []lineAt      `json:"lines"`
		Sweep    *sweepData    `json:"sweep,omitempty"`
		Search   *searchData   `json:"search,omitempty"`
		Sets     []string      `json:"sets,omitempty"` // of a comparison
		Compared []compare.Row `json:"compared,omitempty"`
		Now      *now          `json:"now,omitempty"` // of a live page
	}
	runData struct {
		Name  string `json:"name"`
		Group int    `json:"group"`
		// Seconds is the length of a point of several rows; the curves then have their lowest and highest values.
		Seconds     float64                  `json:"seconds"`
		Time        []number64               `json:"time"`
		Curves      []curve                  `json:"curves"` // over time
		Bands       []band                   `json:"bands"`
		Percentiles map[string]*distribution `json:"percentiles"`
		// Heat and Bars, of a single run, count latencies by time and size, and after the warm-up by size alone.
		Heat    map[string]*heat   `json:"heat,omitempty"`
		Bars    map[string]buckets `json:"bars,omitempty"`
		Offered number64           `json:"offered"` // the rate that was asked for; 0 without one
	}
	// band is a marked period, or moment: a warm-up, a drain, a stall, an outage, a step, or an event of the broker.
	band struct {
		Kind string   `json:"kind"`
		From number64 `json:"from"`
		To   number64 `json:"to"`
		Text string   `json:"text"`
	}
	// lineAt is a threshold that can be drawn: a level of a metric.
	lineAt struct {
		Metric string   `json:"metric"`
		Value  number64 `json:"value"`
		Text   string   `json:"text"`
		Kept   bool     `json:"kept"`
	}
)

// maxDrawn is the maximum number of runs that are drawn with all their repeats: more curves hide each other.
const maxDrawn = 16

// dataOf returns the numbers of the charts.
func dataOf(p *Page) *chartData {
	runs := p.Runs
	d := &chartData{Lines: linesOf(runs), Sweep: p.swept(), Search: p.searched(), Runs: []runData{}, Now: p.now}
	if len(runs) > 1 && p.sweep == nil && p.search == nil {
		all := p.compared()
		for _, s := range all.Sets {
			d.Sets = append(d.Sets, s.Name)
		}
		d.Compared = all.Rows
	}
	for i, r := range runs {
		if len(runs) > maxDrawn && i > 0 && runs[i-1].group == r.group {
			d.Note = "Drawn is the first repeat of each."
			continue
		}
		d.Runs = append(d.Runs, r.data())
	}
	return safetext.Each(d, safetext.Line)
}

func (r *Run) data() runData {
	s := r.series
	d := runData{
		Name: r.Name, Group: r.group, Seconds: float64(s.span) / 1e6,
		Percentiles: map[string]*distribution{}, Heat: map[string]*heat{}, Bars: map[string]buckets{},
		Curves: r.curves(), Time: []number64{}, Bands: r.outageBands(),
	}
	for i := range s.points {
		p := &s.points[i]
		d.Time = append(d.Time, millis(p.to))
		if i == 0 || s.points[i-1].step != p.step {
			d.Bands = append(d.Bands, band{"step", millis(p.from), millis(p.from), p.step})
		}
		d.mark(p)
	}
	for _, stall := range r.Result.Stalls {
		d.Bands = append(d.Bands, band{
			"stall", millis(stall.Elapsed), millis(stall.Elapsed + stall.Length),
			fmt.Sprintf("stall (%s): %s at %s s", stallSide(&stall), words.Duration(stall.Length),
				seconds(stall.Elapsed)),
		})
	}
	for _, side := range r.Result.BrokerSide {
		for _, e := range side.Events {
			at := millis(e.Time - r.Result.Start)
			d.Bands = append(d.Bands, band{"event", at, at, e.Text})
		}
	}
	for kind, name := range result.KindNames() {
		l := r.Result.Latencies[kind]
		c := distributionOf(l)
		if c == nil {
			continue
		}
		d.Percentiles[name] = c
		if r.heat != nil {
			d.Bars[name] = buckets{}
			d.Bars[name].add(l.Histogram)
			if h := &r.heat[kind]; len(h.Columns) > 0 {
				d.Heat[name] = h
			}
		}
	}
	if f := r.Result.Figures; f != nil && f.Offered != nil {
		d.Offered = number64(*f.Offered)
	}
	return d
}

// mark adds a point to the band of its phase.
func (d *runData) mark(p *point) {
	if p.phase != result.Warmup && p.phase != result.Drain {
		return
	}
	if n := len(d.Bands); d.Bands[n-1].Kind == p.phase { // after the band of the step
		d.Bands[n-1].To = millis(p.to)
		return
	}
	d.Bands = append(d.Bands, band{Kind: p.phase, From: millis(p.from), To: millis(p.to)})
}

// linesOf returns the thresholds that can be drawn as levels in the charts, of several runs each once.
func linesOf(runs []*Run) []lineAt {
	list := []lineAt{}
	for _, r := range runs {
		for _, t := range r.Result.Thresholds {
			parsed, err := threshold.Parse(t.Threshold)
			if err != nil || parsed.OfTarget || parsed.Metric.Unit != threshold.Time &&
				parsed.Metric.Unit != threshold.PerSecond {
				continue
			}
			if !slices.ContainsFunc(list, func(l lineAt) bool { return l.Text == t.Threshold }) {
				list = append(list, lineAt{parsed.Metric.Name, number64(parsed.Value), t.Threshold, t.Kept})
			}
		}
	}
	return list
}
