//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// settled is how long the load may take to be as fast as before, when all pieces are fast again: it has messages to
// make up for.
const settled = 3 * time.Second

// latencies compares the latencies of each second with what a slow line did to them, and describes them for the page.
// Each message took longer by slowDelay each way, at least, and by lossDelay more each way, at most.
func (j *judgement) latencies() string {
	for i := range j.result.Outages {
		j.wrong("an outage, where no connection broke: %s", j.result.Outages[i].Class)
	}
	var said []string
	for _, kind := range []struct {
		name string
		of   func(*result.Latencies) *result.Latency
	}{
		{"ack", func(l *result.Latencies) *result.Latency { return l[result.Ack] }},
		{"response", func(l *result.Latencies) *result.Latency { return l[result.Response] }},
		{"transfer", func(l *result.Latencies) *result.Latency { return l[result.Transfer] }},
	} {
		before := j.medians(kind.of, time.Time{}, j.first)
		slow := j.medians(kind.of, j.last.Add(time.Second), j.over)
		after := j.medians(kind.of, j.over.Add(settled), time.Time{})
		if len(before) == 0 || len(slow) == 0 || len(after) == 0 {
			j.wrong("%s: the medians of %d seconds before, %d meanwhile and %d afterwards", kind.name, len(before), len(slow),
				len(after))
			continue
		}
		usual, most := median(before), median(before)+2*(slowDelay+lossDelay).Microseconds()
		if least := slices.Min(slow); least < 2*slowDelay.Microseconds() {
			j.wrong("%s: a median of %s in a second in which nothing took less than %v", kind.name, millis(least), 2*slowDelay)
		}
		// A broker may take longer for reasons of its own.
		if m := median(slow); m > most {
			j.broken = append(j.broken, fmt.Sprintf("a median %s of %s, where the line does not explain more than %s", kind.name,
				millis(m), millis(most)))
		}
		if m := median(after); m > usual+slowDelay.Microseconds() {
			j.broken = append(j.broken, fmt.Sprintf("a median %s of %s afterwards, and %s before", kind.name, millis(m),
				millis(usual)))
		}
		said = append(said, fmt.Sprintf("%s %s, %s, %s", kind.name, millis(usual), millis(median(slow)),
			millis(median(after))))
	}
	return "no connection was lost; medians before, meanwhile and afterwards: " + strings.Join(said, "; ")
}

// medians returns the medians of a latency in the seconds of the load that lie between two moments; a zero one is its
// start or end.
func (j *judgement) medians(of func(*result.Latencies) *result.Latency, from, to time.Time) (list []int64) {
	for i := range j.result.Rows {
		r := &j.result.Rows[i]
		end := time.UnixMicro(r.Time)
		l := of(&r.Latencies)
		if r.Step != failureStep || r.Phase != "measure" || l == nil || l.Percentiles == nil ||
			!from.IsZero() && end.Add(-time.Duration(r.Length)*time.Microsecond).Before(from) || !to.IsZero() && end.After(to) {
			continue
		}
		list = append(list, l.P50)
	}
	return list
}

// median returns the median of a list that is not empty.
func median(list []int64) int64 { return slices.Sorted(slices.Values(list))[len(list)/2] }

func millis(us int64) string { return fmt.Sprintf("%.1f ms", float64(us)/1e3) }
