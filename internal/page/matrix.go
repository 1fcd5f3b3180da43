package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
)

// grid is a metric of the cells of a sweep over its longest axis, with a curve for each combination of the other axes:
// median, lowest and highest of the repeats for each value of the axis, perhaps without a value.
type grid struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"` // messages/s or us
	Axis   string   `json:"axis"`
	Values []string `json:"values"`
	Lines  []curve  `json:"lines"`
}

// grids returns the metrics of the cells.
func (p *Page) grids() (list []grid) {
	if p.sweep == nil || len(p.sweep.Axes) == 0 {
		return nil
	}
	others := slices.Clone(p.sweep.Axes)
	slices.SortStableFunc(others, func(a, b record.Axis) int { return len(b.Values) - len(a.Values) })
	axis := others[0]
	others = others[1:]
	rows := p.sweep.Rows()
	for _, name := range p.sweep.Columns(rows) {
		g := grid{Name: name, Axis: axis.Name, Values: axis.Values, Unit: "us"}
		if record.UnitOf(name) == threshold.PerSecond {
			g.Unit = "messages/s"
		}
		for i := range rows {
			line := g.line(cmp.Or(record.Title(others, rows[i].Values), "all cells"))
			column := slices.Index(axis.Values, rows[i].Values[axis.Name])
			if f, has := rows[i].Figures[name]; has && column >= 0 {
				line.Value[column], line.Low[column] = number64(f.Median), number64(f.Minimum)
				line.High[column] = number64(f.Maximum)
			}
		}
		list = append(list, g)
	}
	return list
}

// line returns the curve of a name; a new one has no values.
func (g *grid) line(name string) *curve {
	i := slices.IndexFunc(g.Lines, func(c curve) bool { return c.Name == name })
	if i < 0 {
		i = len(g.Lines)
		none := slices.Repeat([]number64{number64(math.NaN())}, len(g.Values))
		g.Lines = append(g.Lines, curve{Name: name, Value: none, Low: slices.Clone(none), High: slices.Clone(none)})
	}
	return &g.Lines[i]
}

// cells has the medians of each cell, with the distance of the lowest and highest repeat.
func (p *Page) cells() Table {
	t := Table{
		Title: "Cells", Head: []string{"cell", "runs", "failed"},
		Note: "Median of the repeats of each cell, with the distance to their lowest and highest.",
	}
	rows := p.sweep.Rows()
	names := p.sweep.Columns(rows)
	t.Head = append(t.Head, names...)
	for i := range rows {
		r := &rows[i]
		row := []string{cmp.Or(p.sweep.Title(r.Values), "all"), fmt.Sprint(r.Good), fmt.Sprint(r.Failed)}
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
		t.add(row...)
	}
	return t
}

// sentences returns the number of runs.
func (p *Page) sentences() []string {
	rows := p.sweep.Rows()
	done, failed := 0, 0
	for i := range rows {
		done, failed = done+rows[i].Good, failed+rows[i].Failed
	}
	text := fmt.Sprintf("%s, %d of %s counted, %d failed", words.Plural(len(rows), "cell"), done,
		words.Plural(len(p.sweep.Runs), "run"), failed)
	if bounded := p.sweep.Bounded(); bounded != "" {
		text += "; " + bounded
	}
	return []string{text + "."}
}
