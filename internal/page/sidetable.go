package page

import (
	"strings"

	"github.com/perfmq/perfmq/internal/words"
)

// sideTable has the use of the brokers and their hosts from the start of the load to the end of the run.
func sideTable(r *Run) Table {
	t := Table{
		Title: "The broker's side", Head: []string{"", "from the start of the load to the end of the run"}, Words: true,
	}
	for _, s := range r.Result.BrokerSide {
		for _, line := range append([][2]string{{"watched", strings.Join(s.Sources, ", ")}}, words.Side(&s)...) {
			t.add(ofHost(s.Host, line[0]), line[1])
		}
	}
	return t
}

// marksTable has the rates at the marks of a run.
func marksTable(r *Run) Table {
	t := Table{Title: "Marks", Head: []string{"mark"}, Words: true}
	for _, m := range r.Result.Marks {
		t.add(ofHost(m.Host, words.Mark(&m, len(r.Result.Steps) > 1)))
	}
	return t
}

// ofHost puts the load host of a merged result before a text.
func ofHost(host, text string) string {
	if host == "" {
		return text
	}
	return host + ": " + text
}
