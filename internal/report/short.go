package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/words"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// Maximum size of a short summary.
const (
	shortLines   = 25
	mostLines    = 22 // of shortLines, for the figures
	wholeLines   = 3  // for the first of the lines above the figures
	shortColumns = 100
	leastColumns = 40
)

// ShortOptions are the settings of a [Short].
type ShortOptions struct {
	// URL is that of the broker, for the first line.
	URL string
	// Terminal tells that a line can be overwritten.
	Terminal bool
	// Columns returns the width of the terminal; nil, or a result of 0, if it is unknown.
	Columns func() int
	// Color prints the verdict in color.
	Color bool
	// Lines prints a line for each interval instead of overwriting one.
	Lines bool
	// Length is the length of the load; 0 if it is unknown.
	Length time.Duration
}

// Short prints a summary of at most 25 lines of 100 columns: first the verdict, the limit of the rate, findings,
// problems and warnings; then rates, latencies and workers. During the run a terminal shows one line about the last
// interval.
type Short struct {
	out     io.Writer
	options ShortOptions
	run     stats.Run
	shown   bool // a line that can be overwritten
}

// NewShort returns a Short that prints to out.
func NewShort(out io.Writer, options ShortOptions) *Short { return &Short{out: out, options: options} }

// Start prints the destinations and the broker's URL.
func (s *Short) Start(run stats.Run) error {
	s.run = run
	if s.options.URL == "" {
		return nil
	}
	text := "load on " + words.First(run.Destinations, shownDestinations, ", ") + " at " + s.options.URL
	return s.print(cut(oneLine(text), min(s.columns(), shortColumns)) + "\n")
}

// Interval shows the line about an interval.
func (s *Short) Interval(snapshot *stats.Snapshot) error {
	columns := s.columns() - 1
	line := cut(s.status(snapshot, columns), columns)
	switch {
	case s.options.Lines:
		return s.print(line + "\n")
	case s.options.Terminal:
		s.shown = true
		return s.print("\r" + line + "\x1b[K")
	default:
		return nil
	}
}

// status returns one line about an interval. If it is too long, the least important parts are omitted.
func (s *Short) status(n *stats.Snapshot, columns int) string {
	type part struct {
		text string
		rank int // the highest is omitted first; 0 stays
	}
	parts := []part{{text: span(n.Elapsed)}}
	add := func(rank int, format string, args ...any) {
		parts = append(parts, part{"  " + fmt.Sprintf(format, args...), rank})
	}
	if left := s.options.Length - n.Elapsed; left > 0 && n.Phase != stats.Drain {
		parts[0].text += fmt.Sprintf(", %s left", span(left))
	}
	if s.run.Several() {
		add(0, "%s", oneLine(n.Step))
	}
	if n.Phase != stats.Measure {
		add(0, "%s", n.Phase)
	}
	if text := outageNow(n.Outages); text != "" {
		add(0, "outage: %s", text)
	}
	speed := func(rank int, name string, count uint64) {
		add(rank, "%s %s/s", name, words.Short(float64(count)/max(n.Seconds(), 1e-9)))
	}
	if s.run.Producing {
		speed(2, "sent", n.Delta[result.Sent])
		speed(0, "completed", n.Delta[result.Completed])
	}
	if s.run.Consuming {
		speed(1, "received", n.Delta[result.Received])
	}
	for _, kind := range []result.Kind{result.Response, result.Ack, result.Transfer} {
		if l := n.Latencies[kind]; l != nil && l.Count > 0 {
			add(0, "%s p99 %s", result.Kinds()[kind].Name, words.Duration(l.Percentile(99)))
			break
		}
	}
	if s.run.Producing {
		add(3, "in flight %s", words.Short(float64(n.InFlight)))
	}
	for rank := 3; ; rank-- {
		line := ""
		for _, p := range parts {
			line += p.text
		}
		if rank == 0 || utf8.RuneCountInString(line) <= columns {
			return line
		}
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.rank == rank })
	}
}

