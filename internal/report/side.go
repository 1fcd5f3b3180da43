package report

import (
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
	for _, line := range []struct {
		label string
		parts []string
	}{
		{"--- broker process:", ofProcess(s)},
		{"--- broker host:", ofHost(&s.Whole)},
		{"--- broker log:", ofLog(s)},
	} {
		if len(line.parts) > 0 {
			writeList(b, line.label, []string{strings.Join(line.parts, ", ")})
		}
	}
	for _, e := range s.Events {
		writeList(b, "--- broker event:", []string{time.UnixMicro(e.Time).Format("15:04:05") + " " + e.Text})
	}
	writeList(b, "--- broker note:", s.Notes)
}

func ofProcess(s *result.BrokerSide) (parts []string) {
	u := &s.Whole
	if u.CPU != nil && u.CPUSpan > 0 {
		text := fmt.Sprintf("cpu %.1f %% of a core", 100*float64(*u.CPU)/float64(u.CPUSpan))
		if s.CPUMost != nil {
			text += fmt.Sprintf(" (at most %.1f %%)", 100**s.CPUMost)
		}
		parts = append(parts, text)
	}
	if u.Memory != nil {
		parts = append(parts, "memory "+words.Megabytes(float64(*u.Memory))+" MB")
	}
	if u.Heap != nil {
		parts = append(parts, "heap "+words.Megabytes(float64(*u.Heap))+" MB")
	}
	if u.Collections != nil {
		text := fmt.Sprintf("%d collections", *u.Collections)
		if u.CollectionTime != nil {
			text += fmt.Sprintf(" in %.1f ms", float64(*u.CollectionTime)/1000)
		}
		parts = append(parts, text)
	}
	if u.Threads != nil {
		parts = append(parts, fmt.Sprintf("threads %d", *u.Threads))
	}
	if u.Files != nil {
		parts = append(parts, fmt.Sprintf("open files %d", *u.Files))
	}
	return parts
}

func ofHost(u *result.BrokerUse) (parts []string) {
	if u.Load != nil {
		parts = append(parts, fmt.Sprintf("load %.2f", *u.Load))
	}
	if u.DiskBusy != nil {
		parts = append(parts, fmt.Sprintf("disk %.1f %% busy at most", 100**u.DiskBusy))
	}
	speed := func(name string, bytes *uint64) {
		if bytes != nil && u.Span > 0 {
			parts = append(parts, fmt.Sprintf("%s %s MB/s", name, words.Megabytes(float64(*bytes)*1e6/float64(u.Span))))
		}
	}
	speed("read", u.DiskRead)
	speed("written", u.DiskWritten)
	speed("network in", u.NetIn)
	speed("out", u.NetOut)
	speed("loopback", u.Loopback)
	return parts
}

func ofLog(s *result.BrokerSide) (parts []string) {
	if s.Whole.Errors == nil || s.Whole.Warnings == nil {
		return nil
	}
	parts = []string{fmt.Sprintf("errors %d", *s.Whole.Errors), fmt.Sprintf("warnings %d", *s.Whole.Warnings)}
	if first := firstLine(s); first != "" {
		parts = append(parts, "first: "+oneLine(first))
	}
	return parts
}

func firstLine(s *result.BrokerSide) string {
	if s.FirstError != "" {
		return s.FirstError
	}
	return s.FirstWarning
}
