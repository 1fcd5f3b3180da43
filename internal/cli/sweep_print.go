package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// sayProgress prints the run that begins and the remaining time of the sweep.
func (w *sweeper) sayProgress(r *sweep.Run) {
	if w.first.settings.Silent {
		return
	}
	text := fmt.Sprintf("note: run %d of %d", w.finished()+1, len(w.state.Runs))
	if title := w.state.Title(r.Values); title != "" {
		text += ": " + title
	}
	if w.state.Repeats > 1 {
		text += fmt.Sprintf(", repeat %d of %d", r.Repeat, w.state.Repeats)
	}
	if left, known := w.state.Left(w.lengths, w.settle); known {
		text += "; about " + left.Round(time.Second).String() + " left"
	}
	w.a.errors.say(w.a.secrets.Line(text))
}

// printRun prints a line about an ended run.
func (w *sweeper) printRun(r *sweep.Run) {
	var parts []string
	for _, name := range w.state.Columns([]sweep.Row{{Figures: spreads(r.Figures)}}) {
		parts = append(parts, name+" "+r.Bound(name)+figure(name, r.Figures[name]))
	}
	verdict := ""
	switch {
	case r.State != sweep.Done:
		verdict = "not finished"
	case r.Aborted && r.Status == exitThreshold:
		verdict = "ended early by a threshold"
	case r.Status == exitThreshold:
		verdict = "a threshold failed"
	case r.Status != exitOK:
		verdict = "FAILED: " + r.Problem
	}
	if verdict != "" {
		parts = append(parts, verdict)
	}
	for _, l := range r.Limits {
		limit := "limit " + l.Kind
		if l.Step != "" {
			limit = l.Step + " " + limit
		}
		parts = append(parts, limit)
	}
	title := w.state.Title(r.Values)
	if w.state.Repeats > 1 {
		title = strings.TrimSpace(fmt.Sprintf("%s #%d", title, r.Repeat))
	}
	w.printf("--- %s: %s\n", cmp.Or(title, w.state.Name), strings.Join(parts, ", "))
}

// figure formats a value with its unit; large rates have no decimals.
func figure(name string, v float64) string {
	unit := unitOf(name)
	if unit == threshold.PerSecond && v >= 100 {
		v = math.Round(v)
	}
	return unit.Format(v)
}

func spreads(figures map[string]float64) map[string]sweep.Spread {
	m := map[string]sweep.Spread{}
	for name := range figures {
		m[name] = sweep.Spread{}
	}
	return m
}

// unitOf returns the unit of a figure of a run or of a step.
func unitOf(name string) threshold.Unit {
	for {
		if m, ok := threshold.Find(name); ok {
			return m.Unit
		}
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return threshold.PerSecond
		}
		name = rest
	}
}

func (w *sweeper) printf(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		_, _ = fmt.Fprintln(w.a.Stdout, w.a.secrets.Line(strings.TrimSuffix(line, "\n")))
	}
}

// conclude judges the sweep and prints its table.
func (w *sweeper) conclude(status int) int {
	for i := range w.state.Runs {
		if r := &w.state.Runs[i]; r.State == sweep.Done {
			status = result.Graver(status, r.Status)
		}
	}
	rows := w.state.Rows()
	medians := w.state.Medians()
	for _, m := range medians {
		if !m.Outcome.Kept {
			status = result.Graver(status, exitThreshold)
			w.a.errors.write("threshold: "+strings.TrimSpace(w.state.Title(m.Values)+" "+m.Outcome.String()), "")
		}
	}
	if w.first.settings.Silent {
		return status
	}
	w.printTable(rows)
	for _, name := range w.state.Columns(rows) {
		if text := w.state.Brief(name); text != "" {
			w.printf("--- note: %s\n", text)
		}
	}
	for _, m := range medians {
		w.printf("--- threshold: %s\n", strings.TrimSpace(w.state.Title(m.Values)+" "+m.Outcome.String()))
	}
	w.printExtremes(rows)
	return status
}

