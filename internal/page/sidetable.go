package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/pkg/result"
)

// sideTable has the use of the brokers and their hosts from the start of the load to the end of the run.
func sideTable(r *Run) Table {
	t := Table{
		Title: "The broker's side", Head: []string{"", "from the start of the load to the end of the run"}, Words: true,
	}
	for i := range r.Result.BrokerSide {
		s := &r.Result.BrokerSide[i]
		list := append([]Fact{{"watched", strings.Join(s.Sources, ", ")}}, sideProcess(s)...)
		list = append(append(list, sideHost(&s.Whole)...), sideTexts(s)...)
		for _, f := range list {
			if s.Host != "" {
				f.Name = s.Host + ": " + f.Name
			}
			t.Rows = append(t.Rows, []string{f.Name, f.Value})
		}
	}
	return t
}

func sideProcess(s *result.BrokerSide) (list []Fact) {
	u := &s.Whole
	if u.CPU != nil && u.CPUSpan > 0 {
		text := cores(int64(*u.CPU), u.CPUSpan) + " cores on average"
		if s.CPUMost != nil {
			text += fmt.Sprintf(", %.2f in the highest interval", *s.CPUMost)
		}
		list = append(list, Fact{"processor time", text})
	}
	if u.Memory != nil {
		list = append(list, Fact{"memory", megabytes(*u.Memory) + " MB at most"})
	}
	if u.Heap != nil {
		list = append(list, Fact{"heap", megabytes(*u.Heap) + " MB at most"})
	}
	if u.Collections != nil {
		text := count(*u.Collections)
		if u.CollectionTime != nil {
			text += " in " + span(int64(*u.CollectionTime))
		}
		list = append(list, Fact{"garbage collections", text})
	}
	if u.Threads != nil {
		list = append(list, Fact{"threads", count(*u.Threads) + " at most"})
	}
	if u.Files != nil {
		list = append(list, Fact{"open files", count(*u.Files) + " at most"})
	}
	return list
}

func sideHost(u *result.BrokerUse) (list []Fact) {
	if u.Load != nil {
		list = append(list, Fact{"load average", fmt.Sprintf("%.2f at most", *u.Load)})
	}
	if u.DiskBusy != nil {
		list = append(list, Fact{"busiest disk", fmt.Sprintf("%.1f%% busy in the highest interval", 100**u.DiskBusy)})
	}
	for _, bytes := range []struct {
		name string
		n    *uint64
	}{
		{"disk read", u.DiskRead},
		{"disk written", u.DiskWritten},
		{"network in", u.NetIn},
		{"network out", u.NetOut},
		{"loopback", u.Loopback},
	} {
		if bytes.n != nil && u.Span > 0 {
			list = append(list, Fact{bytes.name, number(float64(*bytes.n)/float64(u.Span)) + " MB/s on average"})
		}
	}
	return list
}

// sideTexts returns facts about the log, the chosen series, events and notes.
func sideTexts(s *result.BrokerSide) (list []Fact) {
	add := func(name, value string) { list = append(list, Fact{name, value}) }
	for _, lines := range []struct {
		name  string
		n     *uint64
		first string
	}{{"errors in the log", s.Whole.Errors, s.FirstError}, {"warnings in the log", s.Whole.Warnings, s.FirstWarning}} {
		if lines.n == nil {
			continue
		}
		text := count(*lines.n)
		if lines.first != "" {
			text += ", the first: " + lines.first
		}
		add(lines.name, text)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Whole.Series)) {
		add(name, fmt.Sprintf("%g at the end (%g to %g)", s.Whole.Series[name], s.Lowest[name], s.Highest[name]))
	}
	for i := range s.Events {
		add("event", moment(s.Events[i].Time)+": "+s.Events[i].Text)
	}
	for _, note := range s.Notes {
		add("note", note)
	}
	return list
}

// marksTable has the rates at the marks of a run.
func marksTable(r *Run) Table {
	t := Table{
		Title: "Marks",
		Note: "After how long so many messages were completed, or received, the average rate up to then, and that of that " +
			"second, in messages per second.",
		Head: []string{"messages", "", "after", "average/s", "momentary/s"},
	}
	loaded := slices.ContainsFunc(r.Result.Marks, func(m result.Mark) bool {
		return m.BrokerLoad != nil || m.BrokerCPU != nil
	})
	if loaded {
		t.Head = append(t.Head, "load average", "broker cores")
		t.Note += " Load average is that of the broker's host, broker cores those that the broker used."
	}
	for i := range r.Result.Marks {
		m := &r.Result.Marks[i]
		name := count(m.Messages)
		if len(r.Result.Steps) > 1 {
			name = m.Step + ": " + name
		}
		if m.Host != "" {
			name = m.Host + ": " + name
		}
		row := []string{name, m.Of, span(m.Elapsed), number(m.Average), number(m.Momentary)}
		if loaded {
			row = append(row, numberOf(m.BrokerLoad), numberOf(m.BrokerCPU))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// numberOf writes a value; "-" if it is not known.
func numberOf(v *float64) string {
	if v == nil {
		return "-"
	}
	return number(*v)
}

// events returns the events of the brokers' processes, such as restarts, for the charts.
func (r *Run) events() (list []stepAt) {
	for i := range r.Result.BrokerSide {
		for _, e := range r.Result.BrokerSide[i].Events {
			if len(list) == maxItems {
				return list
			}
			list = append(list, stepAt{e.Text, millis(e.Time - r.Result.Start)})
		}
	}
	return list
}
