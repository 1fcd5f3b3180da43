package compare

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
)

// Formats are those of [Comparison.Write].
func Formats() []string { return []string{"text", "markdown"} }

// Write writes the comparison: the rows side by side, and under them differences, notes and a summary of each set.
func (c *Comparison) Write(w io.Writer, format string) error {
	text := func(s string) string { return s }
	title, difference, or, note, end := "The runs differ in:\n", "  ", " | ", "note: ", "\n"
	var b strings.Builder
	if format == "markdown" {
		text, title, difference, or, note, end = safetext.Markdown, "", "- ", " / ", "", "\n\n"
	}
	if first := bounded(c.Sets); first != "" {
		b.WriteString(first + end)
	}
	if format == "markdown" {
		c.writeMarkdown(&b)
	} else {
		tw := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
		for _, line := range c.Table(threshold.Unit.Format) {
			_, _ = fmt.Fprintln(tw, strings.TrimRight(strings.Join(line, "\t"), "\t")) // a Builder never fails
		}
		_ = tw.Flush()
	}
	if len(c.Differences) > 0 {
		b.WriteString("\n" + title)
	}
	for _, d := range c.Differences {
		b.WriteString(difference + text(d.title()+": "+d.joined(or)) + "\n")
	}
	b.WriteString("\n")
	for _, n := range notes(c.Sets) {
		b.WriteString(note + text(n) + end)
	}
	for i := 1; i < len(c.Sets); i++ {
		b.WriteString(c.Summary(i) + end)
	}
	_, err := io.WriteString(w, strings.TrimSuffix(b.String(), end)+"\n")
	return err
}

// writeMarkdown writes the rows as a table for a merge request.
func (c *Comparison) writeMarkdown(b *strings.Builder) {
	for i, line := range c.Table(threshold.Unit.Format) {
		for k := range line {
			line[k] = strings.ReplaceAll(line[k], "|", `\|`)
		}
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(line)) + "\n")
		}
	}
}

// Table returns the rows as texts, the first being the head. Format writes a value of a unit.
func (c *Comparison) Table(format func(threshold.Unit, float64) string) [][]string {
	head := []string{""}
	for i := range c.Sets {
		head = append(head, fmt.Sprintf("%s (%s)", c.Sets[i].Name, words.Plural(len(c.Sets[i].Repeats), "run")))
		if i > 0 {
			head = append(head, "change", "")
		}
	}
	list := [][]string{head}
	for r := range c.Rows {
		row := &c.Rows[r]
		line := []string{row.title()}
		for i := range row.Cells {
			cell := &row.Cells[i]
			line = append(line, cell.text(func(v float64) string { return format(row.Metric.Unit, v) }))
			switch {
			case i == 0:
			case cell.Verdict == Unknown:
				line = append(line, "", "")
			default:
				line = append(line, cell.String(), fmt.Sprintf("%s (p=%.3f)", cell.Verdict, cell.P))
			}
		}
		list = append(list, line)
	}
	return list
}

// text is the median with how far the interval reaches to either side.
func (c *Cell) text(format func(float64) string) string {
	if len(c.Values) == 0 {
		return "-"
	}
	text := format(c.Median)
	if c.AtLeast {
		text = "at least " + text
	}
	if len(c.Values) > 1 && c.Median != 0 {
		text += fmt.Sprintf(" (%+.0f%% %+.0f%%)", 100*(c.Low-c.Median)/c.Median, 100*(c.High-c.Median)/c.Median)
	}
	return text
}

// Summary says in one line how set i compares with the first.
func (c *Comparison) Summary(i int) string {
	of := map[string][]string{}
	for r := range c.Rows {
		cell := &c.Rows[r].Cells[i]
		text := c.Rows[r].title()
		if cell.Verdict == Better || cell.Verdict == Worse {
			text += " " + cell.String()
		}
		of[cell.Verdict] = append(of[cell.Verdict], text)
	}
	var parts []string
	for _, v := range []string{Worse, Better, Same, TooFew, Bound} {
		if len(of[v]) == 0 {
			continue
		}
		part := fmt.Sprintf("%s: %s", v, strings.Join(of[v], ", "))
		if v == TooFew {
			part += fmt.Sprintf("; that takes %d runs of each", Enough(len(c.Rows)))
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%s against %s: %s", c.Sets[i].Name, c.Sets[0].Name,
		cmp.Or(strings.Join(parts, "; "), "no figure in common"))
}

// joined are the values of a difference; a set without one has a dash.
func (d *Difference) joined(or string) string {
	var values []string
	for _, v := range d.Values {
		values = append(values, cmp.Or(v, "-"))
	}
	return strings.Join(values, or)
}
