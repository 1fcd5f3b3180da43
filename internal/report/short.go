package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// shortLines is the maximum number of lines of a short summary.
const shortLines = 25

// shortColumns is the width of a terminal if it is unknown.
const shortColumns = 100

// Short prints a summary of at most 25 lines: first the verdict, the limit of the rate, problems, warnings and
// findings; then rates and latencies. During the run a terminal shows one line about the last interval.
type Short struct {
	*Console
	shown bool // a line that can be overwritten
}

// NewShort returns a Short that prints to out.
func NewShort(out io.Writer, options ConsoleOptions) *Short {
	return &Short{Console: NewConsole(out, options)}
}

// Start prints the destinations and the broker's URL.
func (s *Short) Start(run stats.Run) error {
	s.run = run
	if s.options.URL == "" {
		return nil
	}
	return s.print("load on " + s.destinations() + " at " + oneLine(s.options.URL) + "\n")
}

func (s *Short) destinations() string {
	return oneLine(words.First(s.run.Destinations, shownDestinations, ", "))
}

// Interval shows the line about an interval.
func (s *Short) Interval(snapshot *stats.Snapshot) error {
	line := s.status(snapshot)
	switch {
	case s.options.Lines:
		return s.print(line + "\n")
	case s.options.Terminal:
		columns := 0
		if s.options.Columns != nil {
			columns = s.options.Columns()
		}
		s.shown = true
		return s.print("\r" + cut(line, cmp.Or(columns, shortColumns)-1) + "\x1b[K")
	default:
		return nil
	}
}

// status returns one line about an interval.
func (s *Short) status(n *stats.Snapshot) string {
	elapsed := time.Duration(n.Elapsed) * time.Microsecond
	parts := []string{span(elapsed)}
	add := func(known bool, name string, value any) {
		if known {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %v", name, value)))
		}
	}
	if left := s.options.Length - elapsed; left > 0 && n.Phase != result.Drain {
		parts[0] += fmt.Sprintf(", %s left", span(left))
	}
	perSecond := func(c result.Counter) string {
		return words.Short(float64(n.Get(c))/max(n.To.Sub(n.From).Seconds(), 1e-9)) + "/s"
	}
	add(s.run.Several(), "", oneLine(n.Step))
	add(n.Phase != result.Measure, "", n.Phase)
	outage := outageNow(n.Outage)
	add(outage != "", "outage:", outage)
	add(s.run.Producing, "sent", perSecond(result.Sent))
	add(s.run.Producing, "completed", perSecond(result.Completed))
	add(s.run.Consuming, "received", perSecond(result.Received))
	for _, kind := range []result.Kind{result.Response, result.Ack, result.Transfer} {
		if l := n.Latencies[kind]; l != nil && l.Count > 0 {
			add(true, result.Kinds()[kind].Name+" p99", words.Duration(l.Percentile(99)))
			break
		}
	}
	add(s.run.Producing, "in flight", words.Short(float64(n.InFlight)))
	return strings.Join(parts, "  ")
}

// Summary prints the summary.
func (s *Short) Summary(sum *stats.Summary) error {
	table, said := s.table(sum), s.said(sum)
	if room := shortLines - 1 - len(table); len(said) > room {
		said = append(said[:room-1], fmt.Sprintf("%d more: see --format artemis, --json or --result", len(said)-room+1))
	}
	verdict, rest := s.verdict(sum)
	if s.options.Color {
		color := "\x1b[31m" // red
		if verdict == "SUCCESS" {
			color = "\x1b[32m" // green
		}
		verdict = color + verdict + "\x1b[0m"
	}
	if s.shown {
		verdict = "\r\x1b[K" + verdict
	}
	lines := append([]string{verdict + rest}, append(said, table...)...)
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return s.print(strings.Join(lines, "\n") + "\n")
}

// verdict returns the outcome of the run as a word, and the rest of its line.
func (s *Short) verdict(sum *stats.Summary) (word, rest string) {
	word = "SUCCESS"
	if threshold.Fail(sum.Thresholds) {
		word = "THRESHOLD NOT KEPT"
	}
	if !sum.Outcome.Success {
		word = "FAILURE"
	}
	protocol := s.run.Protocol
	if s.run.ConsumerProtocol != "" && s.run.ConsumerProtocol != protocol {
		protocol += " to " + s.run.ConsumerProtocol
	}
	rest = ": " + oneLine(sum.Outcome.Reason) + " after " + span(time.Duration(sum.End-sum.Start)*time.Microsecond)
	if sum.Average.Span > 0 {
		rest += " (" + span(sum.Average.Span) + " measured)"
	}
	return word, rest + ", " + protocol + " " + s.destinations()
}

