package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

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
	var parts []string
	if len(s.Cells) > 1 {
		parts = append(parts, fmt.Sprintf("cell %d of %d", r.Cell, len(s.Cells)))
	}
	if s.Repeats > 1 {
		parts = append(parts, fmt.Sprintf("repeat %d of %d", r.Repeat, s.Repeats))
	}
	s.note("%s", strings.TrimSuffix(strings.Join(parts, ", ")+": "+s.state.Title(r.Values), ": "))
}

// printRun prints a line about an ended run: its rates. The table has the latencies.
func (s *Sweep) printRun(r *record.Run) {
	if s.Silent {
		return
	}
	var parts []string
	for _, name := range s.state.Names(record.Usual()) {
		short, rate := strings.CutSuffix(name, ".avg")
		if v, known := r.Figures[name]; rate && known {
			parts = append(parts, short+" "+r.Bound(name)+figure(name, v))
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

// figure formats a value with its unit, in three digits.
func figure(name string, v float64) string {
	switch unit := record.UnitOf(name); unit {
	case threshold.PerSecond:
		return words.Short(v) + "/s"
	case threshold.Time:
		return words.Duration(int64(math.Round(v)))
	default:
		return unit.Format(v)
	}
}

// conclude judges the sweep, prints its table, and returns the exit status.
func (s *Sweep) conclude(status int) int {
	for _, r := range s.state.Runs {
		if r.State == record.Done {
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

// tableColumns is the width of a table: that of a terminal.
const tableColumns = 80

// printTable prints the medians of each cell. Columns that do not fit stand in a table below, with the axes once more.
func (s *Sweep) printTable(rows []record.Row, names []string) {
	printable := func(r rune) rune { return max(r, ' ') } // no tabs and line breaks
	var titles []string
	for _, a := range s.Axes {
		titles = append(titles, a.Name)
	}
	table := [][]string{slices.Concat(titles, []string{"runs"}, names)}
	for _, row := range rows {
		var cells []string
		for _, a := range s.Axes {
			cells = append(cells, strings.Map(printable, row.Values[a.Name]))
		}
		cells = append(cells, runsText(&row))
		for _, name := range names {
			cells = append(cells, spread(&row, name))
		}
		table = append(table, cells)
	}
	what := "metrics of each cell"
	if s.Repeats > 1 {
		what = "medians of the repeats, with the farthest repeat"
	}
	text := fmt.Sprintf("\n--- SWEEP %s: %s\n", s.state.Name, what)
	if bounded := s.state.Bounded(); bounded != "" {
		text += bounded + "\n"
	}
	s.print("%s%s", text, words.Table(tableColumns, len(s.Axes), table))
}

// runsText returns the number of good runs of a cell, and the numbers of failed runs and of runs that perfmq limited.
func runsText(row *record.Row) string {
	text := fmt.Sprint(row.Good)
	if row.Failed > 0 {
		text += fmt.Sprintf(", %d failed", row.Failed)
	}
	if row.Bounded > 0 {
		text += fmt.Sprintf(", %d bounded", row.Bounded)
	}
	return text
}

// spread returns a median and, of several repeats, the distance of the farthest one from it.
func spread(row *record.Row, name string) string {
	f, ok := row.Figures[name]
	if !ok {
		return "-"
	}
	text := figure(name, f.Median)
	if row.Bound(name) != "" {
		text = ">= " + text
	}
	if f.N > 1 && f.Median > 0 {
		text += fmt.Sprintf(" ±%.0f%%", 100*max(f.Maximum-f.Median, f.Median-f.Minimum)/f.Median)
	}
	return text
}
