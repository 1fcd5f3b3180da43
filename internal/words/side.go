package words

import (
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// Side returns the use of a broker and its host as pairs of a label and a text, as far as it was measured. Texts of the
// broker in it are not escaped.
func Side(s *result.BrokerSide) (lines [][2]string) {
	u := &s.Whole
	perCPU, perSecond := 1/float64(max(1, u.CPUSpan)), 1e6/float64(max(1, u.Span))
	cpu := with(measured(u.CPU, "%.2f cores", perCPU), measured(s.CPUMost, " (at most %.2f)", 1))
	collections := with(measured(u.Collections, "%.0f collections", 1), measured(u.CollectionTime, " in %.1f ms", 1e-3))
	for _, line := range [][][2]string{
		{
			{"process"},
			{"cpu %s", cpu},
			{"memory %s MB", megabytes(u.Memory, 1)},
			{"heap %s MB", megabytes(u.Heap, 1)},
			{"%s", collections},
			{"threads %s", measured(u.Threads, "%.0f", 1)},
			{"open files %s", measured(u.Files, "%.0f", 1)},
		},
		{
			{"host"},
			{"load %s", measured(u.Load, "%.2f", 1)},
			{"disk %s %% busy at most", measured(u.DiskBusy, "%.1f", 100)},
			{"read %s MB/s", megabytes(u.DiskRead, perSecond)},
			{"written %s MB/s", megabytes(u.DiskWritten, perSecond)},
			{"network in %s MB/s", megabytes(u.NetIn, perSecond)},
			{"out %s MB/s", megabytes(u.NetOut, perSecond)},
			{"loopback %s MB/s", megabytes(u.Loopback, perSecond)},
		},
		{{"log"}, {"errors %s", measured(u.Errors, "%.0f", 1)}, {"warnings %s", measured(u.Warnings, "%.0f", 1)}},
		{{"first error"}, {"%s", s.FirstError}},
		{{"first warning"}, {"%s", s.FirstWarning}},
	} {
		var parts []string
		for _, v := range line[1:] {
			if v[1] != "" {
				parts = append(parts, fmt.Sprintf(v[0], v[1]))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, [2]string{line[0][0], strings.Join(parts, ", ")})
		}
	}
	for _, e := range s.Events {
		lines = append(lines, [2]string{"event", time.UnixMicro(e.Time).Format(time.DateTime) + " " + e.Text})
	}
	for _, note := range s.Notes {
		lines = append(lines, [2]string{"note", note})
	}
	return lines
}

// measured returns a value times a factor; "" if it was not measured.
func measured[T float64 | uint64](v *T, format string, factor float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(format, factor*float64(*v))
}

// with returns a text and more about it, if there is one.
func with(text, more string) string {
	if text == "" {
		return ""
	}
	return text + more
}

func megabytes(v *uint64, factor float64) string {
	if v == nil {
		return ""
	}
	return Megabytes(factor * float64(*v))
}

// Mark returns a sentence about a mark, with its step if there are several.
func Mark(m *result.Mark, steps bool) string {
	text := fmt.Sprintf("%d %s after %v: average %.0f msg/sec, at that moment %.0f msg/sec", m.Messages, m.Of,
		time.Duration(m.Elapsed*1000).Round(time.Millisecond), m.Average, m.Momentary)
	if steps {
		text = m.Step + ": " + text
	}
	return text
}
