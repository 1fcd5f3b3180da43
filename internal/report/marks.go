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
		fmt.Fprintf(b, "--- mark: %s%d %s after %v: average %.0f msg/sec, at that moment %.0f msg/sec\n", step,
			m.Messages, m.Of, time.Duration(m.Elapsed*1000).Round(time.Millisecond), m.Average, m.Momentary)
	}
}
