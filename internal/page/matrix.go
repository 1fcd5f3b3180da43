package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
)

// matrix is a sweep on a page: each figure over an axis, with a line for each combination of the other axes.
type matrix struct {
	sweep *record.Sweep
	rows  []record.Row
	axis  record.Axis // the axis of the charts
	other []record.Axis
}

func newMatrix(s *record.Sweep) *matrix {
	m := &matrix{sweep: s, rows: s.Rows()}
	at := slices.IndexFunc(s.Axes, func(a record.Axis) bool { return a.Ordered() })
	if at < 0 {
		at = len(s.Axes) - 1
	}
	if at >= 0 {
		m.axis = s.Axes[at]
		m.other = slices.Delete(slices.Clone(s.Axes), at, at+1)
	}
	return m
}

// grid is a figure of a matrix. A line has an element for each value of the axis, perhaps without a value.
type grid struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit"` // messages/s or us
	Axis   string     `json:"axis"`
	Values []string   `json:"values"`
	Lines  []gridLine `json:"lines"`
}

// gridLine has the figure for one combination of the other axes: median, lowest and highest of the repeats.
type gridLine struct {
	Name  string     `json:"name"`
	Value []number64 `json:"value"`
	Low   []number64 `json:"low"`
	High  []number64 `json:"high"`
}

// grids returns the figures of the cells.
func (m *matrix) grids() (list []grid) {
	if m == nil || m.axis.Name == "" {
		return nil
	}
	var lines []string
	for i := range m.rows {
		if line := m.line(m.rows[i].Values); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for _, name := range m.sweep.Columns(m.rows) {
		g := grid{Name: name, Axis: m.axis.Name, Values: m.axis.Values, Unit: "us"}
		if record.UnitOf(name) == threshold.PerSecond {
			g.Unit = "messages/s"
		}
		for _, line := range lines {
			none := slices.Repeat([]number64{number64(math.NaN())}, len(g.Values))
			g.Lines = append(g.Lines, gridLine{line, none, slices.Clone(none), slices.Clone(none)})
		}
		for i := range m.rows {
			row := &m.rows[i]
			figure, has := row.Figures[name]
			column := slices.Index(m.axis.Values, row.Values[m.axis.Name])
			if !has || column < 0 {
				continue
			}
			l := &g.Lines[slices.Index(lines, m.line(row.Values))]
			l.Value[column] = number64(figure.Median)
			l.Low[column], l.High[column] = number64(figure.Minimum), number64(figure.Maximum)
		}
		list = append(list, g)
	}
	return list
}

// line names the combination of the other axes.
func (m *matrix) line(values map[string]string) string {
	var parts []string
	for _, a := range m.other {
		parts = append(parts, a.Name+"="+values[a.Name])
	}
	return cmp.Or(strings.Join(parts, " "), "all cells")
}

// table has the medians of each cell, with the distance of the lowest and highest repeat.
func (m *matrix) table() Table {
	t := Table{
		Title: "Cells", Head: []string{"cell", "runs", "failed"},
		Note: "The median of the repeats of each cell, with how far they reach below and above it.",
	}
	names := m.sweep.Columns(m.rows)
	t.Head = append(t.Head, names...)
	for i := range m.rows {
		r := &m.rows[i]
		row := []string{cmp.Or(m.sweep.Title(r.Values), "all"), fmt.Sprint(r.Good), fmt.Sprint(r.Failed)}
		for _, name := range names {
			text := "-"
			if f, has := r.Figures[name]; has {
				text = r.Bound(name) + inUnit(record.UnitOf(name), f.Median)
				if v := f.Median; v != 0 && f.Maximum > f.Minimum {
					text += fmt.Sprintf(" (%+.0f%% %+.0f%%)", 100*(f.Minimum-v)/v, 100*(f.Maximum-v)/v)
				}
			}
			row = append(row, text)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// sentences returns the number of runs, and the best and the worst cell of each metric.
func (m *matrix) sentences() (list []string) {
	done, failed := 0, 0
	for i := range m.rows {
		done, failed = done+m.rows[i].Good, failed+m.rows[i].Failed
	}
	text := fmt.Sprintf("%s, %d of %s counted, %d failed", words.Plural(len(m.rows), "cell"), done,
		words.Plural(len(m.sweep.Runs), "run"), failed)
	if bounded := m.sweep.Bounded(); bounded != "" {
		text += "; " + bounded
	}
	list = append(list, text+".")
	for _, name := range m.sweep.Columns(m.rows) {
		format := func(v float64) string { return inUnit(record.UnitOf(name), v) }
		if text := m.sweep.Best(m.rows, name, format); text != "" {
			list = append(list, name+": "+text+".")
		}
	}
	return list
}
