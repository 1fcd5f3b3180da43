package sweep

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

func (s *Sweep) note(format string, args ...any) {
	s.Progress.Say("note: " + fmt.Sprintf(format, args...))
}

func (s *Sweep) print(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		s.Progress.Print(strings.TrimSuffix(line, "\n"))
	}
}

// Describe returns lines that describe the sweep.
func (s *Sweep) Describe() []string {
	runs := words.Plural(s.Repeats, "run")
	if len(s.Axes) > 0 {
		runs = fmt.Sprintf("%s, %s of each", words.Plural(len(s.Cells), "cell"), runs)
	}
	lines := []string{runs}
	if s.Shuffled {
		lines = append(lines, fmt.Sprintf("shuffled by seed %d", s.state.Seed))
	}
	if s.Between == Fresh {
		lines = append(lines, "each run leaves its own destinations at the broker")
	}
	return lines
}

// Titles returns the names of the cells; none for the repeats of one run.
func (s *Sweep) Titles() (list []string) {
	for _, values := range s.Cells {
		if title := s.state.Title(values); title != "" {
			list = append(list, title)
		}
	}
	return list
}

// sayRun says which run begins.
func (s *Sweep) sayRun(r *record.Run) {
	if s.Silent {
		return
	}
	text := fmt.Sprintf("run %d of %d", s.finished()+1, len(s.state.Runs))
	if title := s.state.Title(r.Values); title != "" {
		text += ": " + title
	}
	if s.Repeats > 1 {
		text += fmt.Sprintf(", repeat %d of %d", r.Repeat, s.Repeats)
	}
	s.note("%s", text)
}

// printRun prints a line about an ended run.
func (s *Sweep) printRun(r *record.Run) {
	if s.Silent {
		return
	}
	var parts []string
	for _, name := range s.state.Names(record.Usual()) {
		if v, known := r.Figures[name]; known {
			parts = append(parts, name+" "+r.Bound(name)+figure(name, v))
		}
	}
	switch {
	case r.State != record.Done:
		parts = append(parts, "not finished")
	case r.Aborted && r.Status == result.StatusThreshold:
		parts = append(parts, "ended early by a threshold")
	case r.Status == result.StatusThreshold:
		parts = append(parts, "a threshold failed")
	case r.Status != result.StatusOK:
		parts = append(parts, "FAILED: "+r.Problem)
	}
	for _, l := range r.Limits {
		parts = append(parts, strings.TrimSpace(l.Step+" limit "+l.Kind))
	}
	title := s.state.Title(r.Values)
	if s.Repeats > 1 {
		title = strings.TrimSpace(fmt.Sprintf("%s #%d", title, r.Repeat))
	}
	s.print("--- %s: %s\n", cmp.Or(title, s.state.Name), strings.Join(parts, ", "))
}

// figure formats a value with its unit; large rates have no decimals.
func figure(name string, v float64) string {
	unit := record.UnitOf(name)
	if unit == threshold.PerSecond && v >= 100 {
		v = math.Round(v)
	}
	return unit.Format(v)
}

// conclude judges the sweep, prints its table, and returns the exit status.
func (s *Sweep) conclude(status int) int {
	for i := range s.state.Runs {
		if r := &s.state.Runs[i]; r.State == record.Done {
			status = result.Graver(status, r.Status)
		}
	}
	if s.Silent {
		return status
	}
	rows := s.state.Rows()
	columns := s.state.Columns(rows, record.Usual())
	if len(columns) > 0 {
		s.printTable(rows, columns)
	}
	return status
}

// printTable prints the medians of each cell, with the lowest and highest of its repeats.
func (s *Sweep) printTable(rows []record.Row, columns []string) {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(axis func(name string) string, runs string, column func(name string) string) {
		var cells []string
		for _, a := range s.Axes {
			cells = append(cells, axis(a.Name))
		}
		cells = append(cells, runs)
		for _, name := range columns {
			cells = append(cells, column(name))
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") // a strings.Builder never fails
	}
	printable := func(r rune) rune { return max(r, ' ') } // no tabs and line breaks
	itself := func(name string) string { return name }
	line(itself, "runs", itself)
	for i := range rows {
		row := &rows[i]
		line(func(name string) string { return strings.Map(printable, row.Values[name]) }, runsText(row),
			func(name string) string { return spread(row, name) })
	}
	_ = t.Flush() // a strings.Builder never fails
	what := "metrics of each cell"
	if s.Repeats > 1 {
		what = "medians of the repeats (lowest to highest)"
	}
	if text := s.state.Bounded(); text != "" {
		what += "; " + text
	}
	s.print("\n--- SWEEP %s: %s\n%s", s.state.Name, what, b.String())
}

// runsText returns the number of good runs of a cell, and the numbers of failed runs and of runs that perfmq limited.
func runsText(row *record.Row) string {
	var parts []string
	if row.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", row.Failed))
	}
	if row.Bounded > 0 {
		parts = append(parts, fmt.Sprintf("%d bounded by perfmq", row.Bounded))
	}
	if len(parts) == 0 {
		return fmt.Sprint(row.Good)
	}
	return fmt.Sprintf("%d (%s)", row.Good, strings.Join(parts, ", "))
}

func spread(row *record.Row, name string) string {
	f, ok := row.Figures[name]
	if !ok {
		return "-"
	}
	text := row.Bound(name) + figure(name, f.Median)
	if f.N > 1 {
		text += fmt.Sprintf(" (%s-%s)", figure(name, f.Minimum), figure(name, f.Maximum))
	}
	return text
}
