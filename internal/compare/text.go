package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
)

// Write writes the comparison: the rows side by side, and under them differences, notes and a summary of each set.
func (c *Comparison) Write(w io.Writer) error {
	var b strings.Builder
	if first := bounded(c.Sets); first != "" {
		b.WriteString(first + "\n")
	}
	tw := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, line := range c.Table(threshold.Unit.Format) {
		_, _ = fmt.Fprintln(tw, strings.TrimRight(strings.Join(line, "\t"), "\t")) // a Builder never fails
	}
	_ = tw.Flush()
	if len(c.Differences) > 0 {
		b.WriteString("\nThe runs differ in:\n")
	}
	for _, d := range c.Differences {
		b.WriteString("  " + d.Kind + " " + d.Name + ": " + d.joined() + "\n")
	}
	b.WriteString("\n")
	for _, n := range notes(c.Sets) {
		b.WriteString("note: " + n + "\n")
	}
	for i := 1; i < len(c.Sets); i++ {
		_, text := c.Headline(i)
		b.WriteString(text + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
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
	for _, row := range c.Rows {
		line := []string{row.Metric.Name}
		for i, cell := range row.Cells {
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

// text is the median with the distances to both ends of the interval.
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

// Headline says in one sentence whether set i is faster than the first, or better. Its mark is good, bad, warn, or live
// for neither.
func (c *Comparison) Headline(i int) (mark, text string) {
	of := map[string][]string{}
	good, bad := "faster", "slower"
	for r := range c.Rows {
		cell := &c.Rows[r].Cells[i]
		text := c.Rows[r].Metric.Name
		if cell.Verdict == Better || cell.Verdict == Worse {
			text += " " + cell.String()
			if unit := c.Rows[r].Metric.Unit; unit != threshold.PerSecond && unit != threshold.Time {
				good, bad = Better, Worse // such as less memory
			}
		}
		if len(of[cell.Verdict]) == 0 && text != c.Rows[r].Metric.Name {
			text += fmt.Sprintf(" (95%% interval %+.1f%% to %+.1f%%, p=%.3f)", 100*cell.ChangeLow,
				100*cell.ChangeHigh, cell.P)
		}
		of[cell.Verdict] = append(of[cell.Verdict], text)
	}
	pair := c.Sets[i].Name + " and " + c.Sets[0].Name
	better, worse := strings.Join(of[Better], ", "), strings.Join(of[Worse], ", ")
	bound := ""
	if len(of[Bound]) > 0 {
		bound = "; " + Bound + ": " + strings.Join(of[Bound], ", ")
	}
	switch than := " than " + c.Sets[0].Name + ": "; {
	case better != "" && worse != "":
		return "warn", fmt.Sprintf("%s is better%s%s; and worse: %s%s", c.Sets[i].Name, than, better, worse, bound)
	case better != "":
		return "good", c.Sets[i].Name + " is " + good + than + better + bound
	case worse != "":
		return "bad", c.Sets[i].Name + " is " + bad + than + worse + bound
	case bound != "":
		return "warn", pair + bound
	case len(of[TooFew]) > 0:
		return "warn", fmt.Sprintf("Too few repeats to tell between %s: %d runs of each are enough", pair,
			Enough(len(c.Rows)))
	case len(of[Same]) > 0:
		return "live", fmt.Sprintf("No difference found between %s in %s", pair, words.Plural(len(of[Same]), "metric"))
	}
	return "warn", pair + " have no metric in common"
}

// joined are the values of a difference; a set without one has a dash.
func (d *Difference) joined() string {
	values := slices.Clone(d.Values)
	for i := range values {
		values[i] = cmp.Or(values[i], "-")
	}
	return strings.Join(values, " | ")
}
