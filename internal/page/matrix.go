package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/words"
)

// Limits of a sweep on a page.
const (
	maxGrids = 40 // figures
	shades   = 7  // of a table
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
	At     []number64 `json:"at,omitempty"` // where the values stand on an axis of numbers; none: at equal distances
	Lines  []gridLine `json:"lines"`

	format func(float64) string
	higher bool // more is better
}

// gridLine has the figure for one combination of the other axes: median, lowest and highest of the repeats.
type gridLine struct {
	Name  string     `json:"name"`
	Value []number64 `json:"value"`
	Low   []number64 `json:"low"`
	High  []number64 `json:"high"`

	bound map[int]string // before values that are the least that they may be, by their places
}

// grids returns the figures of the cells.
func (m *matrix) grids() (list []grid) {
	if m == nil || m.axis.Name == "" {
		return nil
	}
	for _, name := range m.sweep.Columns(m.rows) {
		if len(list) == maxGrids {
			break
		}
		g := grid{
			Name: name, Axis: m.axis.Name, Values: m.axis.Values, Unit: "us",
			format: func(v float64) string { return span(int64(v)) },
		}
		if strings.HasSuffix(name, ".avg") {
			g.Unit, g.higher, g.format = "messages/s", true, func(v float64) string { return number(v) + "/s" }
		}
		at := map[string]int{}
		for i := range m.rows {
			row := &m.rows[i]
			line := m.line(row.Values)
			k, known := at[line]
			if !known {
				k = len(g.Lines)
				at[line] = k
				g.Lines = append(g.Lines, newGridLine(line, len(g.Values)))
			}
			figure, has := row.Figures[name]
			column := slices.Index(m.axis.Values, row.Values[m.axis.Name])
			if !has || column < 0 {
				continue
			}
			g.Lines[k].Value[column] = number64(figure.Median)
			g.Lines[k].bound[column] = row.Bound(name)
			g.Lines[k].Low[column], g.Lines[k].High[column] = number64(figure.Minimum), number64(figure.Maximum)
		}
		g.Lines = known(g.Lines)
		if len(g.Lines) > 0 {
			list = append(list, g)
		}
	}
	return list
}

// known returns the lines that have a value.
func known(lines []gridLine) []gridLine {
	return slices.DeleteFunc(lines, func(l gridLine) bool {
		return !slices.ContainsFunc(l.Value, func(v number64) bool { return !math.IsNaN(float64(v)) })
	})
}

func newGridLine(name string, n int) gridLine {
	l := gridLine{Name: name, bound: map[int]string{}}
	for range n {
		l.Value, l.Low, l.High = append(l.Value, number64(math.NaN())), append(l.Low, number64(math.NaN())),
			append(l.High, number64(math.NaN()))
	}
	return l
}

// line names the combination of the other axes.
func (m *matrix) line(values map[string]string) string {
	var parts []string
	for _, a := range m.other {
		parts = append(parts, a.Name+"="+values[a.Name])
	}
	return cmp.Or(strings.Join(parts, " "), "all cells")
}

// shaded is a table of the figure: medians, with the distance of the lowest and highest repeat.
func (g *grid) shaded() Table {
	t := Table{Title: g.Name, Head: append([]string{g.Axis}, g.Values...)}
	all := nothing()
	for _, l := range g.Lines {
		for _, v := range l.Value {
			if !math.IsNaN(float64(v)) {
				all.add(float64(v))
			}
		}
	}
	for _, l := range g.Lines {
		row, shade := []string{l.Name}, []int{0}
		for i := range l.Value {
			v, low, high := float64(l.Value[i]), float64(l.Low[i]), float64(l.High[i])
			text, strength := "-", 0
			if !math.IsNaN(v) {
				text = l.bound[i] + g.format(v)
				if v != 0 && high > low {
					text += fmt.Sprintf(" (%+.0f%% %+.0f%%)", 100*(low-v)/v, 100*(high-v)/v)
				}
				if all.high > all.low {
					share := (v - all.low) / (all.high - all.low)
					if !g.higher {
						share = 1 - share
					}
					strength = int(math.Round(share * (shades - 1)))
				}
			}
			row, shade = append(row, text), append(shade, strength)
		}
		t.Rows, t.Shades = append(t.Rows, row), append(t.Shades, shade)
	}
	return t
}

// sentences says how many runs there are, and which cells are the best and the worst of each metric.
func (m *matrix) sentences() (list []string) {
	done, failed := 0, 0
	for i := range m.rows {
		done, failed = done+m.rows[i].Good, failed+m.rows[i].Failed
	}
	text := fmt.Sprintf("%s, %d of %s counted", words.Plural(len(m.rows), "cell"), done,
		words.Plural(len(m.sweep.Runs), "run"))
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	if bounded := m.sweep.Bounded(); bounded != "" {
		text += "; " + bounded
	}
	list = append(list, text+".")
	for _, g := range m.grids() {
		if text := m.sweep.Best(m.rows, g.Name, g.format); text != "" {
			list = append(list, g.Name+": "+text+".")
		}
	}
	return list
}
