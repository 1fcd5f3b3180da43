package record

import (
	"maps"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/threshold"
)

// Spread is a figure over the N repeats of a cell that have it.
type Spread struct {
	Minimum, Median, Maximum float64
	N                        int
}

// spreadOf returns the spread of one or more values. The median of an even number is the mean of
// the middle two.
func spreadOf(values []float64) Spread {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Spread{v[0], (v[(n-1)/2] + v[n/2]) / 2, v[n-1], n}
}

// Row is a cell with the figures of its repeats.
type Row struct {
	Values  map[string]string
	Good    int // repeats that count
	Failed  int // repeats that came to their end, but not well, or not to that of their plan
	Figures map[string]Spread
	Bounded int // repeats that count, and of which perfmq was the limit

	bounded []string // steps of which perfmq was the limit
}

// Bound is put before a metric that is a lower bound, as perfmq was the limit of a repeat: "at least ". It is empty for
// others.
func (r *Row) Bound(name string) string { return bound(r.bounded, name) }

// RowOf returns a row with the figures of one run.
func RowOf(r *Run) Row {
	row := Row{Values: r.Values, Figures: map[string]Spread{}}
	for name, v := range r.Figures {
		row.Figures[name] = Spread{v, v, v, 1}
	}
	return row
}

// Rows returns the cells with the figures of their good runs. A cell without an ended run has a row, too.
func (s *Sweep) Rows() (list []Row) {
	rows := map[int]*Row{}
	values := map[int]map[string][]float64{}
	for i := range s.Runs {
		r := &s.Runs[i]
		row := rows[r.Cell]
		if row == nil {
			row = &Row{Values: r.Values, Figures: map[string]Spread{}}
			rows[r.Cell], values[r.Cell] = row, map[string][]float64{}
		}
		if !r.Good() {
			if r.State == Done {
				row.Failed++
			}
			continue
		}
		row.Good++
		if steps := r.bounded(); len(steps) > 0 {
			row.Bounded++
			row.bounded = append(row.bounded, steps...)
		}
		for name, v := range r.Figures {
			values[r.Cell][name] = append(values[r.Cell][name], v)
		}
	}
	for _, cell := range slices.Sorted(maps.Keys(rows)) {
		for name, v := range values[cell] {
			rows[cell].Figures[name] = spreadOf(v)
		}
		list = append(list, *rows[cell])
	}
	return list
}

// Usual returns the metrics of tables.
func Usual() []string {
	return []string{"completed.avg", "received.avg", "ack.p50", "ack.p99", "response.p99", "transfer.p99"}
}

// Columns returns the figures of the table that some row has: rates and latencies, by step.
func (s *Sweep) Columns(rows []Row) (names []string) {
	known := map[string]bool{}
	for i := range rows {
		for name := range rows[i].Figures {
			known[name] = true
		}
	}
	for _, step := range append([]string{""}, s.Steps...) {
		for _, metric := range Usual() {
			name := Name(step, metric)
			if known[name] {
				names = append(names, name)
			}
		}
	}
	return names
}

// Name is the name of a metric of a step; runs of one step omit the step.
func Name(step, metric string) string {
	if step == "" {
		return metric
	}
	return step + "." + metric
}

// UnitOf returns the unit of a figure of a run or of a step.
func UnitOf(name string) threshold.Unit {
	for {
		if m, ok := threshold.Find(name); ok {
			return m.Unit
		}
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return threshold.PerSecond
		}
		name = rest
	}
}
