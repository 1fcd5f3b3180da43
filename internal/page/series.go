package page

import (
	"maps"
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// point is a row of a run, or several successive rows. Times are in microseconds.
type point struct {
	from, to, length int64
	phase, step      string
	values           map[string]value // by the key of a figure
}

// add joins p with the next point.
func (p *point) add(next *point) {
	p.to, p.phase, p.step = next.to, next.phase, next.step
	p.length += next.length
	for key, v := range next.values {
		if sum, known := p.values[key]; known {
			v.amount, v.time = v.amount+sum.amount, v.time+sum.time
			v.low, v.high = min(v.low, sum.low), max(v.high, sum.high)
		}
		p.values[key] = v
	}
}

// series has the points of a run, thinned as the run gets longer: at most 2*limit points, each with the range of its
// rows.
type series struct {
	limit  int
	span   int64 // maximum length of a point; 0 while each is a row
	points []point
}

func (s *series) add(row *result.Row) {
	p := point{
		from: row.Elapsed - row.Length, to: row.Elapsed, length: row.Length, phase: row.Phase, step: row.Step,
		values: map[string]value{},
	}
	for _, f := range figures(row) {
		if f.value != nil {
			p.values[f.name] = *f.value
		}
	}
	s.take(p)
	for len(s.points) > 2*s.limit {
		s.thin()
	}
}

// shortest is the minimum length of a point of its own, in microseconds: rates of shorter rows say nothing.
const shortest = 700_000

// take joins p with the last point if both are of one step and phase, and p is short or the joined point is not too
// long. A short drain adds its states (latencies) to the last point: the curves end with the load.
func (s *series) take(p point) {
	if n := len(s.points); n > 0 && s.points[n-1].step == p.step {
		last := &s.points[n-1]
		switch {
		case last.phase == p.phase && (p.length < shortest || p.to-last.from <= s.span+s.span/20):
			last.add(&p)
			return
		case p.phase == result.Drain && p.length < shortest:
			maps.DeleteFunc(p.values, func(_ string, v value) bool { return v.time > 0 })
			p.to, p.length, p.phase = last.to, 0, last.phase
			last.add(&p)
			return
		}
	}
	s.points = append(s.points, p)
}

// thin doubles the length of the points. If that does not suffice, because of many short steps, it joins points in
// pairs.
func (s *series) thin() {
	before := s.points
	s.span = max(2*s.span, 2_000_000)
	s.points = make([]point, 0, 2*s.limit+1)
	for i := range before {
		s.take(before[i])
	}
	if total := before[len(before)-1].to - before[0].from; s.span < total || len(s.points) <= 2*s.limit {
		return
	}
	before, s.points = s.points, nil
	for i := 0; i < len(before); i += 2 {
		p := before[i]
		if i+1 < len(before) {
			p.add(&before[i+1])
		}
		s.points = append(s.points, p)
	}
}

// line is a row of the table of messages: a run, a step, or a group of one.
type line struct {
	run, step string
	result    *result.Result
	elapsed   int64
	due       uint64
	counts    *result.Counts
	latencies *result.Latencies
	figures   *result.Figures // nil if unknown
	limit     *result.Limit
}

// lines returns the line of the run and, if there are several steps, one for each.
func (r *Run) lines() []line {
	res := r.Result
	list := []line{{
		run: r.Name, result: res, elapsed: max(0, res.End-res.Start), counts: &res.Total, figures: res.Figures,
		latencies: &res.Latencies, limit: res.Limit,
	}}
	if len(res.Steps) < 2 {
		return list
	}
	for _, s := range res.Steps {
		list = append(list, line{
			run: r.Name, step: s.Name, result: res, elapsed: max(0, s.End-s.Start), counts: &s.Counts, figures: s.Figures,
			latencies: &s.Latencies, limit: s.Limit,
		})
	}
	return list
}

// values returns the numbers of a line by name: known rates, counts, times in microseconds and the use of the machine.
// Latencies are there even if many values are left out of them.
func (l *line) values() map[string]float64 {
	own := &result.Result{Latencies: *l.latencies, Figures: l.figures}
	if l.step == "" {
		own.BrokerSide = l.result.BrokerSide
	}
	all := own.Metrics()
	all["elapsed"] = float64(l.elapsed) / 1e6
	if p := l.counts.Producers; p != nil {
		all["sent"], all["completed"] = float64(p.Sent), float64(p.Completed)
		all["failed"], all[unconfirmed] = float64(failed(p)), float64(p.Unconfirmed)
	}
	if c := l.counts.Consumers; c != nil {
		all["received"] = float64(c.Received)
	}
	if l.due > 0 {
		all["due"] = float64(l.due)
	}
	if t := &l.result.Tester; l.step == "" {
		all["tester.cpu"] = 100 * float64(t.CPU) / float64(max(1, l.elapsed))
		all["tester.memory"] = float64(max(t.Memory, t.MemoryPeak))
		if t.MachineAll > 0 {
			all["machine"] = 100 * float64(t.MachineBusy) / float64(t.MachineAll)
		}
	}
	return all
}

// unconfirmed is a column that only tables with such messages have.
const unconfirmed = "unconfirmed"

// fill gives a table the columns, and a row for each of the lines.
func (t *Table) fill(columns []column, lines []line) {
	if !slices.ContainsFunc(lines, func(l line) bool { return l.values()[unconfirmed] > 0 }) {
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.value == unconfirmed })
		t.Send--
	}
	for _, c := range columns {
		t.Head = append(t.Head, c.head)
	}
	for _, l := range lines {
		row, values := []string{l.run}, l.values()
		for _, c := range columns {
			v, known := values[c.value]
			row = append(row, c.text(v, known))
		}
		t.Rows = append(t.Rows, row)
	}
}

// failed returns the number of messages that the broker certainly did not accept.
func failed(p *result.Producers) uint64 { return p.Rejected + p.Released + p.Modified + p.Failed }
