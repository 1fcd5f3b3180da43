package page

import (
	"fmt"
	"slices"

	"github.com/perfmq/perfmq/internal/safetext"
)

// The texts of a result may have any origin. Templates and encoders escape markup; here go characters that mislead
// readers, such as marks of the direction of writing, and what is too long.

// maxItems bounds the items of a list and the rows of a table.
const maxItems = 500

// clean returns the view with texts that are fit to be shown.
func (v *view) clean() *view {
	v.Top, v.Bottom = cutTables(v.Top), cutTables(v.Bottom)
	v.Summaries = cut(v.Summaries)
	for i := range v.Stories {
		v.Stories[i].cut()
	}
	if v.Lead != nil {
		v.Lead.cut()
	}
	return safetext.Each(v, safetext.Line)
}

func (s *story) cut() {
	s.Numbers, s.Problems, s.Findings, s.Warnings = cut(s.Numbers), cut(s.Problems), cut(s.Findings), cut(s.Warnings)
	s.Tables = cutTables(s.Tables)
}

// cutTables drops the tables without rows, and the rows above maxItems.
func cutTables(list []Table) []Table {
	list = slices.DeleteFunc(list, func(t Table) bool { return len(t.Rows) == 0 })
	for i := range list {
		t := &list[i]
		if more := len(t.Rows) - maxItems; more > 0 {
			t.Rows, t.Note = t.Rows[:maxItems], fmt.Sprintf("%s %d more rows are in the results.", t.Note, more)
		}
	}
	return list
}

// cut returns a list with at most maxItems and the number of the others.
func cut(list []string) []string {
	if more := len(list) - maxItems; more > 0 {
		return append(list[:maxItems:maxItems], fmt.Sprintf("and %d more", more))
	}
	return list
}

// clean returns the data with texts that are fit to be shown.
func (d *chartData) clean() *chartData {
	d.Lines = d.Lines[:min(len(d.Lines), maxItems)]
	for i := range d.Runs {
		r := &d.Runs[i]
		r.Steps = r.Steps[:min(len(r.Steps), maxItems)]
	}
	return safetext.Each(d, safetext.Line)
}
