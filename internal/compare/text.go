package compare

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/perfmq/perfmq/internal/safetext"
)

// Text writes the rows side by side, and under them a summary of each set.
func Text(w io.Writer, sets []Set, rows []Row, differences []Difference) error {
	if text := Bounded(sets); text != "" {
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, line := range table(sets, rows) {
		_, _ = fmt.Fprintln(tw, strings.TrimRight(strings.Join(line, "\t"), "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for i, d := range differences {
		if i == 0 {
			b.WriteString("\nThe runs differ in:\n")
		}
		fmt.Fprintf(&b, "  %s: %s\n", d.title(), strings.Join(blanks(d.Values), " | "))
	}
	b.WriteString("\n")
	for _, note := range Notes(sets) {
		b.WriteString("note: " + note + "\n")
	}
	for i := 1; i < len(sets); i++ {
		b.WriteString(Summary(sets, rows, i) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes the rows as a table for a merge request.
func Markdown(w io.Writer, sets []Set, rows []Row, differences []Difference) error {
	var b strings.Builder
	if text := Bounded(sets); text != "" {
		b.WriteString(text + "\n\n")
	}
	for i, line := range table(sets, rows) {
		for k := range line {
			line[k] = strings.ReplaceAll(line[k], "|", `\|`)
		}
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(line)) + "\n")
		}
	}
	b.WriteString("\n")
	for _, d := range differences {
		fmt.Fprintf(&b, "- %s\n", safetext.Markdown(d.title()+": "+strings.Join(blanks(d.Values), " / ")))
	}
	for _, note := range Notes(sets) {
		b.WriteString("\n" + safetext.Markdown(note) + "\n")
	}
	for i := 1; i < len(sets); i++ {
		b.WriteString("\n" + Summary(sets, rows, i) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// CSV writes a line for each figure of each set, with a line of names before them. Of sweeps the first column is the
// cell.
func CSV(w io.Writer, sets []Set, rows []Row) error {
	c := csv.NewWriter(w)
	sweeps := slices.ContainsFunc(rows, func(r Row) bool { return r.Cell != "" })
	write := func(cell string, line []string) {
		if sweeps {
			line = append([]string{cell}, line...)
		}
		_ = c.Write(line)
	}
	write("cell", []string{
		"metric", "unit", "set", "repeats", "median", "low", "high", "change_percent", "p", "verdict",
		"at_least",
	})
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	for _, row := range rows {
		for i := range row.Cells {
			cell := &row.Cells[i]
			line := []string{
				row.Name, row.Unit, sets[i].Name, strconv.Itoa(len(cell.Values)), number(cell.Median),
				number(cell.Low), number(cell.High),
			}
			if cell.Verdict == Unknown {
				line = append(line, "", "", "")
			} else {
				line = append(line, number(100*cell.Change), number(cell.P), string(cell.Verdict))
			}
			write(row.Cell, append(line, strconv.FormatBool(cell.AtLeast)))
		}
	}
	c.Flush()
	return c.Error()
}

// table returns the rows as texts, the first being the head.
func table(sets []Set, rows []Row) [][]string {
	head := []string{""}
	for i := range sets {
		head = append(head, fmt.Sprintf("%s (%s)", sets[i].Name, repeats(len(sets[i].Results))))
		if i > 0 {
			head = append(head, "change", "")
		}
	}
	list := [][]string{head}
	for r := range rows {
		row := &rows[r]
		line := []string{row.title()}
		for i := range row.Cells {
			c := &row.Cells[i]
			line = append(line, row.value(c))
			switch {
			case i == 0:
			case c.Verdict == Unknown:
				line = append(line, "", "")
			default:
				line = append(line, c.String(), fmt.Sprintf("%s (p=%.3f)", c.Verdict, c.P))
			}
		}
		list = append(list, line)
	}
	return list
}

// value is a median with how far the interval reaches to either side.
func (r *Row) value(c *Cell) string {
	if len(c.Values) == 0 {
		return "-"
	}
	text := r.Metric.Unit.Format(c.Median)
	if c.AtLeast {
		text = "at least " + text
	}
	if len(c.Values) > 1 && c.Median != 0 {
		text += fmt.Sprintf(" (%+.0f%% %+.0f%%)", 100*(c.Low-c.Median)/c.Median, 100*(c.High-c.Median)/c.Median)
	}
	return text
}

func repeats(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// Summary says in one line how set i compares with the first.
func Summary(sets []Set, rows []Row, i int) string {
	of := map[Verdict][]string{}
	few := false
	for r := range rows {
		c := &rows[r].Cells[i]
		text := rows[r].title()
		if c.Verdict == Better || c.Verdict == Worse {
			text += " " + c.String()
		}
		of[c.Verdict] = append(of[c.Verdict], text)
		few = few || c.Verdict == TooFew
	}
	var parts []string
	for _, v := range []Verdict{Worse, Better, Same} {
		if len(of[v]) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", v, strings.Join(of[v], ", ")))
		}
	}
	if few {
		parts = append(parts, fmt.Sprintf("%s: %s; that takes %d runs of each", TooFew, strings.Join(of[TooFew], ", "),
			Enough(len(rows))))
	}
	if len(of[Bound]) > 0 {
		parts = append(parts, fmt.Sprintf("%s: %s", Bound, strings.Join(of[Bound], ", ")))
	}
	if len(parts) == 0 {
		parts = []string{"no figure in common"}
	}
	return fmt.Sprintf("%s against %s: %s", sets[i].Name, sets[0].Name, strings.Join(parts, "; "))
}

func blanks(values []string) []string {
	values = slices.Clone(values)
	for i, v := range values {
		if v == "" {
			values[i] = "-"
		}
	}
	return values
}
