package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Widths of the console's columns, as in `artemis perf`.
const (
	rateLabel     = 14 // "--- completed:"
	totalColumn   = 32 // the last column of totals: a label of 20, "--- total completed:", and a number of 12
	intervalLabel = 20 // "--- send delay time:"
	summaryLabel  = 31 // "--- aggregated delay send time:"
)

// shownDestinations is the maximum number of destinations in a line of a console.
const shownDestinations = 4

// shortest is the minimum length of an interval with a block of its own.
const shortest = 100 * time.Millisecond

// ConsoleOptions are the settings of a [Console].
type ConsoleOptions struct {
	// URL is printed before the load begins; it must not hold a password. Empty prints nothing.
	URL string
	// ShowLatency adds the latencies to each interval's block, or line; the summary always has them.
	ShowLatency bool

	// The others are of a [Short] alone. Terminal: a line can be overwritten. Columns returns the width of the
	// terminal; nil, or a result of 0, if it is unknown.
	Terminal bool
	Columns  func() int
	// Color prints the verdict in color, Lines a line for each interval instead of overwriting one; ASCII draws without
	// other characters.
	Color, Lines, ASCII bool
	// Length is the length of the load; 0 if it is unknown.
	Length time.Duration
}

// Console prints a block each second and a summary at the end, in the format of `artemis perf` without its spaces at
// line ends. In the summary, lines that only perfmq has follow the lines of `artemis perf`. A silent run has no
// Console.
//
// Rates are messages per second of real time, rounded to nearest; latencies are microseconds, "-" without a value.
// Blocks of the drain say "warmup false". A block has a line "foreign" only if messages of other runs arrived.
type Console struct {
	out     io.Writer
	options ConsoleOptions
	run     stats.Run
	short   *stats.Snapshot // an interval too short for a block; nil if there is none
	step    string          // the step named last
}

// NewConsole returns a console that prints to out, one write per block.
func NewConsole(out io.Writer, options ConsoleOptions) *Console {
	return &Console{out: out, options: options}
}

// Start prints the broker's URL.
func (c *Console) Start(run stats.Run) error {
	c.run = run
	if c.options.URL == "" {
		return nil
	}
	return c.print("Connection brokerURL = " + c.options.URL + "\n")
}

// Interval prints a block. An interval below shortest, at the end of a phase, is joined with the next one, because a
// rate over a few milliseconds says nothing. Intervals of the warm-up and of different steps are never joined.
func (c *Console) Interval(s *stats.Snapshot) error {
	switch {
	case c.short == nil:
	case c.short.Step == s.Step:
		s = c.short.Join(s)
		c.short = nil
	default:
		if err := c.remains(); err != nil {
			return err
		}
	}
	if s.To.Sub(s.From) < shortest && s.Phase != result.Warmup && s.Lost == "" {
		if s.Values() != [result.NumCounters]uint64{} { // not openings alone
			c.short = s
		}
		return nil
	}
	return c.block(s)
}

// remains prints the interval that was too short for a block and has no successor in its step.
func (c *Console) remains() error {
	short := c.short
	c.short = nil
	if short == nil {
		return nil
	}
	return c.block(short)
}

func (c *Console) block(s *stats.Snapshot) error {
	var b strings.Builder
	if c.run.Several() && s.Step != c.step {
		c.step = s.Step
		fmt.Fprintf(&b, "\n--- STEP %s\n", oneLine(s.Step))
	}
	fmt.Fprintf(&b, "\n--- warmup %t\n", s.Phase == result.Warmup)
	line := func(label string, delta uint64) {
		fmt.Fprintf(&b, "%-*s %8d msg/sec\n", rateLabel, label, rate(delta, s.To.Sub(s.From)))
	}
	if c.run.Producing {
		line("--- sent:", s.Get(result.Sent))
		line("--- blocked:", s.Get(result.Blocked))
		line("--- completed:", s.Get(result.Completed))
	}
	if c.run.Consuming {
		line("--- received:", s.Get(result.Received))
		if s.Get(result.Foreign) > 0 { // otherwise the consumers would seem idle
			line("--- foreign:", s.Get(result.Foreign))
		}
	}
	if c.run.Opening {
		fmt.Fprintf(&b, "%-*s %8d connections\n", rateLabel, "--- live:", s.Live)
		for _, o := range words.Openings(&s.Counts) {
			fmt.Fprintf(&b, "%-*s %8d conn/sec\n", rateLabel, "--- "+o.Name+":", rate(o.N, s.To.Sub(s.From)))
		}
		writeLatency(&b, intervalLabel, "--- open time:", s.Latencies[result.Open])
	}
	if c.options.ShowLatency {
		writeLatency(&b, intervalLabel, "--- send delay time:", s.Latencies[result.Delay])
		writeLatency(&b, intervalLabel, "--- send ack time:", s.Latencies[result.Ack])
		writeLatency(&b, intervalLabel, "--- transfer time:", s.Latencies[result.Transfer])
	}
	for _, line := range [][2]string{{"--- outage:", outageNow(s.Outage)}, {"--- lost:", oneLine(s.Lost)}} {
		if line[1] != "" {
			fmt.Fprintf(&b, "%-*s %s\n", rateLabel, line[0], line[1])
		}
	}
	return c.print(b.String())
}

