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
