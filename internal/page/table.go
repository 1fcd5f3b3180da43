package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/pkg/result"
)

// Table is a table of texts. The first cell of a row names it.
type Table struct {
	Title, Note string
	// Groups are the names above the columns, each over some of them; empty for a simple table.
	Groups []Columns
	Head   []string
	Rows   [][]string
	// Words means that the columns are texts, not numbers.
	Words bool
	// Shades are 0 (worst) to 6 (best) for each cell; nil without colours.
	Shades [][]int
}

// Columns are some columns under a common name.
type Columns struct {
	Name string
	Span int
}

// column is a column of the table of messages, of CSV, or of both; where it has no name it is not there.
type column struct {
	head, csv, unit string
	of              func(*line) *float64 // nil if it is not known; of the unit ms in microseconds
}

// columns returns the columns of numbers. Those of the table are first, in its order.
func columns() []column {
	known := func(v float64, is bool) *float64 {
		if !is {
			return nil
		}
		return &v
	}
	low := func(e *extent) *float64 {
		if e == nil {
			return nil
		}
		return &e.low
	}
	high := func(e *extent) *float64 {
		if e == nil {
			return nil
		}
		return &e.high
	}
	latency := func(name string) func(*line) *float64 {
		return func(l *line) *float64 {
			v, is := l.metrics()[name]
			return known(v, is)
		}
	}
	produced := func(of func(*result.Producers) uint64) func(*line) *float64 {
		return func(l *line) *float64 {
			if p := l.producers(); p != nil {
				return known(float64(of(p)), true)
			}
			return nil
		}
	}
	list := []column{
		{"elapsed s", "elapsed_s", "s", func(l *line) *float64 { return known(float64(l.elapsed)/1e6, true) }},
		{"total", "sent", "", produced(func(p *result.Producers) uint64 { return p.Sent })},
		{"succeeded", "completed", "", produced(func(p *result.Producers) uint64 { return p.Completed })},
		{"failed", "failed", "", produced(failed)},
		{"average/s", "completed_avg", "/s", func(l *line) *float64 { return l.completed }},
		{"min/s", "completed_min", "/s", func(l *line) *float64 { return low(l.bestCompleted) }},
		{"max/s", "completed_max", "/s", func(l *line) *float64 { return high(l.bestCompleted) }},
		{"average RT", "", "ms", latency("ack.mean")},
		{"max RT", "", "ms", latency("ack.max")},
		{"total", "received", "", func(l *line) *float64 {
			n, is := l.consumed()
			return known(float64(n), is)
		}},
		{"average/s", "received_avg", "/s", func(l *line) *float64 { return l.received }},
		{"min/s", "received_min", "/s", func(l *line) *float64 { return low(l.bestReceived) }},
		{"max/s", "received_max", "/s", func(l *line) *float64 { return high(l.bestReceived) }},
		{"average transfer", "", "ms", latency("transfer.mean")},
		{"max transfer", "", "ms", latency("transfer.max")},
	}
	for _, kind := range result.KindNames() {
		for _, s := range result.Statistics() {
			list = append(list, column{"", kind + "_" + s.Name + "_ms", "ms", latency(kind + "." + s.Name)})
		}
	}
	tester := func(of func(t *result.Tester, l *line) *float64) func(*line) *float64 {
		return func(l *line) *float64 {
			if l.step != "" {
				return nil
			}
			return of(&l.result.Tester, l)
		}
	}
	return append(list,
		column{"", "tester_cpu_percent", "%", tester(func(t *result.Tester, l *line) *float64 {
			return known(100*float64(t.CPU)/float64(max(1, l.elapsed)), true)
		})},
		column{"", "tester_memory_bytes", "", tester(func(t *result.Tester, _ *line) *float64 {
			return known(float64(max(t.Memory, t.MemoryPeak)), true)
		})},
		column{"", "machine_percent", "%", tester(func(t *result.Tester, _ *line) *float64 {
			return known(100*float64(t.MachineBusy)/float64(max(1, t.MachineAll)), t.MachineAll > 0)
		})})
}

// text is the cell of a line in the table.
func (c *column) text(l *line) string {
	v := c.of(l)
	switch {
	case v == nil:
		return "-"
	case c.unit == "ms":
		return ms(*v)
	case c.unit == "s":
		return fmt.Sprintf("%.2f", *v)
	}
	return number(*v)
}

