//go:build unix

package e2e

import (
	"os"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// wantTags counts the values that the HDR log of a run must have, by tag.
func wantTags(r *result) map[string]uint64 {
	want := map[string]uint64{}
	for i := range r.intervals {
		v := &r.intervals[i]
		prefix, left := "", &v.Leftover
		if v.Warmup {
			prefix = "warmup-"
		}
		add(want, prefix, v.DelaySend, v.Send, v.Response, v.Transfer)
		add(want, "warmup-", left.DelaySend, left.Send, left.Response, left.Transfer)
	}
	return want
}

func add(to map[string]uint64, prefix string, list ...*latency) {
	for i, tag := range []string{"delay-send", "send", "response", "transfer"} {
		if l := list[i]; l != nil {
			to[prefix+tag] += l.Count
		}
	}
}

// requireComplete reads an HDR log to its end with Go's reader: by tag it has as many values as the JSON. A test of
// internal/report reads one with Java's.
func requireComplete(t *testing.T, file string, r *result) {
	t.Helper()
	f := musttest.Get(os.Open(file))(t)
	defer f.Close()
	log := hdrhistogram.NewHistogramLogReader(f)
	got := map[string]uint64{}
	for {
		h := musttest.Get(log.NextIntervalHistogram())(t)
		if h == nil {
			break
		}
		got[h.Tag()] += uint64(h.TotalCount())
	}
	require.Equal(t, wantTags(r), got)
}
