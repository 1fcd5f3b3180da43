package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// writeMarks writes a line for each mark that was passed.
func writeMarks(b *strings.Builder, list []stats.Mark, steps bool) {
	for i := range list {
		m := &list[i]
		what, step := "completed", ""
		if m.Received {
			what = "received"
		}
		if steps {
			step = oneLine(m.Step) + ": "
		}
		fmt.Fprintf(b, "--- mark: %s%d %s after %v: average %.0f msg/sec, at that moment %.0f msg/sec%s\n", step, m.Messages,
			what, m.At.Round(time.Millisecond), m.Average, m.Momentary, loadText(m))
	}
}

// loadText is the broker's load at a mark, as far as it is known.
func loadText(m *stats.Mark) (text string) {
	if m.Load != nil {
		text += fmt.Sprintf(", load %.2f", *m.Load)
	}
	if m.CPU != nil {
		text += fmt.Sprintf(", broker cpu %.1f %%", 100**m.CPU)
	}
	return text
}

// marks returns the marks of a run.
func marks(list []stats.Mark) (out []result.Mark) {
	for i := range list {
		m := &list[i]
		of := "completed"
		if m.Received {
			of = "received"
		}
		out = append(out, result.Mark{
			Step: m.Step, Of: of, Messages: m.Messages, Elapsed: m.At.Microseconds(),
			Average: m.Average, Momentary: m.Momentary, BrokerLoad: m.Load, BrokerCPU: m.CPU,
		})
	}
	return out
}
