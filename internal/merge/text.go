package merge

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// maxOutages is the maximum number of outages in a summary.
const maxOutages = 10

// Text writes a summary of a merged result: a line for each part, the totals, latencies, thresholds, warnings
// and problems. Texts of the results are written as clean returns them.
func Text(w io.Writer, m *result.Result, clean func(string) string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "--- MERGED: %d results of run %s\n", len(m.Parts), clean(m.RunID))
	writeParts(&b, m, clean)
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "--- %-20s %s\n", label+":", fmt.Sprintf(format, args...))
	}
	metrics := m.Metrics()
	line("result", "%s", words.VerdictOf(m))
	if p := m.Total.Producers; p != nil {
		line("total sent", "%d", p.Sent)
		line("total completed", "%d", p.Completed)
		if p.Sent > p.Completed {
			line("not completed", "%d", p.Sent-p.Completed)
		}
	}
	if c := m.Total.Consumers; c != nil {
		line("total received", "%d", c.Received)
	}
	for _, name := range []string{"completed", "received"} {
		if v, known := metrics[name+".avg"]; known {
			line("average "+name, "%.0f msg/sec", v)
		}
	}
	for kind, name := range result.KindNames() {
		if l := m.Latencies[kind]; l != nil && l.Percentiles != nil {
			line(name+" us", "mean %.2f, 50%% %d, 90%% %d, 99%% %d, 99.9%% %d, max %d", l.Mean(), l.P50,
				l.P90, l.P99, l.P999, l.Max)
		}
	}
	if v := m.Verification; v != nil {
		t := &v.Total
		if v.Known {
			line("verified", "%d expected, %d once, %d lost, %d left, %d duplicated, %d damaged", t.Expected, t.Once,
				t.Lost, t.Left, t.Duplicates, t.Damaged)
		} else {
			line("verified", "%d received, %d duplicated, %d damaged; what was to arrive is not known", t.Received,
				t.Duplicates, t.Damaged)
		}
	}
	for _, o := range m.Outages[:min(len(m.Outages), maxOutages)] {
		line("outage", "%s, %s", clean(o.Host), clean(words.Outage(&o)))
	}
	if more := len(m.Outages) - maxOutages; more > 0 {
		line("outages", "%d more in the result", more)
	}
	for _, t := range m.Thresholds {
		line("threshold", "%s", clean(t.String()))
	}
	for _, text := range m.Outcome.Warnings {
		line("warning", "%s", clean(text))
	}
	for _, text := range m.Outcome.Problems {
		line("problem", "%s", clean(text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeParts writes a table of the parts and their clocks.
func writeParts(b *strings.Builder, m *result.Result, clean func(string) string) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "shard\thost\tclock\t")
	for i, p := range m.Parts {
		clock := "not known"
		switch {
		case p.Clock != nil && i == 0:
			clock = "the reference"
		case p.Clock != nil:
			clock = p.Clock.Start.String()
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t\n", p.Shard, clean(p.Host.Name), clock)
	}
	_ = table.Flush() // a strings.Builder takes all
}