// decimal is the cell of a line in CSV.
func (c *column) decimal(l *line) string {
	v := c.of(l)
	switch {
	case v == nil:
		return ""
	case c.unit == "":
		return strconv.FormatFloat(*v, 'f', 0, 64)
	case c.unit == "ms":
		return strconv.FormatFloat(*v/1e3, 'f', 3, 64)
	}
	return strconv.FormatFloat(*v, 'f', 3, 64)
}

// messages is the main table of a report: counts, rates and latencies of the messages sent and received.
func messages(runs []*Run) Table {
	t := Table{
		Title: "Messages",
		Note: "Rates are messages per second of the measured time, minimum and maximum those of a full second, of " +
			"receiving from the first message on. RT is the time from the send to the " +
			"broker's answer, transfer that from the send to the consumer, both in ms.",
		Head:   []string{"run"},
		Groups: []Columns{{"", 2}, {"Send", 8}, {"Receive", 6}},
	}
	shown := slices.DeleteFunc(columns(), func(c column) bool { return c.head == "" })
	for _, c := range shown {
		t.Head = append(t.Head, c.head)
	}
	for _, r := range runs {
		for _, l := range r.lines() {
			row := []string{l.run}
			if l.step != "" {
				row[0] = "· " + l.step
			}
			for i := range shown {
				row = append(row, shown[i].text(&l))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// latencyTable has the percentiles of all latencies.
func latencyTable(runs []*Run) Table {
	t := Table{
		Title: "Latencies",
		Note: "In ms, of the messages due after the warm-up. Delay: intended to actual send. Ack: send to the broker's " +
			"answer. Response: intended send " +
			"to the answer. Transfer: send to the consumer; times below zero are in none, as clocks differ.",
		Head: []string{"", "messages", "mean", "50%", "90%", "99%", "99.9%", "99.99%", "max"},
	}
	for _, r := range runs {
		for _, name := range result.KindNames() {
			l, title, leftOut := r.Result.Latencies.Get(name), name, r.leftOut(name)
			values := int64(0)
			if l != nil {
				values = l.Count
			}
			if values == 0 && leftOut == 0 {
				continue
			}
			if leftOut > 0 {
				title += fmt.Sprintf(" (%s below 0 left out)", count(leftOut))
			}
			if len(runs) > 1 {
				title = r.Name + " · " + title
			}
			var metrics []string
			for _, s := range result.Statistics() {
				metrics = append(metrics, name+"."+s.Name)
			}
			t.Rows = append(t.Rows, append([]string{title, number(float64(values))},
				latencyCells(&r.Result.Latencies, metrics...)...))
		}
	}
	return t
}

// leftOut returns how many values a latency lacks because they are below zero.
func (r *Run) leftOut(latency string) uint64 {
	if m := r.Result.Measured; m != nil {
		return m.LeftOut(latency)
	}
	return r.Result.Total.LeftOut(latency)
}

// testers has the use of perfmq's own machine.
func testers(runs []*Run) Table {
	t := Table{
		Title: "The tester",
		Note:  "Cores used are those of perfmq on average, of the cores that it may use; machine those of all programs.",
		Head:  []string{"run", "cores used", "cores", "memory MB", "machine", "pauses", "longest ms", "late sends"},
	}
	for _, r := range runs {
		x := &r.Result.Tester
		memory := "-"
		if peak := max(x.MemoryPeak, x.Memory); peak > 0 {
			memory = megabytes(peak)
		}
		late := "-"
		if p := r.Result.Total.Producers; p != nil {
			late = count(p.Late)
		}
		t.Rows = append(t.Rows, []string{
			r.Name, cores(x.CPU, r.Result.End-r.Result.Start), fmt.Sprint(x.Cores), memory,
			cores(x.MachineBusy, r.Result.End-r.Result.Start),
			count(x.Pauses), ms(float64(x.PauseMax)), late,
		})
	}
	return t
}

func thresholdTable(r *Run) Table {
	t := Table{Title: "Thresholds", Head: []string{"demand", "measured", "kept"}}
	for i := range r.Result.Thresholds {
		x := &r.Result.Thresholds[i]
		name, kept := x.Threshold, "no"
		if x.Step != "" {
			name = x.Step + ": " + name
		}
		if x.Kept {
			kept = "yes"
		}
		t.Rows = append(t.Rows, []string{name, measured(x), kept})
	}
	return t
}

// measured is the value that a demand was held against.
func measured(x *result.Threshold) string {
	switch {
	case x.Measured == nil:
		return "not measured"
	case x.Unit == "us":
		return span(int64(*x.Measured))
	default:
		return strings.TrimSpace(number(*x.Measured) + " " + x.Unit)
	}
}

func stallTable(r *Run) Table {
	t := Table{Title: "Stalls of the broker", Head: []string{"at", "length", "side", "by the clock"}}
	parts := slices.ContainsFunc(r.Result.Stalls, func(s result.Stall) bool { return s.Group != "" || s.Broker != "" })
	if parts {
		t.Head = append(t.Head, "broker", "group")
	}
	for i := range r.Result.Stalls {
		if i == maxListed {
			t.Note = fmt.Sprintf("The first %d of %d.", maxListed, uint64(len(r.Result.Stalls))+r.Result.MoreStalls)
			break
		}
		s := &r.Result.Stalls[i]
		row := []string{seconds(s.Elapsed) + " s", span(s.Length), s.Side, moment(s.Time)}
		if parts {
			row = append(row, s.Broker, s.Group)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func stallText(s *result.Stall) string {
	of := s.Side
	if s.Broker != "" {
		of += ", broker " + s.Broker
	}
	if s.Group != "" {
		of += ", group " + s.Group
	}
	return fmt.Sprintf("stall (%s): %s at %s s", of, span(s.Length), seconds(s.Elapsed))
}

func errorTable(r *Run) Table {
	t := Table{Title: "Failures by class", Head: []string{"class", "messages", "first"}, Words: true}
	for _, f := range r.Result.Errors {
		t.Rows = append(t.Rows, []string{f.Class, count(f.Count), strings.Join(f.Examples, "; ")})
	}
	return t
}

// verified has the outcomes of messages by subscription.
func verified(r *Run) Table {
	t := Table{
		Title: "Verification",
		Head:  []string{"", "expected", "received", "lost", "left", "duplicates", "out of order", "damaged", "foreign"},
	}
	v := r.Result.Verification
	if v == nil {
		return t
	}
	t.Note = strings.Join(v.Notes, " ")
	row := func(name string, known bool, c *result.Verified) {
		expected, lost, left := count(c.Expected), count(c.Lost), count(c.Left)
		if !known {
			expected, lost, left = "-", "-", "-"
		}
		t.Rows = append(t.Rows, []string{
			name, expected, count(c.Received), lost, left, count(c.Duplicates), count(c.Disordered), count(c.Damaged),
			count(c.Foreign),
		})
	}
	for i := range v.Subscriptions {
		s := &v.Subscriptions[i]
		name := s.Destination
		if s.Name != "" {
			name += " (" + s.Name + ")"
		}
		row(name, s.Known, &s.Verified)
	}
	if len(v.Subscriptions) != 1 {
		row("all", v.Known, &v.Total)
	}
	return t
}

// brokerCounts compares the brokers' own counts with those of the run.
func brokerCounts(r *Run) Table {
	t := Table{Title: "The broker's own count", Head: []string{
		"destination", "sent", "added", "", "received",
		"acknowledged", "", "depth at the end",
	}}
	b := r.Result.BrokerCount
	if b == nil {
		return t
	}
	t.Note = strings.Join(b.Notes, " ")
	compared := func(c *result.Compared) (string, string) {
		switch {
		case c == nil:
			return "-", "not known"
		case c.Count < c.Least || c.Count > c.Most:
			return count(c.Count), "differs"
		default:
			return count(c.Count), "agrees"
		}
	}
	for i := range b.Destinations {
		d := &b.Destinations[i]
		added, addedIs := compared(d.Added)
		acknowledged, acknowledgedIs := compared(d.Acknowledged)
		depth := "-"
		if d.Depth != nil {
			depth = count(*d.Depth)
		}
		t.Rows = append(t.Rows, []string{
			d.Destination, count(d.Sent), added, addedIs, count(d.Received), acknowledged,
			acknowledgedIs, depth,
		})
	}
	return t
}
