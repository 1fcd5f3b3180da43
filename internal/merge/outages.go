package merge

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// maxOutages is the maximum number of outages in a summary.
const maxOutages = 10

// afterOutages returns the number of outages; simultaneous outages of several hosts count once. It is empty without
// outages.
func afterOutages(m *Merged) string {
	if len(m.Outages) == 0 {
		return ""
	}
	f := (&result.Result{Complete: true, Parts: m.Parts, Outages: m.Outages, MoreOutages: m.MoreOutages}).Metrics()
	text := ", after outages"
	if n, known := f["outage.count"]; known && n == 1 {
		text = ", after 1 outage"
	} else if known {
		text = fmt.Sprintf(", after %.0f outages", n)
	}
	if longest, known := f["outage.max"]; known {
		return text + fmt.Sprintf(" (the longest %s)", words.Duration(int64(longest)))
	}
	return text + " (not all have an end)"
}

// writeOutages writes a line for each outage of each host.
func writeOutages(line func(label, format string, args ...any), m *Merged, clean func(string) string) {
	for i := range m.Outages {
		if i == maxOutages {
			line("outages", "%d more in the result", len(m.Outages)-i)
			break
		}
		o := &m.Outages[i]
		line("outage", "%s, %s", clean(o.Host), clean(words.Outage(o)))
	}
}