// Summary prints the totals of the run. Of the lines that only perfmq has, these are always printed: rejected, released
// and failed sends, missing messages (if the number is known), why the run stopped, and perfmq's own health. The
// lowest rates of a second need three full measured seconds; b2c and s2c times and the protocol's own counters need a
// protocol that has them. All other lines are printed only if they are not zero. Each of several steps has a block of
// its own. Thresholds, warnings and problems are at the end, because they are read first.
func (c *Console) Summary(s *stats.Summary) error {
	if err := c.remains(); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\n--- SUMMARY\n")
	writeText(&b, "result", outcomeOf(s), "")
	if c.run.Producing {
		writeTotal(&b, "total sent", s.Total.Get(result.Sent), "")
		writeTotal(&b, "total blocked", s.Total.Get(result.Blocked), "")
		writeTotal(&b, "total completed", s.Total.Get(result.Completed), "")
	}
	if c.run.Consuming {
		writeTotal(&b, "total received", s.Total.Get(result.Received), "")
	}
	if c.run.Opening {
		writeOpenings(&b, "total ", s)
	}
	writeLatencies(&b, "--- aggregated ", &s.Latencies, true, c.run.Opening)
	c.writePeaks(&b, "minimum ", &s.Minimum)
	c.writeLosses(&b, s)
	if s.Verified != nil {
		writeVerification(&b, s.Verified)
	}
	for _, own := range s.Counters {
		writeTotal(&b, oneLine(own.Name), own.Value, "")
	}
	if len(c.run.Destinations) > 0 {
		writeList(&b, "--- destinations:", []string{words.First(c.run.Destinations, shownDestinations, ", ")})
	}
	writeBrokers(&b, s.Brokers)
	writeBrokerCount(&b, s.BrokerCount)
	c.writeTester(&b, s)
	c.writeNumbers(&b, s)
	for _, name := range slices.Sorted(maps.Keys(c.run.Labels)) {
		b.WriteString(strings.TrimRight("--- label "+oneLine(name)+": "+oneLine(c.run.Labels[name]), " ") + "\n")
	}
	if len(s.Ended) == 0 {
		writeGroups(&b, s.Groups)
	}
	for i := range s.Ended {
		writeStep(&b, &s.Ended[i])
	}
	var rest strings.Builder
	writeCommands(&rest, s.Commands)
	for i := range s.Marks {
		writeList(&rest, "--- mark:", []string{words.Mark(&s.Marks[i], len(s.Ended) > 0)})
	}
	for i := range s.Thresholds {
		writeList(&rest, "--- threshold:", []string{s.Thresholds[i].String()})
	}
	writeList(&rest, "--- left behind:", s.Outcome.LeftBehind)
	writeList(&rest, "--- outage:", outageLines(s))
	writeList(&rest, "--- finding:", s.Notes())
	writeList(&rest, "--- warning:", s.Warnings())
	writeList(&rest, "--- problem:", s.Problems())
	if len(s.Ended) > 0 && rest.Len() > 0 {
		b.WriteString("\n") // separates the totals from the last step
	}
	return c.print(b.String() + rest.String())
}

// Close does nothing: the console belongs to the caller.
func (c *Console) Close() error { return nil }

