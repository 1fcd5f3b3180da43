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
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// shortLines is the maximum number of lines of a short summary: with a note and a prompt below it, a terminal of 24
	// lines shows all of it.
	shortLines = 22
	// shortColumns is the width of a short summary, and of a terminal if it is unknown.
	shortColumns = 80
	// labelColumn is the width of the first column.
	labelColumn = 10
)

// Short prints a summary of at most 22 lines of 80 columns: first the verdict, the limit of the rate, problems,
// thresholds, warnings and findings; then rates, latencies and a histogram, if there is room for it. During the run it
// prints a line for each step that ends, and a terminal shows one line about the last interval.
type Short struct {
	*Console
	shown bool // a line that can be overwritten
	ended int  // steps that have a line
}

// NewShort returns a Short that prints to out.
func NewShort(out io.Writer, options ConsoleOptions) *Short {
	return &Short{Console: NewConsole(out, options)}
}

// ASCII replaces the characters beyond ASCII that perfmq itself prints on a terminal.
func ASCII(text string) string {
	return strings.NewReplacer("µ", "u", "…", "~", "±", "+-",
		"█", "#", "▉", "#", "▊", "#", "▋", "#", "▌", "#", "▍", "#", "▎", "#", "▏", "#").Replace(text)
}

// show prints a text in place of the line that can be overwritten.
func (s *Short) show(text string) error {
	if s.shown {
		text = "\r\x1b[K" + text
	}
	s.shown = false
	if s.options.ASCII {
		text = ASCII(text)
	}
	return s.print(text)
}

// Start prints the destinations and the broker's URL.
func (s *Short) Start(run stats.Run) error {
	s.run = run
	if s.options.URL == "" {
		return nil
	}
	what := "load on " + s.destinations()
	if len(run.Destinations) == 0 {
		what = "connections"
	}
	return s.show(what + " at " + oneLine(s.options.URL) + "\n")
}

func (s *Short) destinations() string {
	return oneLine(words.First(s.run.Destinations, shownDestinations, ", "))
}

// Interval shows the line about an interval, and before it those of steps that have ended.
func (s *Short) Interval(snapshot *stats.Snapshot) error {
	if err := s.steps(snapshot.EndedSteps); err != nil {
		return err
	}
	if snapshot.Lost != "" {
		line := fmt.Sprintf("%s lost: %s\n", snapshot.To.Format(time.TimeOnly), oneLine(snapshot.Lost))
		if err := s.show(line); err != nil {
			return err
		}
	}
	switch {
	case s.options.Lines:
		return s.show(s.status(snapshot) + "\n")
	case s.options.Terminal:
		columns := 0
		if s.options.Columns != nil {
			columns = s.options.Columns()
		}
		err := s.show(cut(s.status(snapshot), cmp.Or(columns, shortColumns)-1))
		s.shown = true
		return err
	default:
		return nil
	}
}

// bar draws a share of a width in eighths of a character, rounded up: a share above 0 shows.
func bar(share float64, width int) string {
	eighths := int(math.Ceil(share * float64(8*width)))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
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
		share := 100 * float64(elapsed) / float64(s.options.Length)
		parts[0] = fmt.Sprintf("%2.0f%%  %s, %s left", share, parts[0], span(left))
	}
	perSecond := func(c result.Counter) string {
		return words.Short(float64(n.Get(c))/max(n.To.Sub(n.From).Seconds(), 1e-9)) + "/s"
	}
	add(s.run.Several(), "", oneLine(n.Step))
	add(n.Phase != result.Measure, "", n.Phase)
	outage := outageNow(n.Outage)
	add(outage != "", "outage:", outage)
	add(s.run.Producing, "sent", perSecond(result.Sent))
	add(s.run.Producing && !s.run.Consuming, "completed", perSecond(result.Completed))
	add(s.run.Consuming, "received", perSecond(result.Received))
	failed := n.Get(result.OpenRefused) + n.Get(result.OpenTimedOut) + n.Get(result.OpenUnmade)
	add(s.run.Opening, "live", words.Short(float64(n.Live)))
	add(s.run.Opening, "opened", perSecond(result.Opened))
	add(failed > 0, "not opened", words.Short(float64(failed)))
	add(n.Get(result.ConnectionsLost) > 0, "lost", words.Short(float64(n.Get(result.ConnectionsLost))))
	if _, l := telling(&n.Latencies); l != nil {
		add(s.options.ShowLatency, "p50", words.Duration(l.Percentile(50)))
		add(true, "p99", words.Duration(l.Percentile(99)))
		add(s.options.ShowLatency, "max", words.Duration(l.Max))
	}
	add(s.run.Producing, "in flight", words.Short(float64(n.InFlight)))
	return strings.Join(parts, "  ")
}

// telling returns the latency that says most about what a user of the broker waits for; nil if there is none.
func telling(all *result.Latencies) (name string, l *result.Latency) {
	for _, kind := range []result.Kind{result.Response, result.Ack, result.Transfer, result.Open} {
		if l := all[kind]; l != nil && l.Count > 0 {
			return result.Kinds()[kind].Name, l
		}
	}
	return "", nil
}

