package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// writeMarks writes a line for each mark that was passed.
func writeMarks(b *strings.Builder, list []result.Mark, steps bool) {
	for i := range list {
		m := &list[i]
		step := ""
		if steps {
			step = oneLine(m.Step) + ": "
		}
		fmt.Fprintf(b, "--- mark: %s%d %s after %v: average %.0f msg/sec, at that moment %.0f msg/sec%s\n", step, m.Messages,
			m.Of, time.Duration(m.Elapsed*1000).Round(time.Millisecond), m.Average, m.Momentary, loadText(m))
	}
}

// loadText is the broker's load at a mark, as far as it is known.
func loadText(m *result.Mark) (text string) {
	if m.BrokerLoad != nil {
		text += fmt.Sprintf(", load %.2f", *m.BrokerLoad)
	}
	if m.BrokerCPU != nil {
		text += fmt.Sprintf(", broker cpu %.1f %%", 100**m.BrokerCPU)
	}
	return text
}