// Summary prints the summary.
func (s *Short) Summary(sum *stats.Summary) error {
	width := min(s.columns(), shortColumns)
	text := s.table(sum, width)
	body := len(text)
	told := s.told(sum)
	room := shortLines - 1 - body
	first := wrapped(told[:min(1, len(told))], width, min(wholeLines, room)) // mostly the limit, or the first problem
	told, room = told[min(1, len(told)):], room-len(first)
	if more := len(told) - room; more > 0 && room > 0 {
		told = append(told[:room-1], fmt.Sprintf("%d more: see --format artemis, --json or --result", more+1))
	}
	told = append(first, wrapped(told[:min(room, len(told))], width, room)...)
	var b strings.Builder
	if s.shown {
		b.WriteString("\r\x1b[K")
	}
	verdict, rest := s.verdict(sum)
	b.WriteString(s.colored(verdict, sum.Success && verdict == "SUCCESS") +
		cut(rest, width-utf8.RuneCountInString(verdict)) + "\n")
	for _, line := range append(told, text...) {
		b.WriteString(strings.TrimRight(cut(line, width), " ") + "\n")
	}
	return s.print(b.String())
}

// Close does nothing; Summary clears the line on the terminal.
func (s *Short) Close() error { return nil }

func (s *Short) print(text string) error {
	return (&Console{out: s.out}).print(text)
}

func (s *Short) columns() int {
	n := 0
	if s.options.Columns != nil {
		n = s.options.Columns()
	}
	if n <= 0 {
		n = shortColumns
	}
	return max(n, leastColumns)
}

func (s *Short) colored(text string, good bool) string {
	switch {
	case !s.options.Color:
		return text
	case good:
		return "\x1b[32m" + text + "\x1b[0m"
	default:
		return "\x1b[31m" + text + "\x1b[0m"
	}
}

// verdict returns the outcome of the run as a word, and the rest of its line.
func (s *Short) verdict(sum *stats.Summary) (word, rest string) {
	word = "SUCCESS"
	for i := range sum.Thresholds {
		if sum.Thresholds[i].Broken() {
			word = "THRESHOLD NOT KEPT"
		}
	}
	if !sum.Success {
		word = "FAILURE"
	}
	protocol := s.run.Protocol
	if s.run.ConsumerProtocol != "" && s.run.ConsumerProtocol != protocol {
		protocol += " to " + s.run.ConsumerProtocol
	}
	rest = ": " + oneLine(sum.Reason) + " after " + span(sum.End.Sub(sum.Start))
	if sum.Average.Span > 0 {
		rest += " (" + span(sum.Average.Span) + " measured)"
	}
	return word, rest + ", " + protocol + " " + oneLine(words.First(s.run.Destinations, shownDestinations, ", "))
}

// told returns the lines above the figures: limit, outages, problems, thresholds, findings and warnings.
func (s *Short) told(sum *stats.Summary) (lines []string) {
	add := func(label, text string) { lines = append(lines, fmt.Sprintf("%-9s %s", label, oneLine(text))) }
	if sum.Limit.Kind != "" {
		add("limit", words.Limit(&sum.Limit))
	}
	if len(sum.Outages) > 0 {
		add("outages", outagesInShort(sum))
	}
	for _, text := range sum.Problems() {
		add("problem", text)
	}
	for i := range sum.Thresholds {
		if sum.Thresholds[i].Broken() {
			add("threshold", sum.Thresholds[i].String())
		}
	}
	for _, text := range sum.Warnings() {
		add("warning", text)
	}
	for _, text := range sum.Notes() {
		add("finding", text)
	}
	for _, text := range sum.LeftBehind {
		add("left", text)
	}
	for i := range sum.Thresholds {
		if !sum.Thresholds[i].Broken() {
			add("threshold", sum.Thresholds[i].String())
		}
	}
	return lines
}

