package page

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

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
