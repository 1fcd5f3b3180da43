package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/words"

	"github.com/perfmq/perfmq/pkg/result"
)

// writeSide writes the use of the broker and its host: a line each about process, host and log, as far as measured.
func writeSide(b *strings.Builder, s *result.BrokerSide) {
	if s == nil {
		return
	}
	u := &s.Whole
	perCPU, perSecond := 100/float64(max(1, u.CPUSpan)), 1e6/float64(max(1, u.Span))
	cpu := with(measured(u.CPU, "%.1f %% of a core", perCPU), measured(s.CPUMost, " (at most %.1f %%)", 100))
	collections := with(measured(u.Collections, "%.0f collections", 1), measured(u.CollectionTime, " in %.1f ms", 1e-3))
	for _, line := range [][][2]string{
		{
			{"--- broker process:"},
			{"cpu %s", cpu},
			{"memory %s MB", megabytes(u.Memory, 1)},
			{"heap %s MB", megabytes(u.Heap, 1)},
			{"%s", collections},
			{"threads %s", measured(u.Threads, "%.0f", 1)},
			{"open files %s", measured(u.Files, "%.0f", 1)},
		},
		{
			{"--- broker host:"},
			{"load %s", measured(u.Load, "%.2f", 1)},
			{"disk %s %% busy at most", measured(u.DiskBusy, "%.1f", 100)},
			{"read %s MB/s", megabytes(u.DiskRead, perSecond)},
			{"written %s MB/s", megabytes(u.DiskWritten, perSecond)},
			{"network in %s MB/s", megabytes(u.NetIn, perSecond)},
			{"out %s MB/s", megabytes(u.NetOut, perSecond)},
			{"loopback %s MB/s", megabytes(u.Loopback, perSecond)},
		},
		{
			{"--- broker log:"},
			{"errors %s", measured(u.Errors, "%.0f", 1)},
			{"warnings %s", measured(u.Warnings, "%.0f", 1)},
			{"first: %s", oneLine(cmp.Or(s.FirstError, s.FirstWarning))},
		},
	} {
		var parts []string
		for _, v := range line[1:] {
			if v[1] != "" {
				parts = append(parts, fmt.Sprintf(v[0], v[1]))
			}
		}
		if len(parts) > 0 {
			writeList(b, line[0][0], []string{strings.Join(parts, ", ")})
		}
	}
	for _, e := range s.Events {
		writeList(b, "--- broker event:", []string{time.UnixMicro(e.Time).Format("15:04:05") + " " + e.Text})
	}
	writeList(b, "--- broker note:", s.Notes)
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
	return words.Megabytes(factor * float64(*v))
}