// steps shows lines about steps that have ended.
func (s *Short) steps(list []stats.Summary) error {
	for i := range list {
		if err := s.show(s.step(&list[i])); err != nil {
			return err
		}
	}
	return nil
}

// step returns a line about a step that has ended.
func (s *Short) step(sum *stats.Summary) string {
	s.ended++
	line := fmt.Sprintf("step %d of %d %s: %s", s.ended, len(s.run.Steps), oneLine(sum.Name), span(sum.Loaded))
	if a := &sum.Average; a.Span > 0 && sum.Sends {
		line += ", completed " + averageRate(a, a.Completed)
	}
	if a := &sum.Average; a.Span > 0 && sum.Receives {
		line += ", received " + averageRate(a, a.Received)
	}
	if name, l := telling(&sum.Latencies); l != nil {
		line += ", " + name + " p99 " + words.Duration(l.Percentile(99))
	}
	for _, t := range sum.Thresholds {
		if !t.Kept {
			line += ", FAILED " + t.Threshold
		}
	}
	if reason := oneLine(sum.Outcome.Reason); reason != "duration reached" {
		line += "; " + reason
	}
	return strings.Join(words.Wrap(line, shortColumns), "\n          ") + "\n"
}

// Summary prints the summary.
func (s *Short) Summary(sum *stats.Summary) error {
	if err := s.steps(sum.Ended[min(s.ended, len(sum.Ended)):]); err != nil {
		return err
	}
	lines := s.verdict(sum)
	table := s.table(sum)
	lines = append(lines, s.said(sum, shortLines-len(table)-len(lines))...)
	lines = append(lines, table...)
	if name, l := telling(&sum.Latencies); l != nil {
		lines = append(lines, histogram(name, l, min(shortLines-len(lines)-1, mostBars))...)
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return s.show(strings.Join(lines, "\n") + "\n")
}

// verdict returns the verdict, which one is to read from afar, in one line or two.
func (s *Short) verdict(sum *stats.Summary) []string {
	v := words.VerdictOf(&sum.Result)
	word := strings.ToUpper(v.Word)
	if s.options.Color {
		const red, green, amber = "41;97", "42;30", "43;30" // black, on red white
		colors := map[words.VerdictMark]string{
			words.MarkSuccess: green, words.MarkOutage: amber, words.MarkInterrupted: amber,
		}
		word = "\x1b[1;" + cmp.Or(colors[v.Mark], red) + "m  " + word + "  \x1b[0m"
	}
	if len(v.Word)+len(v.After) > shortColumns-len("    ")-1 {
		return []string{word, v.After}
	}
	return []string{word + " " + v.After}
}

// ran says how long the load was, and of what.
func (s *Short) ran(sum *stats.Summary) string {
	text := sum.Outcome.Reason + " after " + span(time.Duration(sum.End-sum.Start)*time.Microsecond)
	if sum.Average.Span > 0 {
		text += " (" + span(sum.Average.Span) + " measured)"
	}
	text += ", " + s.run.Protocol
	if s.run.ConsumerProtocol != "" && s.run.ConsumerProtocol != s.run.Protocol {
		text += " to " + s.run.ConsumerProtocol
	}
	return text + " " + words.First(s.run.Destinations, shownDestinations, ", ")
}

// verified says what became of the messages of a verification.
func verified(r *verify.Result) string {
	t := &r.Total
	text := fmt.Sprintf("%d duplicated, %d damaged", t.Duplicates, t.Damaged)
	if !r.Known {
		return fmt.Sprintf("%d received once: %s; lost unknown", t.Once, text)
	}
	return fmt.Sprintf("%d of %d received once: %d lost, %s", t.Once, t.Expected, t.Lost, text)
}

// said returns the sentences about the run, the most important first, in at most that many lines but for
// failures.
func (s *Short) said(sum *stats.Summary, room int) (lines []string) {
	left := 0     // sentences without a place
	must := false // a failure always has its place: nothing else on a terminal says it
	add := func(label string, texts ...string) {
		for _, text := range texts {
			wrapped := words.Wrap(oneLine(text), shortColumns-labelColumn)
			if !must && (left > 0 || len(lines)+len(wrapped) >= room) {
				left++
				continue
			}
			head := label
			for _, line := range wrapped {
				lines = append(lines, fmt.Sprintf("%-*s%s", labelColumn, head, line))
				head = ""
			}
		}
	}
	add("run", s.ran(sum))
	if sum.Limit != nil {
		add("limit", words.Limit(sum.Limit))
	}
	if v := sum.Verified; v != nil && len(v.Scopes) > 0 {
		add("verified", verified(v))
	}
	must = true
	for _, f := range sum.Findings {
		if f.Severity == result.Problem {
			add("problem", f.Text)
			if f.Hint != "" {
				add("hint", f.Hint)
			}
		}
	}
	for _, kept := range []bool{false, true} {
		for _, t := range sum.Thresholds {
			if t.Kept == kept {
				must = !kept
				add("threshold", t.String())
			}
		}
	}
	must = false
	add("outage", outageLines(sum)...)
	add("warning", sum.Warnings()...)
	add("finding", sum.Notes()...)
	add("left", sum.Outcome.LeftBehind...)
	add("perfmq", tester(sum))
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and       %d more: see --format artemis, --json or --result", left))
	}
	return lines
}

