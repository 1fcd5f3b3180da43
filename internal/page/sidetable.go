package page

import (
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
		add := func(name, value string) {
			if s.Host != "" {
				name = s.Host + ": " + name
			}
			t.add(name, value)
		}
		add("watched", strings.Join(s.Sources, ", "))
		sideUse(&s.Whole, add)
		sideTexts(s, add)
	}
	return t
}

// sideUse adds the figures of the charts over the whole run: averages of flows, the highest of states.
func sideUse(u *result.BrokerUse, add func(name, value string)) {
	for _, f := range figures() {
		if !strings.HasPrefix(f.chart, "side-") || f.name == logErrors || f.name == logWarnings {
			continue
		}
		v, known := f.of(&result.Row{BrokerSide: u})
		switch {
		case !known:
		case v.time > 0:
			add(f.name, number(v.drawn())+" "+f.unit+" on average")
		default:
			add(f.name, strings.TrimSpace(number(v.drawn())+" "+f.unit)+" at most")
		}
	}
}

// sideTexts adds the log, events and notes.
func sideTexts(s *result.BrokerSide, add func(name, value string)) {
	lines := func(name string, n *uint64, first string) {
		if n == nil {
			return
		}
		text := count(*n)
		if first != "" {
			text += ", the first: " + first
		}
		add(name, text)
	}
	lines(logErrors, s.Whole.Errors, s.FirstError)
	lines(logWarnings, s.Whole.Warnings, s.FirstWarning)
	for i := range s.Events {
		add("event", moment(s.Events[i].Time)+": "+s.Events[i].Text)
	}
	for _, note := range s.Notes {
		add("note", note)
	}
}

// marksTable has the rates at the marks of a run.
func marksTable(r *Run) Table {
	t := Table{
		Title: "Marks",
		Note: "After how long so many messages were completed, or received, the average rate up to then, and that of that " +
			"second, in messages per second.",
		Head: []string{"messages", "", "after", "average/s", "momentary/s"},
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
		t.add(name, m.Of, span(m.Elapsed), number(m.Average), number(m.Momentary))
	}
	return t
}
