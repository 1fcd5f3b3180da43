package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// writeStep writes a block for one of several steps: why its load ended, its length, and its totals including the
// warm-up. Average rates and latencies are of the measured time.
func writeStep(b *strings.Builder, s *stats.Summary) {
	fmt.Fprintf(b, "\n--- STEP %s: %s, %.1f s\n", oneLine(s.Name), oneLine(s.Outcome.Reason), s.Loaded.Seconds())
	total := func(label string, n, measured uint64) {
		note := ""
		if s.Average.Span > 0 {
			note = fmt.Sprintf("average %d msg/sec", rate(measured, s.Average.Span))
		}
		writeTotal(b, label, n, note)
	}
	if s.Sends {
		total("step sent", s.Total.Get(result.Sent), s.Average.Sent)
		total("step completed", s.Total.Get(result.Completed), s.Average.Completed)
		for _, f := range failuresOf(&s.Total) {
			if f.count > 0 {
				writeTotal(b, "step "+f.name, f.count, failureText(f.classes))
			}
		}
	}
	if s.Receives {
		total("step received", s.Total.Get(result.Received), s.Average.Received)
	}
	writeLatencies(b, "--- step ", &s.Latencies, false)
	writeGroups(b, s.Groups)
	writeLimit(b, s.Limit)
}

// writeGroups writes a table of the groups of a step, or of a run with one step, if there are several. Totals include
// the warm-up; average rates and latencies are of the measured time.
func writeGroups(b *strings.Builder, groups []stats.Summary) {
	if len(groups) < 2 {
		return
	}
	rows := [][]string{{
		"--- group", "sent", "completed", "not accepted", "received", "msg/sec", "send 50.00%", "send 99.00%",
		"transfer 50.00%", "transfer 99.00%",
	}}
	for _, g := range groups {
		rows = append(rows, groupRow(&g))
	}
	b.WriteString(words.Table(math.MaxInt, 1, rows))
}

func groupRow(g *stats.Summary) []string {
	number := func(known bool, n uint64) string {
		if !known {
			return "-"
		}
		return strconv.FormatUint(n, 10)
	}
	var refused uint64
	for _, f := range failuresOf(&g.Total) {
		refused += f.count
	}
	measured := g.Average.Completed
	if !g.Sends {
		measured = g.Average.Received
	}
	row := []string{
		"--- group " + oneLine(g.Name) + ":", number(g.Sends, g.Total.Get(result.Sent)), number(g.Sends,
			g.Total.Get(result.Completed)),
		number(g.Sends, refused),
		number(g.Receives, g.Total.Get(result.Received)), number(g.Average.Span > 0, rate(measured, g.Average.Span)),
	}
	for _, l := range []*result.Latency{g.Latencies[result.Ack], g.Latencies[result.Transfer]} {
		for _, p := range []float64{50, 99} {
			cell := "-"
			if l != nil && l.Count > 0 {
				cell = fmt.Sprintf("%.2f us", float64(l.Percentile(p)))
			}
			row = append(row, cell)
		}
	}
	return row
}

// consoleOutput is the number of lines of a command's output on the console: the last ones.
const consoleOutput = 5

// writeCommands writes the commands that ran before and after steps, each with the end of its output.
func writeCommands(b *strings.Builder, commands []result.Command) {
	for _, c := range commands {
		status := "no status"
		if c.Status != nil {
			status = fmt.Sprintf("status %d", *c.Status)
		}
		text := fmt.Sprintf("%s %s: %s, %.1f s: %s", c.When, c.Step, status, float64(c.Took)/1e6, c.Command)
		b.WriteString("--- command: " + oneLine(text) + "\n")
		lines := strings.FieldsFunc(c.Output, func(r rune) bool { return r == '\n' || r == '\r' })
		if more := len(lines) - consoleOutput; more > 0 {
			fmt.Fprintf(b, "--- output:  (%d lines before these)\n", more)
			lines = lines[more:]
		}
		for _, line := range lines {
			b.WriteString(strings.TrimRight("--- output:  "+oneLine(line), " ") + "\n")
		}
	}
}
