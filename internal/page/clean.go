package page

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/safetext"
)

// The texts of a result may have any origin. Templates and encoders escape markup. These functions escape characters
// that mislead readers, such as marks of the direction of writing, and shorten long texts.

// maxItems bounds the items of a list and the rows of a table.
const maxItems = 500

func (v *view) clean() {
	v.Title = safetext.Line(v.Title)
	v.Summaries = cleanList(v.Summaries)
	for i := range v.Shaded {
		t := &v.Shaded[i]
		t.Title, t.Head, t.Rows = safetext.Line(t.Title), cleanList(t.Head), t.Rows[:min(len(t.Rows), maxItems)]
		for k := range t.Rows {
			t.Rows[k].Name = safetext.Line(t.Rows[k].Name)
		}
	}
	for _, t := range []*Table{&v.Verdicts, &v.Messages, &v.Latencies, &v.Tester, v.Comparison, v.Differences, v.Tried} {
		if t != nil {
			t.clean()
		}
	}
	for i := range v.Stories {
		v.Stories[i].clean()
	}
	if v.Lead != nil {
		v.Lead.clean()
	}
}

func (s *story) clean() {
	s.Name, s.Reason = safetext.Line(s.Name), safetext.Line(s.Reason)
	s.Numbers, s.Problems, s.Findings, s.Warnings = cleanList(s.Numbers), cleanList(s.Problems), cleanList(s.Findings),
		cleanList(s.Warnings)
	for i := range s.Limits {
		s.Limits[i].Step, s.Limits[i].Text = safetext.Line(s.Limits[i].Step), safetext.Line(s.Limits[i].Text)
	}
	for i := range s.Tables {
		s.Tables[i].clean()
	}
	for _, facts := range []*[]Fact{&s.Facts, &s.Plan, &s.Commands} {
		for i := range *facts {
			f := &(*facts)[i]
			f.Name, f.Value = safetext.Line(f.Name), safetext.Line(f.Value)
		}
	}
}

func (t *Table) clean() {
	t.Title, t.Note, t.Head = safetext.Line(t.Title), safetext.Line(t.Note), cleanList(t.Head)
	if more := len(t.Rows) - maxItems; more > 0 {
		t.Rows, t.Note = t.Rows[:maxItems], fmt.Sprintf("%s %d more rows are in the results.", t.Note, more)
	}
	for i := range t.Rows {
		t.Rows[i] = cleanList(t.Rows[i])
	}
}

// cleanList returns a new list, because the result keeps the original texts.
func cleanList(list []string) []string {
	var clean []string
	for i, text := range list {
		if i == maxItems {
			return append(clean, fmt.Sprintf("and %d more", len(list)-maxItems))
		}
		clean = append(clean, safetext.Line(text))
	}
	return clean
}

func (d *chartData) clean() {
	for i := range d.Lines {
		d.Lines[i].Text = safetext.Line(d.Lines[i].Text)
	}
	d.Lines = d.Lines[:min(len(d.Lines), maxItems)]
	for i := range d.Matrix {
		g := &d.Matrix[i]
		g.Name, g.Axis, g.Values = safetext.Line(g.Name), safetext.Line(g.Axis), cleanList(g.Values)
		for k := range g.Lines {
			g.Lines[k].Name = safetext.Line(g.Lines[k].Name)
		}
	}
	for i := range d.Runs {
		r := &d.Runs[i]
		r.Name = safetext.Line(r.Name)
		r.Steps = r.Steps[:min(len(r.Steps), maxItems)]
		for k := range r.Steps {
			r.Steps[k].Name = safetext.Line(r.Steps[k].Name)
		}
		for k := range r.Events {
			r.Events[k].Name = safetext.Line(r.Events[k].Name)
		}
		for k := range r.Bands {
			r.Bands[k].Text = safetext.Line(r.Bands[k].Text)
		}
	}
}
