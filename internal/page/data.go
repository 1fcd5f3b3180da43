package page

import (
	"math"
	"slices"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// The charts get their numbers as JSON: a column per curve, with null for a missing value. Times are in milliseconds
// from the start of the load, latencies in microseconds, rates in messages per second.
type (
	chartData struct {
		Runs   []runData `json:"runs"`
		Note   string    `json:"note,omitempty"` // names the runs, if not all are drawn
		Lines  []lineAt  `json:"lines"`
		Matrix []grid    `json:"matrix,omitempty"`
	}
	runData struct {
		Name  string `json:"name"`
		Group int    `json:"group"`
		Final bool   `json:"final"`
		// Thinned means that a point stands for several rows; the columns then have their lowest and highest values.
		Thinned   bool                   `json:"thinned"`
		Seconds   float64                `json:"seconds"` // length of a point, if thinned
		Time      []number64             `json:"time"`
		Warmup    []int                  `json:"warmup"` // indexes of points: from, to, from, to ...
		Rates     map[string]column      `json:"rates"`
		Latencies map[string]tailColumns `json:"latencies"`
		Load      map[string][]number64  `json:"load"`
		Bands     []band                 `json:"bands"`
		Steps     []stepAt               `json:"steps"`
		Events    []stepAt               `json:"events,omitempty"` // of the broker
		Side      []sideData             `json:"side,omitempty"`   // use of the broker and its host
		Curves    map[string]curves      `json:"curves"`
		Pile      *pile                  `json:"pile,omitempty"`
		Offered   number64               `json:"offered"` // the rate that was asked for; 0 without one
	}
	column struct {
		Value []number64 `json:"value"`
		Low   []number64 `json:"low,omitempty"`
		High  []number64 `json:"high,omitempty"`
	}
	tailColumns struct {
		P50 column `json:"p50"`
		P99 column `json:"p99"`
		Max column `json:"max"`
	}
	// band is a marked period: a warm-up, a drain, a stall or an outage.
	band struct {
		Kind string   `json:"kind"`
		From number64 `json:"from"`
		To   number64 `json:"to"`
		Text string   `json:"text"`
	}
	stepAt struct {
		Name string   `json:"name"`
		At   number64 `json:"at"`
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
	runs := p.runs()
	d := &chartData{Lines: linesOf(runs), Matrix: append(p.matrix.grids(), p.search.grids()...), Runs: []runData{}}
	if p.search != nil {
		d.Note = "Drawn are the loads at the rate that was found and at the lowest one that failed."
	}
	for i, r := range runs {
		if !p.search.drawn(r) {
			continue
		}
		if p.search == nil && len(runs) > maxDrawn && i > 0 && runs[i-1].group == r.group {
			d.Note = "Drawn is the first repeat of each."
			continue
		}
		d.Runs = append(d.Runs, r.data())
	}
	return d.clean()
}

func (r *Run) data() runData {
	s := r.series
	d := runData{
		Name: r.Name, Group: r.group, Final: r.Result.Complete, Thinned: s.span > 0, Seconds: float64(s.span) / 1e6,
		Rates: map[string]column{}, Latencies: map[string]tailColumns{}, Load: map[string][]number64{},
		Curves: map[string]curves{},
		Time:   []number64{}, Warmup: []int{}, Bands: []band{}, Steps: []stepAt{},
	}
	for i := range s.points {
		p := &s.points[i]
		d.Time = append(d.Time, millis(p.to))
		if i == 0 || s.points[i-1].step != p.step {
			d.Steps = append(d.Steps, stepAt{p.step, millis(p.from)})
		}
		d.mark(p, i)
	}
	r.rates(&d)
	r.latencies(&d)
	r.load(&d)
	for _, stall := range r.Result.Stalls {
		d.Bands = append(d.Bands, band{
			"stall", millis(stall.Elapsed), millis(stall.Elapsed + stall.Length),
			stallText(&stall),
		})
	}
	d.Bands = append(append(d.Bands, r.outageBands()...), r.bandsSoFar()...)
	d.Side, d.Events = r.side(), r.events()
	for _, name := range result.KindNames() {
		if c, ok := curvesOf(r.Result.Latencies.Get(name), r.Warmup.Get(name)); ok {
			d.Curves[name] = c
		}
	}
	d.Pile = r.pile()
	if f := r.Result.Figures; f != nil && f.Offered != nil {
		d.Offered = number64(*f.Offered)
	}
	return d
}

// mark adds point i to the band of its phase.
func (d *runData) mark(p *point, i int) {
	if p.phase == result.Warmup {
		if n := len(d.Warmup); n > 0 && d.Warmup[n-1] == i-1 {
			d.Warmup[n-1] = i
		} else {
			d.Warmup = append(d.Warmup, i, i)
		}
	}
	if p.phase != result.Warmup && p.phase != result.Drain {
		return
	}
	from, to := millis(p.from), millis(p.to)
	if n := len(d.Bands); n > 0 && d.Bands[n-1].Kind == p.phase && d.Bands[n-1].To >= from {
		d.Bands[n-1].To = to
		return
	}
	text := "warm-up"
	if p.phase == result.Drain {
		text = "drain: no more sends"
	}
	d.Bands = append(d.Bands, band{p.phase, from, to, text})
}

func (r *Run) rates(d *runData) {
	for _, c := range []struct {
		name  string
		known bool
		of    func(*point) *rate
	}{
		{"sent", r.sends(), func(p *point) *rate { return &p.sent }},
		{"completed", r.sends(), func(p *point) *rate { return &p.completed }},
		{"received", r.receives(), func(p *point) *rate { return &p.received }},
	} {
		if !c.known {
			continue
		}
		var col column
		for i := range r.series.points {
			p := &r.series.points[i]
			of := c.of(p)
			v := p.of(of.count)
			sends, receives := r.does(p.step)
			if there := c.name == "received" && receives || c.name != "received" && sends; !there && of.count == 0 {
				v = math.NaN()
			}
			col.Value = append(col.Value, number64(v))
			if d.Thinned {
				// infinite if unknown
				col.Low, col.High = append(col.Low, number64(of.extent.low)), append(col.High, number64(of.extent.high))
			}
		}
		d.Rates[c.name] = col
	}
}

func (r *Run) latencies(d *runData) {
	for k, name := range result.KindNames() {
		known := false
		var columns tailColumns
		for i := range r.series.points {
			t := &r.series.points[i].latencies[k]
			known = known || t.max.known()
			columns.P50.add(&t.p50, d.Thinned)
			columns.P99.add(&t.p99, d.Thinned)
			columns.Max.add(&t.max, false)
		}
		if known {
			d.Latencies[name] = columns
		}
	}
}

// add adds the highest of a point's percentiles and, if both is set, the lowest.
func (c *column) add(e *extent, both bool) {
	if !e.known() {
		e = &extent{math.NaN(), math.NaN()}
	}
	c.Value = append(c.Value, number64(e.high))
	if both {
		c.Low = append(c.Low, number64(e.low))
	}
}

func (r *Run) load(d *runData) {
	backlog, machine, memory := false, false, false
	for i := range r.series.points {
		p := &r.series.points[i]
		backlog, machine, memory = backlog || p.hasBacklog, machine || p.all > 0, memory || p.memory > 0
	}
	for i := range r.series.points {
		p := &r.series.points[i]
		add := func(known bool, name string, v float64) {
			if known {
				d.Load[name] = append(d.Load[name], number64(v))
			}
		}
		add(r.sends(), "inFlight", p.inFlight)
		if !p.hasBacklog {
			p = &point{
				backlog: math.NaN(), cpu: p.cpu, length: p.length, all: p.all, busy: p.busy, memory: p.memory,
				cores: p.cores,
			}
		}
		add(backlog, "backlog", p.backlog)
		add(true, "cpu", float64(p.cpu)/float64(max(1, p.length)))
		add(machine, "machine", float64(p.busy)/float64(max(1, p.length)))
		add(memory, "memory", float64(p.memory)/1e6)
	}
}

// linesOf returns the thresholds that can be drawn as levels in the charts. Equal thresholds of several runs make one
// line, which is kept if all runs kept it.
func linesOf(runs []*Run) []lineAt {
	list := []lineAt{}
	for _, r := range runs {
		for i := range r.Result.Thresholds {
			t := &r.Result.Thresholds[i]
			parsed, err := threshold.Parse(t.Threshold)
			if err != nil || parsed.OfTarget || parsed.Metric.Unit != threshold.Time &&
				parsed.Metric.Unit != threshold.PerSecond {
				continue
			}
			line := lineAt{Metric: parsed.Metric.Name, Value: number64(parsed.Value), Text: t.Threshold, Kept: t.Kept}
			at := slices.IndexFunc(list, func(l lineAt) bool { return l.Text == line.Text })
			if at < 0 {
				list = append(list, line)
			} else {
				list[at].Kept = list[at].Kept && line.Kept
			}
		}
	}
	return list
}