// printTable prints the medians of each cell, with the lowest and highest of its repeats.
func (w *sweeper) printTable(rows []sweep.Row) {
	columns := w.state.Columns(rows)
	if len(columns) == 0 {
		return
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	cells := []string{}
	for _, a := range w.state.Axes {
		cells = append(cells, a.Name)
	}
	cells = append(cells, "runs")
	_, _ = fmt.Fprintln(t, strings.Join(append(cells, columns...), "\t")+"\t") // a strings.Builder never fails
	for i := range rows {
		row := &rows[i]
		cells = cells[:0]
		for _, a := range w.state.Axes {
			cells = append(cells, strings.Map(printableCell, row.Values[a.Name]))
		}
		cells = append(cells, runsText(row))
		for _, name := range columns {
			cells = append(cells, spreadText(row, name))
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") // a strings.Builder never fails
	}
	_ = t.Flush() // a strings.Builder never fails
	what := "metrics of each cell"
	if w.state.Repeats > 1 {
		what = "medians of the repeats (lowest to highest)"
	}
	if text := w.state.Bounded(); text != "" {
		what += "; " + text
	}
	w.printf("\n--- SWEEP %s: %s\n%s", w.state.Name, what, b.String())
}

// runsText is the number of runs of a cell that count, with those that failed, or of which perfmq was the limit.
func runsText(row *sweep.Row) string {
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

// printableCell keeps tabs and line breaks out of the table.
func printableCell(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

func spreadText(row *sweep.Row, name string) string {
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

// printExtremes prints the best and worst cell of each rate.
func (w *sweeper) printExtremes(rows []sweep.Row) {
	if len(rows) < 2 {
		return
	}
	for _, name := range w.state.Columns(rows) {
		if unitOf(name) != threshold.PerSecond {
			continue
		}
		best, worst, _ := sweep.Extremes(rows, name)
		if best == worst {
			continue // no other cell has this figure
		}
		w.printf("--- best %s: %s at %s; worst: %s at %s\n", name, best.Bound(name)+figure(name, best.Figures[name].Median),
			w.state.Title(best.Values),
			worst.Bound(name)+figure(name, worst.Figures[name].Median), w.state.Title(worst.Values))
	}
}

// estimate describes the expected length of the sweep.
func (w *sweeper) estimate() string {
	var all []sweep.Length
	for i := range w.state.Runs {
		all = append(all, w.lengths[w.state.Runs[i].Cell])
	}
	known, open := sweep.Total(all, w.settle)
	known = known.Round(time.Second)
	switch {
	case open == len(all) && known == 0:
		return "the time left is known when the first run has ended"
	case open > 0:
		return fmt.Sprintf("at least %v, and longer by what ends by a count, when it is idle, or with a command", known)
	default:
		return fmt.Sprintf("about %v, and what opening, draining and closing take", known)
	}
}

// describe returns lines that describe the sweep.
func (w *sweeper) describe() []string {
	runs := count(w.state.Repeats, "run")
	if n := len(w.state.Axes); n > 0 {
		runs = fmt.Sprintf("%s, %s of each", count(len(w.cells), "cell"), runs)
	}
	lines := []string{runs + ": " + w.estimate()}
	if w.state.Shuffled {
		lines = append(lines, fmt.Sprintf("shuffled, --seed %d", w.state.Seed))
	}
	switch w.between {
	case setting.BetweenPurge:
		for _, how := range w.emptied {
			lines = append(lines, "before each run "+how)
		}
	case setting.BetweenFresh:
		lines = append(lines, "each run has destinations of its own; they stay at the broker")
	}
	return lines
}

// print writes the plan of the first cell, and the list of cells.
func (w *sweeper) print(to io.Writer) {
	for _, line := range w.describe() {
		_, _ = fmt.Fprintf(to, "  %s\n", line) // a strings.Builder never fails
	}
	for i, values := range w.cells {
		if title := w.state.Title(values); title != "" {
			_, _ = fmt.Fprintf(to, "  cell %d: %s\n", i+1, w.a.secrets.Line(title)) // a strings.Builder never fails
		}
	}
}
