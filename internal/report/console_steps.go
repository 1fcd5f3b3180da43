package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/stats"
)

// writeSteps writes a block for each of several steps: why its load ended and how long it took, the totals, warm-up included, with
// the average rates of its measured time, and the latencies of the messages due in that.
func (c *Console) writeSteps(b *strings.Builder, steps []stats.StepSummary) {
	for i := range steps {
		c.writeStep(b, &steps[i])
	}
}

func (c *Console) writeStep(b *strings.Builder, s *stats.StepSummary) {
	fmt.Fprintf(b, "\n--- STEP %s: %s, %.1f s\n", oneLine(s.Name), oneLine(s.Reason), s.Loaded.Seconds())
	total := func(label string, n, measured uint64) {
		note := ""
		if s.Average.Span > 0 {
			note = fmt.Sprintf("average %d msg/sec", rate(measured, s.Average.Span))
		}
		writeTotal(b, label, n, note)
	}
	if s.Sends {
		total("--- step sent:", s.Total.Sent, s.Average.Sent)
		total("--- step completed:", s.Total.Completed, s.Average.Completed)
		for _, f := range failuresOf(&s.Total) {
			if f.count > 0 {
				writeTotal(b, "--- step "+f.name+":", f.count, Failures(f.classes))
			}
		}
	}
	if s.Receives {
		total("--- step received:", s.Total.Received, s.Average.Received)
	}
	for _, l := range []struct {
		label   string
		latency *stats.Latency
	}{
		{"--- step delay send time:", s.Latencies.Delay},
		{"--- step send time:", s.Latencies.Ack},
		{"--- step transfer time:", s.Latencies.Transfer},
		{"--- step response time:", s.Latencies.Response},
	} {
		if l.latency != nil && l.latency.Count() > 0 {
			writeLatency(b, summaryLabel, l.label, l.latency)
		}
	}
	writeAge(b, "--- step b2c time:", s.Latencies.B2C)
	writeAge(b, "--- step s2c time:", s.Latencies.S2C)
	writeAge(b, "--- step commit time:", s.Latencies.Commit)
}

// writeLabels writes the user's texts, by name.
func writeLabels(b *strings.Builder, labels map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(strings.TrimRight("--- label "+oneLine(name)+": "+oneLine(labels[name]), " ") + "\n")
	}
}

// writeCommands writes what ran before and after steps.
func writeCommands(b *strings.Builder, commands []stats.Command) {
	texts := make([]string, len(commands))
	for i := range commands {
		c := &commands[i]
		status := fmt.Sprintf("status %d", c.Status)
		if c.Status < 0 {
			status = "no status"
		}
		texts[i] = fmt.Sprintf("%s %s: %s, %.1f s: %s", c.When, c.Step, status, c.Took.Seconds(), c.Command)
	}
	writeList(b, "--- command:", texts)
}
