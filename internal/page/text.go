package page

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep/record"
)

// Markdown writes the verdicts, findings and tables, for a merge request.
func (p *Page) Markdown(w io.Writer) error {
	var b strings.Builder
	v := p.view()
	fmt.Fprintf(&b, "# %s\n", plain(v.Title))
	if v.Lead != nil {
		v.Lead.markdown(&b, false)
	}
	if p.matrix != nil || p.search != nil { // the runs of a sweep are too many for more than a row of each
		v.Stories = v.Stories[:min(1, len(v.Stories))]
	} else {
		for i := range v.Stories {
			v.Stories[i].markdown(&b, v.Several)
		}
	}
	if len(v.Summaries) > 0 {
		b.WriteString("\n")
		for _, s := range v.Summaries {
			b.WriteString("- " + plain(s) + "\n")
		}
	}
	tables := append(v.Top, v.Bottom...)
	for i := range v.Stories {
		s := &v.Stories[i]
		front, facts := "", Table{Title: "The run", Head: []string{"", ""}, Words: true}
		if v.Several {
			front, facts.Title = s.Name+": ", s.Name
		}
		for _, f := range s.Facts {
			facts.Rows = append(facts.Rows, []string{f.Name, f.Value})
		}
		if p.matrix != nil || p.search != nil {
			s.Tables = nil
		}
		for _, t := range s.Tables {
			t.Title = front + t.Title
			tables = append(tables, t)
		}
		tables = append(tables, facts)
	}
	for i := range tables {
		tables[i].markdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *story) markdown(b *strings.Builder, several bool) {
	b.WriteString("\n")
	if several {
		fmt.Fprintf(b, "## %s\n\n", plain(s.Name))
	}
	fmt.Fprintf(b, "**%s**: %s\n\n", s.Verdict, plain(s.Reason))
	for _, l := range s.Limits {
		fmt.Fprintf(b, "%s: %s\n\n", plain(l.Name), plain(l.Value))
	}
	for _, n := range s.Numbers {
		b.WriteString(plain(n) + "\n")
	}
	for i, list := range [][]string{s.Problems, s.Findings, s.Warnings} {
		if len(list) > 0 {
			b.WriteString("\n" + [...]string{"Problems", "Findings", "Warnings"}[i] + ":\n\n")
		}
		for _, text := range list {
			b.WriteString("- " + plain(text) + "\n")
		}
	}
}

func (t *Table) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n", plain(t.Title))
	if t.Note != "" {
		b.WriteString(plain(t.Note) + "\n\n")
	}
	head := t.Head
	if len(t.Groups) > 0 { // Markdown tables have one head line
		head = nil
		for _, g := range t.Groups {
			for range g.Span {
				name := t.Head[len(head)]
				if g.Name != "" {
					name = strings.ToLower(g.Name) + ": " + name
				}
				head = append(head, name)
			}
		}
	}
	line := func(cells []string) {
		for i := range cells {
			b.WriteString("| " + plain(cells[i]) + " ")
		}
		b.WriteString("|\n")
	}
	line(head)
	for i := range head {
		if i == 0 || t.Words {
			b.WriteString("| --- ")
		} else {
			b.WriteString("| ---: ")
		}
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		line(row)
	}
}

// plain escapes a text for Markdown.
func plain(text string) string { return safetext.Markdown(text) }

// CSV writes a head line, then a line for each run and each step. Rates are messages per second, times milliseconds.
// For the runs of a sweep, the last columns are the axes.
func (p *Page) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	numbers := slices.DeleteFunc(columns(), func(c column) bool { return c.csv == "" })
	head := []string{"run", "step", "verdict", "start"}
	for i := range numbers {
		head = append(head, numbers[i].csv)
	}
	head = append(head, "limit")
	var axes []record.Axis
	if p.matrix != nil {
		axes = p.matrix.sweep.Axes
	}
	for i := range axes {
		head = append(head, cell(axes[i].Name))
	}
	_ = c.Write(head) // c.Error returns the error
	for _, r := range p.runs() {
		_, verdict := r.verdict()
		for _, l := range r.lines() {
			row := []string{cell(l.run), cell(l.step), verdict, moment(l.result.Start)}
			values := l.values()
			for i := range numbers {
				v, known := values[numbers[i].value]
				row = append(row, numbers[i].decimal(v, known))
			}
			limit := ""
			if l.limit != nil {
				limit = l.limit.Kind
			}
			row = append(row, cell(limit))
			for i := range axes {
				row = append(row, cell(r.cell[axes[i].Name]))
			}
			_ = c.Write(row)
		}
	}
	c.Flush()
	return c.Error()
}

// cell cleans a text, and escapes one that a spreadsheet would take for a formula.
func cell(text string) string {
	text = safetext.Line(text)
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
