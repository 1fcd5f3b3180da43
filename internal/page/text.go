package page

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/pkg/result"
)

// Markdown writes the verdicts, findings and tables, for a merge request.
func (p *Page) Markdown(w io.Writer) error {
	var b strings.Builder
	v := p.view()
	fmt.Fprintf(&b, "# %s\n", plain(v.Title))
	if v.Lead != nil {
		v.Lead.markdown(&b, false)
		v.Tried.markdown(&b, 2)
	}
	if p.matrix != nil || p.search != nil {
		v.first()
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
	for i := range v.Shaded {
		v.Shaded[i].table().markdown(&b, 2)
	}
	if p.matrix != nil {
		v.Verdicts.markdown(&b, 2)
	}
	for _, t := range []*Table{v.Comparison, v.Differences, &v.Messages, &v.Latencies, &v.Tester} {
		if t != nil && len(t.Rows) > 0 {
			t.markdown(&b, 2)
		}
	}
	for i := range v.Stories {
		s := &v.Stories[i]
		for k := range s.Tables {
			if v.Several {
				s.Tables[k].Title = s.Name + ": " + s.Tables[k].Title
			}
			s.Tables[k].markdown(&b, 2)
		}
	}
	for i := range v.Stories {
		s := &v.Stories[i]
		facts := Table{Title: "The run", Head: []string{"", ""}, Words: true}
		if v.Several {
			facts.Title = s.Name
		}
		for _, f := range s.Facts {
			facts.Rows = append(facts.Rows, []string{f.Name, f.Value})
		}
		facts.markdown(&b, 2)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// first keeps the facts of the first run alone: the runs of a sweep are too many for more than a row of each.
func (v *view) first() {
	v.Stories = v.Stories[:min(1, len(v.Stories))]
	for i := range v.Stories {
		v.Stories[i].Tables = nil
	}
}

func (s *story) markdown(b *strings.Builder, several bool) {
	b.WriteString("\n")
	if several {
		fmt.Fprintf(b, "## %s\n\n", plain(s.Name))
	}
	fmt.Fprintf(b, "**%s**: %s\n\n", s.Verdict, plain(s.Reason))
	for _, l := range s.Limits {
		name := "Limit"
		if l.Step != "" {
			name += " of " + plain(l.Step)
		}
		fmt.Fprintf(b, "%s: %s\n\n", name, plain(l.Text))
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

func (t *Table) markdown(b *strings.Builder, level int) {
	fmt.Fprintf(b, "\n%s %s\n\n", strings.Repeat("#", level), plain(t.Title))
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

// table returns the table without its shades.
func (s *Shaded) table() *Table {
	t := &Table{Title: s.Title, Head: s.Head}
	for _, r := range s.Rows {
		row := []string{r.Name}
		for _, c := range r.Cells {
			text := c.Text
			if c.Noise != "" {
				text += " (" + c.Noise + ")"
			}
			row = append(row, text)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// plain escapes a text for Markdown.
func plain(text string) string { return safetext.Markdown(text) }

// CSV writes a head line, then a line for each run and each step. Rates are messages per second, times milliseconds.
// For the runs of a sweep, the last columns are the axes.
func (p *Page) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	names := []string{
		"run", "step", "verdict", "start", "elapsed_s", "sent", "completed", "failed", "completed_avg", "completed_min",
		"completed_max",
		"received", "received_avg", "received_min", "received_max",
	}
	for _, latency := range result.KindNames() {
		for _, s := range []string{"mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"} {
			names = append(names, latency+"_"+s+"_ms")
		}
	}
	names = append(names, "tester_cpu_percent", "tester_memory_bytes", "machine_percent", "limit")
	var axes []string
	if p.matrix != nil {
		for _, a := range p.matrix.sweep.Axes {
			axes, names = append(axes, a.Name), append(names, cell(safetext.Line(a.Name)))
		}
	}
	_ = c.Write(names) // c.Error returns the error
	for _, r := range p.runs() {
		for _, l := range r.lines() {
			row := l.csv(r)
			for _, name := range axes {
				row = append(row, cell(safetext.Line(r.cell[name])))
			}
			_ = c.Write(row)
		}
	}
	c.Flush()
	return c.Error()
}

func (l *line) csv(r *Run) []string {
	decimal := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	whole := func(n uint64, known bool) string {
		if !known {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	rates := func(average *float64, best *extent) (cells [3]string) {
		if average != nil {
			cells[0] = decimal(*average)
		}
		if best != nil {
			cells[1], cells[2] = decimal(best.low), decimal(best.high)
		}
		return cells
	}
	_, verdict := r.verdict()
	sent, completed, failed, known := l.produced()
	received, consumed := l.consumed()
	row := []string{
		cell(safetext.Line(l.run)), cell(safetext.Line(l.step)), verdict, moment(l.result.Start),
		decimal(float64(l.elapsed) / 1e6), whole(sent, known), whole(completed, known),
		whole(failed, known),
	}
	of := rates(l.completed, l.bestCompleted)
	row = append(append(row, of[:]...), whole(received, consumed))
	of = rates(l.received, l.bestReceived)
	row = append(row, of[:]...)
	for _, name := range result.KindNames() {
		x := l.latencies.Get(name)
		if x == nil || x.Count == 0 || x.Percentiles == nil {
			row = append(row, "", "", "", "", "", "", "")
			continue
		}
		row = append(row, decimal(x.Mean()/1e3))
		for _, us := range []int64{x.P50, x.P90, x.P99, x.P999, x.P9999, x.Max} {
			row = append(row, decimal(float64(us)/1e3))
		}
	}
	if l.step != "" {
		limit := ""
		for i := range l.result.Steps {
			if s := &l.result.Steps[i]; s.Name == l.step && s.Limit != nil {
				limit = cell(s.Limit.Kind)
			}
		}
		return append(row, "", "", "", limit)
	}
	x := &l.result.Tester
	cells := []string{
		decimal(100 * float64(x.CPU) / float64(max(1, l.elapsed))), whole(max(x.Memory, x.MemoryPeak), true),
		"", "",
	}
	if x.MachineAll > 0 {
		cells[2] = decimal(100 * float64(x.MachineBusy) / float64(x.MachineAll))
	}
	if l.result.Limit != nil {
		cells[3] = cell(l.result.Limit.Kind)
	}
	return append(row, cells...)
}

// cell escapes a text that a spreadsheet would take for a formula.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
