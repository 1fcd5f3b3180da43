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
		list := append([]Fact{{"watched", strings.Join(s.Sources, ", ")}}, sideUse(&s.Whole)...)
		list = append(list, sideTexts(s)...)
		for _, f := range list {
			if s.Host != "" {
				f.Name = s.Host + ": " + f.Name
			}
			t.Rows = append(t.Rows, []string{f.Name, f.Value})
		}
	}
	return t
}

// sideUse returns the figures of the charts over the whole run: averages of flows, the highest of states.
func sideUse(u *result.BrokerUse) (list []Fact) {
	for _, f := range figures() {
		if !strings.HasPrefix(f.chart, "side-") || strings.HasSuffix(f.name, "in the log") {
			continue
		}
		v, known := f.of(&result.Row{BrokerSide: u})
		if !known {
			continue
		}
		text := strings.TrimSpace(number(v.drawn())+" "+f.unit) + " at most"
		if v.time > 0 {
			text = number(v.drawn()) + " " + f.unit + " on average"
		}
		list = append(list, Fact{f.name, text})
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
			"second, in messages per second. Load average is that of the broker's host, broker cores are those it used.",
		Head: []string{"messages", "", "after", "average/s", "momentary/s", "load average", "broker cores"},
	}
	list := r.Result.Marks
	return listed(t, list, uint64(len(list)), func(m *result.Mark) []string {
		name := count(m.Messages)
		if len(r.Result.Steps) > 1 {
			name = m.Step + ": " + name
		}
		if m.Host != "" {
			name = m.Host + ": " + name
		}
		return []string{
			name, m.Of, span(m.Elapsed), number(m.Average), number(m.Momentary), numberOf(m.BrokerLoad), numberOf(m.BrokerCPU),
		}
	})
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