// said returns the lines above the figures, the most important first.
func (s *Short) said(sum *stats.Summary) (lines []string) {
	add := func(label string, texts ...string) {
		for _, text := range texts {
			lines = append(lines, fmt.Sprintf("%-9s %s", label, oneLine(text)))
		}
	}
	if sum.Limit != nil {
		add("limit", words.Limit(sum.Limit))
	}
	if outages := words.Outages(sum.Outages, sum.MoreOutages); outages != "" {
		add("after", outages)
	}
	add("problem", sum.Problems()...)
	for _, kept := range []bool{false, true} {
		for i := range sum.Thresholds {
			if sum.Thresholds[i].Kept == kept {
				add("threshold", sum.Thresholds[i].String())
			}
		}
	}
	add("warning", sum.Warnings()...)
	add("finding", sum.Notes()...)
	add("left", sum.Outcome.LeftBehind...)
	return lines
}

// table returns the figures.
func (s *Short) table(sum *stats.Summary) []string {
	const columns = "%-10s%12s%10s%12s%12s%12s"
	lines := []string{"", fmt.Sprintf(columns, "", "average", "total", "payload", "lowest", "highest")}
	a := &sum.Average
	average := func(n uint64) string {
		if a.Span <= 0 {
			return "-"
		}
		return words.Short(a.PerSecond(n)) + "/s"
	}
	row := func(name string, n, total, bytes uint64, low, high *result.Extreme) {
		payload := ""
		if a.Span > 0 {
			payload = words.Megabytes(a.PerSecond(bytes)) + " MB/s"
		}
		extreme := func(l *result.Extreme) string {
			if !l.Known() {
				return ""
			}
			return words.Short(l.PerSecond) + "/s"
		}
		lines = append(lines, fmt.Sprintf(columns, name, average(n), words.Short(float64(total)), payload, extreme(low),
			extreme(high)))
	}
	if s.run.Producing {
		lines = append(lines, fmt.Sprintf("%-10s%12s%10s%s", "sent", average(a.Sent),
			words.Short(float64(sum.Total.Get(result.Sent))), offered(&sum.Offered)))
		row("completed", a.Completed, sum.Total.Get(result.Completed), a.CompletedBytes, &sum.Minimum.Completed,
			&sum.Maximum.Completed)
	}
	if s.run.Consuming {
		row("received", a.Received, sum.Total.Get(result.Received), a.ReceivedBytes, &sum.Minimum.Received,
			&sum.Maximum.Received)
	}
	lines = append(append(lines, shortLatencies(&sum.Latencies)...), "")
	cores, of := coresUsed(&sum.Tester)
	text := "tester: " + cores + of
	if sum.Tester.MemoryPeak > 0 {
		text += ", " + words.Megabytes(float64(sum.Tester.MemoryPeak)) + " MB at most"
	}
	if len(sum.Brokers) > 0 {
		text += "; broker: " + oneLine(strings.TrimSpace(sum.Brokers[0].Product+" "+sum.Brokers[0].Version))
	}
	return append(append(lines, shortSteps(sum.Ended)...), text)
}

// shownSteps is the maximum number of steps in a summary.
const shownSteps = 5

// shortSteps returns a line for each of several steps.
func shortSteps(list []stats.Summary) (lines []string) {
	for i := range list {
		if i == shownSteps {
			return append(lines, fmt.Sprintf("and %d more steps", len(list)-i))
		}
		s := &list[i]
		line := fmt.Sprintf("step %s: %s, %s", oneLine(s.Name), oneLine(s.Outcome.Reason), span(s.Loaded))
		if s.Average.Span > 0 && s.Sends {
			line += fmt.Sprintf(", completed %s/s", words.Short(s.Average.PerSecond(s.Average.Completed)))
		}
		if s.Average.Span > 0 && s.Receives {
			line += fmt.Sprintf(", received %s/s", words.Short(s.Average.PerSecond(s.Average.Received)))
		}
		if l := s.Latencies[result.Ack]; l != nil && l.Count > 0 {
			line += ", ack p99 " + words.Duration(l.Percentile(99))
		}
		lines = append(lines, line)
	}
	return lines
}

// shortLatencies returns a table of the latencies.
func shortLatencies(l *result.Latencies) (lines []string) {
	for _, k := range result.Kinds() {
		of := l[k.Kind]
		if of == nil || of.Count == 0 {
			continue
		}
		line := fmt.Sprintf("%-10s%9s", k.Name, words.Duration(int64(math.Round(of.Mean()))))
		for _, p := range []float64{50, 90, 99, 99.9, 100} {
			line += fmt.Sprintf("%9s", words.Duration(of.Percentile(p)))
		}
		lines = append(lines, line)
	}
	if lines == nil {
		return nil
	}
	return append([]string{
		"", fmt.Sprintf("%-10s%9s%9s%9s%9s%9s%9s", "", "mean", "p50", "p90", "p99", "p99.9", "max"),
	}, lines...)
}

// cut shortens a line to the given number of columns.
func cut(line string, columns int) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:max(columns-1, 0)]) + "…"
}

// span returns a duration in whole seconds, or with a decimal below 10 seconds.
func span(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