// table returns the figures.
func (s *Short) table(sum *stats.Summary, width int) (lines []string) {
	lines = append(lines, "", fmt.Sprintf("%-10s%12s%10s%12s%12s%12s", "", "average", "total", "payload", "lowest",
		"highest"))
	a := &sum.Average
	row := func(name string, n, total uint64, bytes string, low, high *stats.Lowest) {
		average := "-"
		if a.Span > 0 {
			average = words.Short(a.PerSecond(n)) + "/s"
		}
		extreme := func(l *stats.Lowest) string {
			if l == nil || !l.Known() {
				return ""
			}
			return words.Short(l.PerSecond) + "/s"
		}
		lines = append(lines, fmt.Sprintf("%-10s%12s%10s%12s%12s%12s", name, average, words.Short(float64(total)), bytes,
			extreme(low), extreme(high)))
	}
	payload := func(bytes uint64) string {
		if a.Span <= 0 {
			return ""
		}
		return words.Megabytes(a.PerSecond(bytes)) + " MB/s"
	}
	if s.run.Producing {
		row("sent", a.Sent, sum.Total[result.Sent], "", nil, nil)
		if o := &sum.Offered; o.Known() && o.Span > 0 {
			lines[len(lines)-1] = strings.TrimRight(lines[len(lines)-1], " ") +
				fmt.Sprintf("  of %s/s offered, %s missed", words.Short(o.Rate), words.Percent(o.Missed()))
		}
		row("completed", a.Completed, sum.Total[result.Completed], payload(a.CompletedBytes), &sum.Minimum.Completed,
			&sum.Maximum.Completed)
	}
	if s.run.Consuming {
		row("received", a.Received, sum.Total[result.Received], payload(a.ReceivedBytes), &sum.Minimum.Received,
			&sum.Maximum.Received)
	}
	lines = append(lines, s.latencies(&sum.Latencies, width)...)
	lines = append(lines, "")
	lines = append(lines, steps(sum.Steps)...)
	for i := range sum.Spreads[:min(len(sum.Spreads), 2)] {
		p := &sum.Spreads[i]
		what := "received per consumer"
		if p.Role == roleOf(true) {
			what = "completed per producer"
		}
		lines = append(lines, fmt.Sprintf("%s: %s / %s / %s (minimum, median, maximum of %d)", what,
			words.Short(float64(p.Minimum)), words.Short(float64(p.Median)), words.Short(float64(p.Maximum)), p.Workers))
	}
	for _, s := range result.SpreadOverHosts(sum.Hosts) {
		what := map[bool]string{true: "completed", false: "received"}[s.Role == roleOf(true)]
		lines = append(lines, fmt.Sprintf("%s per host: %s / %s / %s (minimum, median, maximum of %d)", what,
			words.Short(float64(s.Minimum)), words.Short(float64(s.Median)), words.Short(float64(s.Maximum)), s.Hosts))
	}
	h := &sum.Health
	cores, of := coresUsed(h)
	text := "tester: " + cores + of
	if h.MemoryPeak > 0 {
		text += ", " + words.Megabytes(float64(h.MemoryPeak)) + " MB at most"
	}
	if len(sum.Brokers) == 0 {
		return append(lines, text)
	}
	broker := "broker: " + oneLine(strings.TrimSpace(sum.Brokers[0].Product+" "+sum.Brokers[0].Version))
	if utf8.RuneCountInString(text+"; "+broker) > width && len(lines) < mostLines-1 {
		return append(lines, text, broker)
	}
	return append(lines, text+"; "+broker)
}

// shownSteps is the maximum number of steps in a summary.
const shownSteps = 5

// steps returns a line for each of several steps.
func steps(list []stats.StepSummary) (lines []string) {
	for i := range list {
		if i == shownSteps {
			return append(lines, fmt.Sprintf("and %d more steps", len(list)-i))
		}
		s := &list[i]
		line := fmt.Sprintf("step %s: %s, %s", oneLine(s.Name), oneLine(s.Reason), span(s.Loaded))
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

// latencies returns a table of the latencies, with a small histogram of each over one scale.
func (s *Short) latencies(l *result.Latencies, width int) (lines []string) {
	type named struct {
		name string
		of   *result.Latency
	}
	var list []named
	for _, n := range []named{
		{"ack", l[result.Ack]},
		{"response", l[result.Response]},
		{"transfer", l[result.Transfer]},
		{"lateness", l[result.Lateness]},
		{"delay", l[result.Delay]},
		{"commit", l[result.Commit]},
	} {
		if n.of != nil && n.of.Count > 0 {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return nil
	}
	scale := newScale(min(24, width-66))
	for _, n := range list {
		scale.cover(n.of)
	}
	head := fmt.Sprintf("%-10s%9s%9s%9s%9s%9s%9s", "", "mean", "p50", "p90", "p99", "p99.9", "max")
	if scale.columns > 0 {
		head += "  " + scale.title()
	}
	lines = append(lines, "", head)
	for _, n := range list {
		line := fmt.Sprintf("%-10s%9s", n.name, words.Duration(int64(math.Round(n.of.Mean()))))
		for _, p := range []float64{50, 90, 99, 99.9, 100} {
			line += fmt.Sprintf("%9s", words.Duration(n.of.Percentile(p)))
		}
		lines = append(lines, line+"  "+scale.histogram(n.of))
	}
	return lines
}
