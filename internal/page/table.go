package page

import (
	"fmt"
	"slices"
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
}

// Columns are some columns under a common name.
type Columns struct {
	Name string
	Span int
}

// messages is the main table of a report: counts, rates and latencies of the messages sent and received.
func messages(runs []*Run) Table {
	t := Table{
		Title: "Messages",
		Note: "Rates are messages per second of the measured time, minimum and maximum those of a full second, of " +
			"receiving from the first message on. RT is the time from the send to the " +
			"broker's answer, transfer that from the send to the consumer, both in ms.",
		Head: []string{
			"run", "elapsed s", "total", "succeeded", "failed", "average/s", "min/s", "max/s", "average RT", "max RT",
			"total", "average/s", "min/s", "max/s", "average transfer", "max transfer",
		},
		Groups: []Columns{{"", 2}, {"Send", 8}, {"Receive", 6}},
	}
	for _, r := range runs {
		for _, l := range r.lines() {
			t.Rows = append(t.Rows, l.cells())
		}
	}
	return t
}

func (l *line) cells() []string {
	name := l.run
	if l.step != "" {
		name = "· " + l.step
	}
	row := []string{name, seconds(l.elapsed)}
	if sent, succeeded, lost, known := l.produced(); known {
		row = append(row, count(sent), count(succeeded), count(lost))
	} else {
		row = append(row, "-", "-", "-")
	}
	row = append(row, rateCells(l.completed, l.bestCompleted)...)
	row = append(row, timeCells(l.latencies[result.Ack])...)
	if received, known := l.consumed(); known {
		row = append(row, count(received))
	} else {
		row = append(row, "-")
	}
	row = append(row, rateCells(l.received, l.bestReceived)...)
	return append(row, timeCells(l.latencies[result.Transfer])...)
}

// rateCells are an average, a minimum and a maximum.
func rateCells(average *float64, best *extent) []string {
	cells := []string{"-", "-", "-"}
	if average != nil {
		cells[0] = number(*average)
	}
	if best != nil {
		cells[1], cells[2] = number(best.low), number(best.high)
	}
	return cells
}

// timeCells are an average and a maximum.
func timeCells(l *result.Latency) []string {
	if l == nil || l.Count == 0 {
		return []string{"-", "-"}
	}
	return []string{ms(l.Mean()), ms(float64(l.Max))}
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
			if leftOut > 0 {
				title += fmt.Sprintf(" (%s below 0 left out)", count(leftOut))
			}
			if len(runs) > 1 {
				title = r.Name + " · " + title
			}
			if l == nil || l.Count == 0 {
				if leftOut > 0 {
					t.Rows = append(t.Rows, []string{title, "0", "-", "-", "-", "-", "-", "-", "-"})
				}
				continue
			}
			row := []string{title, count(uint64(l.Count)), ms(l.Mean())} //nolint:gosec // not negative: it was read
			if p := l.Percentiles; p != nil {
				row = append(row, ms(float64(p.P50)), ms(float64(p.P90)), ms(float64(p.P99)), ms(float64(p.P999)),
					ms(float64(p.P9999)))
			} else {
				row = append(row, "-", "-", "-", "-", "-")
			}
			t.Rows = append(t.Rows, append(row, ms(float64(l.Max))))
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
