//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// acked gives an observation eight seconds before the failure and three after it, with these median ack times.
func acked(o *observation, before, after time.Duration) {
	for i := range 11 {
		p50 := before
		if i >= 8 {
			p50 = after
		}
		o.result.Rows = append(o.result.Rows, result.Row{
			Step: failureStep, Phase: result.Measure, Length: 1_000_000,
			Time:      o.first.Add(time.Duration(i-7) * time.Second).UnixMicro(),
			Latencies: result.Latencies{result.Ack: &result.Latency{Percentiles: &result.Percentiles{P50: p50.Microseconds()}}},
		})
	}
}

// TestBusyMachine: a trial on a busy machine is neither right nor wrong, whatever else it shows; a slow broker after the
// failure, a few late sends, and a hang are judged.
func TestBusyMachine(t *testing.T) {
	t.Parallel()
	total := func(o *observation, sent, late uint64) {
		o.result.Total.Producers = &result.Producers{Sent: sent, Late: late}
	}
	for name, c := range map[string]struct {
		edit func(*observation)
		want state
		why  string
	}{
		"fast":           {func(o *observation) { acked(o, 2*time.Millisecond, 2*time.Millisecond) }, promiseKept, ""},
		"slow after it":  {func(o *observation) { acked(o, 2*time.Millisecond, 3*time.Second) }, promiseKept, ""},
		"slow before it": {func(o *observation) { acked(o, 51*time.Millisecond, 2*time.Millisecond) }, notJudged, "the median ack time before the failure was 51.0 ms"},
		"a full queue is slow": {func(o *observation) {
			acked(o, 2*time.Millisecond, 2*time.Millisecond)
			for i := 3; i < len(o.result.Rows); i++ {
				o.result.Rows[i].Latencies[result.Ack].P50 = 1_000_000
			}
			full(o)
		}, promiseKept, ""},
		"busy": {func(o *observation) {
			o.result.Tester = result.Tester{CPU: 10, MachineBusy: 91, MachineAll: 100}
		}, notJudged, "the machine was 91% busy, 81% with other programs than perfmq"},
		"paused": {func(o *observation) {
			o.result.Tester = result.Tester{Pauses: 2, PauseMax: 213_000}
		}, notJudged, "perfmq was paused 2 times, for 213.0 ms at most"},
		"late": {func(o *observation) { total(o, 1000, 20) }, notJudged, "perfmq sent 20 of 1000 messages late"},
		"wrong, on a busy machine": {func(o *observation) {
			acked(o, time.Second, time.Second)
			o.result.Outages = nil
		}, notJudged, "the median"},
		"over before the failure": {func(o *observation) {
			acked(o, time.Millisecond, time.Millisecond)
			o.result.Outages, o.allowed, o.last = nil, time.Minute, o.first.Add(5*time.Second)
		}, notJudged, "the load was over before the failure had its effect"},
		"hung, on a busy machine": {func(o *observation) { acked(o, time.Second, time.Second); o.hung = true }, perfmqWrong, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := judge(told(c.edit))
			require.Equal(t, c.want, r.State, r.Verdict)
			require.Equal(t, c.want == notJudged, strings.HasPrefix(r.Verdict, "not judged: "+c.why), r.Verdict)
			require.Equal(t, c.want == perfmqWrong, mistakes([]row{r}) != nil)
		})
	}
}