func (c *Console) print(text string) error {
	if _, err := io.WriteString(c.out, text); err != nil {
		return driver.Errorf(driver.ClassOther, "print to the console",
			"look at where standard output goes, or give --silent", "%w; nothing more was printed there", err)
	}
	return nil
}

// writeOpenings writes the connections of groups that open them as their load.
func writeOpenings(b *strings.Builder, label string, s *stats.Summary) {
	for _, o := range words.Openings(&s.Total) {
		writeTotal(b, label+o.Name, o.N, o.Note)
	}
	if s.Live != nil {
		writeTotal(b, "most live", *s.Live, "connections open at the end of a second")
	}
	if c := s.Total.Connections; c != nil && len(c.Failures) > 0 {
		writeText(b, label+"failures", failureText(c.Failures), "")
	}
}

// writeLosses writes the sends that were not accepted and the messages that were not received.
func (c *Console) writeLosses(b *strings.Builder, s *stats.Summary) {
	t := s.Total.Values()
	unlessZero := func(label string, n uint64, note string) {
		if n > 0 {
			writeTotal(b, label, n, note)
		}
	}
	if c.run.Producing {
		for _, f := range failuresOf(&s.Total) {
			if f.count > 0 || f.name != "unconfirmed" && f.name != "modified" {
				writeTotal(b, "total "+f.name, f.count, failureText(f.classes))
			}
		}
		unlessZero("credit waits", t[result.NoLeave], "part of blocked: the broker gave no credit")
		unlessZero("socket waits", t[result.SocketWaits], "not part of blocked: the network took no more")
		unlessZero("total unsent", t[result.Unsent], "part of failed: they could not be sent")
		unlessZero("total resent", t[result.Resent], "messages in doubt that were sent again; not part of sent")
		if c.run.Requests {
			writeTotal(b, "total replies", t[result.Replies], "")
		}
		unlessZero("total timed out", t[result.TimedOut], "requests without a reply in time")
		unlessZero("late replies", t[result.LateReplies], "to requests that had timed out; not part of replies")
		unlessZero("duplicate replies", t[result.DuplicateReplies], "to requests that had one; not part of replies")
		unlessZero("foreign replies", t[result.ForeignReplies], "to requests of others")
		unlessZero("uncorrelated replies", t[result.UncorrelatedReplies], "without the correlation ID of a request")
	}
	unlessZero("total commits", t[result.Commits], "transactions that the broker confirmed")
	unlessZero("commits failed", t[result.CommitsFailed], "transactions that it did not confirm")
	if s.Missing != nil {
		note := ""
		if *s.Missing > 0 {
			note = fmt.Sprintf("sent but not received, of %d expected", *s.Expected)
		}
		writeTotal(b, "total missing", *s.Missing, note)
	}
	if c.run.Consuming {
		unlessZero("total redelivered", t[result.Redelivered], "")
		unlessZero("consumer released", t[result.ConsumerReleased],
			"given back on purpose, to come again; not counted as received")
		unlessZero("consumer rejected", t[result.ConsumerRejected], "rejected on purpose; counted as received")
		unlessZero("total foreign", t[result.Foreign], "sent by others, not counted as received")
		unlessZero("total unstamped", t[result.Unstamped], "no time property, not in the transfer time")
		unlessZero("total delayed", t[result.Delayed], "held back as asked for; their transfer time includes that")
		unlessZero("total early", t[result.Early], "before their delay was over; not in the lateness")
		if c.run.Responds {
			writeTotal(b, "total answered", t[result.Answered], "")
		}
		unlessZero("total unanswered", t[result.UnansweredRequests], "the broker did not confirm their replies")
		unlessZero("total unanswerable", t[result.Unanswerable], "without an address for a reply")
		unlessZero("transfers below 0", t[result.NegativeTransfers],
			"received before sent, in no transfer time: clocks differ")
	}
	unlessZero("ages below 0", t[result.NegativeAges],
		"b2c, s2c: received before born or stored, in no such time: clocks differ")
	unlessZero("total off scale", t[result.OutOfRange],
		"latency above "+stats.MaxLatency.String()+", counted as that")
}

