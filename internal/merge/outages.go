package merge

import (
	"fmt"
	"strings"
	"time"
)

// maxOutages is how many outages a summary lists.
const maxOutages = 10

// afterOutages says how many outages there were, those that several hosts saw at the same time as one; empty if there
// were none.
func afterOutages(m *Merged) string {
	if len(m.Outages) == 0 {
		return ""
	}
	f := values{}
	f.reconnections(m.Outages, m.MoreOutages)
	text := ", after outages"
	if n, known := f["outage.count"]; known && n == 1 {
		text = ", after 1 outage"
	} else if known {
		text = fmt.Sprintf(", after %.0f outages", n)
	}
	if longest, known := f["outage.max"]; known {
		return text + fmt.Sprintf(" (the longest %s)", brief(int64(longest)))
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
		var b strings.Builder
		fmt.Fprintf(&b, "%s, at %s", clean(o.Host), time.UnixMicro(o.Time).Format("15:04:05.000"))
		if o.Length > 0 {
			fmt.Fprintf(&b, " for %s", brief(o.Length))
		} else {
			b.WriteString(": no message came through after it")
		}
		if len(o.NotBack) > 0 {
			fmt.Fprintf(&b, "; %d of %d workers not connected again", len(o.NotBack), len(o.Workers))
		} else if o.Reconnected > 0 {
			fmt.Fprintf(&b, "; %d workers connected again after %s", len(o.Workers), brief(o.Reconnected))
		}
		if o.Recovered > 0 {
			fmt.Fprintf(&b, "; rate recovered after %s", brief(o.Recovered))
		}
		if o.InDoubt+o.Lost+o.Doubled > 0 {
			fmt.Fprintf(&b, "; %d in doubt, %d lost, %d duplicated", o.InDoubt, o.Lost, o.Doubled)
		}
		fmt.Fprintf(&b, "; %s: %s", clean(o.Class), clean(o.Error))
		line("outage", "%s", b.String())
	}
}

// brief writes a number of microseconds.
func brief(us int64) string {
	return (time.Duration(us) * time.Microsecond).Round(time.Millisecond).String()
}
