package result_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestMeasured: a latency that lacks more than 1% of its values is not measured.
func TestMeasured(t *testing.T) {
	for _, c := range []struct {
		values  int64
		leftOut uint64
		want    bool
	}{{0, 0, false}, {0, 1, false}, {1, 0, true}, {1, 1, false}, {99, 1, true}, {98, 1, false}, {990, 10, true}, {989, 11, false}} {
		require.Equal(t, c.want, result.Measured(c.values, c.leftOut), "%d, %d left out", c.values, c.leftOut)
	}
	of := result.Result{Total: result.Counts{Consumers: &result.Consumers{NegativeAges: 51}}}
	of.Latencies[result.B2C], of.Latencies[result.S2C] = &result.Latency{Count: 99}, &result.Latency{Count: 50}
	require.Contains(t, of.Metrics(), "b2c.max", "one of 100 is left out")
	require.NotContains(t, of.Metrics(), "s2c.max", "50 of 100 are left out: the clocks of broker and consumer differ")
}

// TestMetricsOfTimes: stalls and outages of several hosts at the same time are one. Unlisted ones may be of the same
// time, or longer. An outage without an end may be the longest.
func TestMetricsOfTimes(t *testing.T) {
	type stalls = []result.Stall
	type outages = []result.Outage
	for name, c := range map[string]struct {
		of   result.Result
		want map[string]float64
	}{
		"not looked for": {result.Result{}, map[string]float64{}},
		"no stall":       {result.Result{Stalls: stalls{}}, map[string]float64{"stall.count": 0, "stall.max": 0}},
		"hosts": {
			result.Result{Stalls: stalls{
				{Host: "a", Time: 100, Length: 50},
				{Host: "b", Time: 120, Length: 10},
				{Host: "c", Time: 140, Length: 40},
				{Host: "a", Time: 180, Length: 5},
				{Host: "a", Time: 500, Length: 7},
				{Time: 300, Length: 90, Warmup: true},
			}},
			map[string]float64{"stall.count": 3, "stall.max": 50},
		},
		"two hosts that each tell a stall of sends from one of receipts": {
			result.Result{Stalls: stalls{
				{Host: "a", Time: 200, Length: 200},
				{Host: "a", Time: 300, Length: 200},
				{Host: "b", Time: 201, Length: 200},
				{Host: "b", Time: 301, Length: 200},
			}},
			map[string]float64{"stall.count": 2, "stall.max": 200},
		},
		"more stalls": {result.Result{Stalls: stalls{{Time: 1, Length: 2}}, MoreStalls: 3}, map[string]float64{}},
		"no outage": {
			result.Result{Complete: true, Outages: outages{}},
			map[string]float64{"outage.count": 0, "outage.max": 0, "recovery.max": 0, "in_doubt": 0},
		},
		"outages of hosts": {
			result.Result{Complete: true, Outages: outages{{Host: "a", Time: 10, Length: 5, InDoubt: 2}, {Host: "b", Time: 12, Length: 30, InDoubt: 3}, {Time: 90, Length: 7}}},
			map[string]float64{"outage.count": 2, "outage.max": 30, "in_doubt": 5},
		},
		"more outages": {
			result.Result{Complete: true, Outages: outages{{Time: 10, Length: 5, InDoubt: 2, Recovered: 6}}, MoreOutages: &result.MoreOutages{Count: 100, Longest: 40, InDoubt: 9}},
			map[string]float64{"outage.count": 101, "outage.max": 40, "in_doubt": 11},
		},
		"more outages of hosts": {
			result.Result{Complete: true, Parts: make([]result.Part, 2), Outages: outages{{Time: 10, Length: 5}}, MoreOutages: &result.MoreOutages{Count: 100, Longest: 40}},
			map[string]float64{"outage.max": 40, "in_doubt": 0},
		},
		"that of one host has no end": {
			result.Result{Complete: true, End: 900, Outages: outages{{Host: "a", Time: 10, NotBack: []string{"p"}}, {Host: "b", Time: 500, Length: 30}}},
			map[string]float64{"outage.count": 1, "in_doubt": 0},
		},
		"no message came through": {result.Result{Complete: true, Outages: outages{{Reconnected: 1_000_000}}}, map[string]float64{"outage.count": 1, "in_doubt": 0}},
		"the workers of one were done": {
			result.Result{Complete: true, Outages: outages{{Host: "a", Time: 10}, {Host: "b", Time: 500, Length: 30}}},
			map[string]float64{"outage.count": 2, "in_doubt": 0, "outage.max": 30},
		},
		"so far": {
			result.Result{End: 900, Outages: outages{{Time: 10, Length: 5, Back: 3, Recovered: 6}, {Time: 500, NotBack: []string{"p"}}}},
			map[string]float64{"outage.count": 2, "in_doubt": 0, "outage.max": 400, "recovery.max": 3},
		},
	} {
		require.Equal(t, c.want, c.of.Metrics(), name)
	}
}

// The reference is Java's HdrHistogram, which `artemis perf` and all analyzers use. Its lowest and highest values are
// the ends of their buckets, ours never exceed the maximum.
func TestPercentilesAreJavas(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	jar := musttest.Get(brokertest.MavenJar(ctx, "org.hdrhistogram:HdrHistogram:2.2.2"))(t)
	java := exec.CommandContext(ctx, "java", "-Xmx128m", "-cp", jar, "testdata/Percentiles.java") //nolint:gosec // a test's own arguments
	out := musttest.Get(java.Output())(t)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 10_000)

	l := result.NewLatency()
	state := uint64(1)
	for n, line := range lines {
		state = state*6364136223846793005 + 1442695040888963407
		bits := state >> 33
		l.Record(time.Duration(bits&1023<<(bits>>10%25)) * time.Microsecond)
		var values [10]int64
		for i, text := range strings.Fields(line) {
			musttest.Get(fmt.Sscan(text, &values[i]))(t)
		}
		for i, p := range [...]float64{1, 50, 90, 95, 99, 99.9, 99.99, 100} {
			require.Equal(t, min(values[1+i], l.Max), l.Percentile(p), "%v%% of %d values", p, n+1)
		}
		require.LessOrEqual(t, l.Max, values[9])
		require.Greater(t, float64(l.Max), 0.99*float64(values[9])-1)
	}
}