// writeTester writes why the run stopped, and perfmq's own health.
func (c *Console) writeTester(b *strings.Builder, s *stats.Summary) {
	if clients := c.clients(); clients != "" {
		writeText(b, "client", clients, "")
	}
	writeText(b, "stopped", oneLine(s.Outcome.Reason), "")
	h := &s.Tester
	cores, of := coresUsed(h)
	writeText(b, "tester cpu", cores, of)
	if c.run.Producing {
		note := ""
		late, sent := s.Total.Get(result.LateSends), s.Total.Get(result.Sent)
		if late > 0 && sent > 0 {
			note = fmt.Sprintf("%.2f %% of sent", 100*float64(late)/float64(sent))
		}
		writeTotal(b, "tester late sends", late, note)
	}
	if h.Pauses > 0 {
		writeText(b, "tester paused", fmt.Sprintf("%d.00", h.PauseMax),
			fmt.Sprintf(" us (longest of %d; latencies of %d sends and receipts include that)", h.Pauses,
				s.Total.Get(result.Paused)))
	}
	for i, us := range []int64{h.ClockForward, h.ClockBackward} {
		if us > 0 {
			writeText(b, "tester clock step", fmt.Sprintf("%d.00", us), [...]string{" us forward", " us backward"}[i])
		}
	}
	writeLimit(b, s.Limit)
}

// writeLimit writes what bounded the rate, if that was judged.
func writeLimit(b *strings.Builder, l *result.Limit) {
	if l != nil {
		writeList(b, "--- limit:", []string{words.Limit(l)})
	}
}

// clients names the client libraries of the run; empty if there are none, which is the usual case.
func (c *Console) clients() string {
	var names []string
	for _, name := range []string{c.run.Client, c.run.ConsumerClient} {
		if name != "" && name != driver.Native && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// writeTotal writes a number in the column of totals, and a note in brackets if there is one. A label longer than
// in `artemis perf` reduces the number's padding, so that all numbers end in one column.
func writeTotal(b *strings.Builder, label string, n uint64, note string) {
	if note != "" {
		note = " (" + note + ")"
	}
	writeText(b, label, fmt.Sprint(n), note)
}

// writeText writes a text that ends in the column of totals if it is short enough, and then after.
func writeText(b *strings.Builder, label, text, after string) {
	label = "--- " + label + ":"
	fmt.Fprintf(b, "%s %*s%s\n", label, max(0, totalColumn-len(label)-1), text, after)
}

// maxListed is the maximum number of items of a list on the console. JSON has them all.
const maxListed = 100

func writeList(b *strings.Builder, label string, texts []string) {
	for i, text := range texts {
		if i == maxListed {
			fmt.Fprintf(b, "%s and %d more\n", label, len(texts)-i)
			return
		}
		fmt.Fprintf(b, "%s %s\n", label, oneLine(text))
	}
}

// writeLatencies writes all distributions with values. With empty, it also writes those without that each run of its
// kind measures: "-" is then their value. With stages, it writes those of openings.
func writeLatencies(b *strings.Builder, label string, l *result.Latencies, empty, stages bool) {
	for _, k := range printed() {
		if of := l[k.Kind]; of != nil && (!k.Stage || stages) && (of.Count > 0 || empty && k.Always) {
			writeLatency(b, summaryLabel, label+k.Label+":", of)
		}
	}
}

// writeLatency writes a distribution, or nothing if it was not measured.
func writeLatency(b *strings.Builder, width int, label string, l *result.Latency) {
	if l == nil {
		return
	}
	number := func(us float64) string {
		if l.Count == 0 {
			return "-" // 0 would be the best latency of all
		}
		return fmt.Sprintf("%.2f", us)
	}
	fmt.Fprintf(b, "%-*s mean: %9s us", width, label, number(l.Mean()))
	for _, p := range [...]float64{50, 90, 99, 99.9, 99.99} {
		fmt.Fprintf(b, " - %.2f%%: %9s us", p, number(float64(l.Percentile(p))))
	}
	fmt.Fprintf(b, " - max:    %9s us\n", number(float64(l.Max)))
}

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
	if s.Total.Connections != nil {
		writeOpenings(b, "step ", s)
	}
	writeLatencies(b, "--- step ", &s.Latencies, false, s.Total.Connections != nil)
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