// tester names what perfmq used itself, and the broker.
func tester(sum *stats.Summary) string {
	cores, of := coresUsed(&sum.Tester)
	text := cores + of
	if sum.Tester.MemoryPeak > 0 {
		text += ", " + words.Megabytes(float64(sum.Tester.MemoryPeak)) + " MB"
	}
	if len(sum.Brokers) > 0 {
		text += "; broker: " + strings.TrimSpace(sum.Brokers[0].Product+" "+sum.Brokers[0].Version)
	}
	return text
}

// averageRate returns the rate of n messages, or - without a measured part.
func averageRate(a *stats.Average, n uint64) string {
	if a.Span <= 0 {
		return "-"
	}
	return words.Short(a.PerSecond(n)) + "/s"
}

// table returns the figures.
func (s *Short) table(sum *stats.Summary) []string {
	const columns = "%-10s%12s%10s%12s%12s%12s"
	var lines []string
	if s.run.Producing || s.run.Consuming {
		lines = []string{"", fmt.Sprintf(columns, "", "average", "total", "payload", "lowest", "highest")}
	}
	a := &sum.Average
	extreme := func(l *result.Extreme) string {
		if !l.Known() {
			return ""
		}
		return words.Short(l.PerSecond) + "/s"
	}
	row := func(name string, n, total, bytes uint64, low, high *result.Extreme) {
		payload := ""
		if a.Span > 0 {
			payload = words.Megabytes(a.PerSecond(bytes)) + " MB/s"
		}
		lines = append(lines, fmt.Sprintf(columns, name, averageRate(a, n), words.Short(float64(total)), payload,
			extreme(low), extreme(high)))
	}
	if s.run.Producing {
		lines = append(lines, fmt.Sprintf("%-10s%12s%10s%s", "sent", averageRate(a, a.Sent),
			words.Short(float64(sum.Total.Get(result.Sent))), offered(&sum.Offered)))
		row("completed", a.Completed, sum.Total.Get(result.Completed), a.CompletedBytes, &sum.Minimum.Completed,
			&sum.Maximum.Completed)
	}
	if s.run.Consuming {
		row("received", a.Received, sum.Total.Get(result.Received), a.ReceivedBytes, &sum.Minimum.Received,
			&sum.Maximum.Received)
	}
	if s.run.Opening {
		lines = append(lines, "")
		list := words.Openings(&sum.Total)
		if sum.Live != nil {
			list = append(list, words.Opening{Name: "most live", Note: "at the end of a second", N: *sum.Live})
		}
		for _, o := range list {
			lines = append(lines, fmt.Sprintf("%-10s%22s  %s", o.Name, words.Short(float64(o.N)), o.Note))
		}
	}
	return append(lines, shortLatencies(&sum.Latencies, s.run.Opening)...)
}

// mostBars is the maximum number of bars of a histogram, leastBars the minimum.
const (
	mostBars  = 6
	leastBars = 3
)

// histogram draws a latency after an empty line: a bar for each part of its range, with the upper end of that. The
// quotient of two ends is constant. It is nil if there is no room, or too little to show.
func histogram(name string, l *result.Latency, rows int) []string {
	low, high := float64(max(l.Percentile(0), 1)), float64(l.Max)
	if rows < leastBars || l.Histogram == nil || high < 2*low {
		return nil
	}
	var ends, counts []int64
	for i := range rows {
		end := low * math.Pow(high/low, float64(i+1)/float64(rows))
		digit := math.Pow(10, max(0, math.Floor(math.Log10(end))-1)) // two digits, as shown
		ends = append(ends, int64(math.Round(end/digit)*digit))
	}
	ends[rows-1], counts = l.Max, make([]int64, rows)
	i, most := 0, int64(0)
	for _, b := range l.Histogram.Bars() {
		for i < rows-1 && b.UpTo > ends[i] {
			i++
		}
		counts[i] += b.Count
		most = max(most, counts[i])
	}
	lines := []string{""}
	for i, n := range counts {
		const width = 46
		drawn := bar(float64(n)/float64(most), width)
		share := words.Percent(float64(n) / float64(l.Count))
		lines = append(lines, fmt.Sprintf("%-*s%9s  %-*s%9s", labelColumn, name, words.Duration(ends[i]), width, drawn,
			share))
		name = ""
	}
	return lines
}

// shortLatencies returns a table of the latencies.
func shortLatencies(l *result.Latencies, stages bool) (lines []string) {
	for _, k := range result.Kinds() {
		of := l[k.Kind]
		if of == nil || of.Count == 0 || k.Stage && !stages {
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
