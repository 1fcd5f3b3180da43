package page

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
)

// Markdown writes the verdicts, findings and tables, for a merge request. Of a sweep or a search it has no more than a
// row of each run.
func (p *Page) Markdown(w io.Writer) error {
	var b strings.Builder
	v := p.view()
	fmt.Fprintf(&b, "%s# %s\n", mark, plain(v.Title))
	stories := v.Stories
	if v.Lead != nil {
		v.Lead.markdown(&b, false)
	}
	if p.sweep != nil || p.search != nil {
		stories = nil
	}
	for _, s := range stories {
		s.markdown(&b, v.Several)
	}
	if len(v.Summaries) > 0 {
		b.WriteString("\n")
		list(&b, v.Summaries)
	}
	tables := append(v.Top, v.Bottom...)
	for _, s := range stories {
		for _, t := range s.Tables {
			if v.Several {
				t.Title = s.Name + ": " + t.Title
			}
			tables = append(tables, t)
		}
	}
	for _, t := range tables {
		if !t.Folded {
			t.markdown(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func list(b *strings.Builder, items []string) {
	for _, text := range items {
		b.WriteString("- " + plain(text) + "\n")
	}
}

func (s *story) markdown(b *strings.Builder, several bool) {
	b.WriteString("\n")
	if several {
		fmt.Fprintf(b, "## %s\n\n", plain(s.Name))
	}
	if len(s.Head) > 0 {
		b.WriteString(plain(strings.Join(s.Head, " - ")) + "\n\n")
	}
	fmt.Fprintf(b, "**%s**: %s\n", plain(s.Verdict), plain(s.Reason))
	if len(s.Tiles) > 0 {
		t := Table{Rows: [][]string{nil}, Words: true}
		for _, x := range s.Tiles {
			t.Head, t.Rows[0] = append(t.Head, x.Label), append(t.Rows[0], x.Value)
		}
		t.markdown(b)
	}
	b.WriteString("\n")
	for _, l := range s.Limits {
		fmt.Fprintf(b, "Limit: %s\n\n", plain(l))
	}
	for _, n := range s.Numbers {
		b.WriteString(plain(n) + "\n")
	}
	for i, items := range [][]string{s.Problems, s.Findings, s.Warnings} {
		if len(items) > 0 {
			b.WriteString("\n" + [...]string{"Problems", "Findings", "Warnings"}[i] + ":\n\n")
			list(b, items)
		}
	}
}

func (t *Table) markdown(b *strings.Builder) {
	if b.WriteString("\n"); t.Title != "" {
		fmt.Fprintf(b, "## %s\n\n", plain(t.Title))
	}
	if t.Note != "" {
		b.WriteString(plain(t.Note) + "\n\n")
	}
	head := t.Head
	if t.Send > 0 { // Markdown tables have one head line
		head = slices.Clone(head)
		for i := t.Named(); i < len(head); i++ {
			side := "send: "
			if i >= len(head)-t.Receive {
				side = "receive: "
			}
			head[i] = side + head[i]
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

// CSV writes a head line, then a line for each run and each step, and of a sweep for each cell. Rates are messages per
// second, times milliseconds.
func (p *Page) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	numbers := slices.DeleteFunc(columns(), func(c column) bool { return c.csv == "" })
	head := []string{"run", "step", "verdict", "start"}
	for _, n := range numbers {
		head = append(head, n.csv)
	}
	head = append(head, "limit")
	_ = c.Write(head) // c.Error returns the error
	for _, r := range p.Runs {
		_, verdict := r.verdict()
		for _, l := range r.lines() {
			row := []string{cell(l.run), cell(l.Name), sentence(verdict.Word), moment(l.result.Start)}
			values := l.values()
			for _, n := range numbers {
				v, known := values[n.value]
				row = append(row, n.decimal(v, known))
			}
			limit := ""
			if l.Limit != nil {
				limit = l.Limit.Kind
			}
			_ = c.Write(append(row, cell(limit)))
		}
	}
	if p.sweep != nil {
		p.csvOfCells(c, numbers)
	}
	c.Flush()
	return c.Error()
}

// csvOfCells writes a line for each cell and step, with the medians of rates, latencies and the broker's side.
func (p *Page) csvOfCells(c *csv.Writer, numbers []column) {
	steps := p.sweep.Steps
	if len(steps) == 0 {
		steps = []string{""}
	}
	for _, r := range p.sweep.Rows() {
		for _, step := range steps {
			row := []string{cell(p.sweep.Title(r.Values)), cell(step), "median of " + words.Plural(r.Good, "run"), ""}
			for _, n := range numbers {
				f, known := r.Figures[record.Name(step, n.value)]
				shown := n.unit == "/s" || n.unit == "ms" || strings.HasPrefix(n.value, threshold.BrokerPrefix)
				row = append(row, n.decimal(f.Median, known && shown))
			}
			_ = c.Write(append(row, "")) // c.Error returns the error
		}
	}
}

// cell cleans a text, and escapes one that a spreadsheet would take for a formula.
func cell(text string) string {
	text = safetext.Line(text)
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
