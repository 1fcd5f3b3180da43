package report

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// writeHDR writes a log of one warm-up interval, three measured ones (the second is empty) and a drain.
func writeHDR(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.hdr")
	h := musttest.Get(NewHDR(path))(t)
	require.NoError(t, h.Start(clientRun()))
	empty := result.Latencies{
		result.Delay: result.NewLatency(), result.Ack: result.NewLatency(), result.Response: result.NewLatency(), result.Transfer: result.NewLatency(),
	}
	for i, s := range []struct {
		phase     stats.Phase
		latencies result.Latencies
	}{
		{stats.Warmup, openLoop()},
		{stats.Measure, openLoop()},
		{stats.Measure, empty},
		{stats.Measure, openLoop()},
		{stats.Drain, result.Latencies{
			result.Transfer: latency(3, time.Hour), result.B2C: latency(5, time.Millisecond), result.S2C: latency(4, time.Millisecond),
		}},
	} {
		require.NoError(t, h.Interval(snapshot(s.phase, i, stats.Counters{}, s.latencies)))
	}
	require.NoError(t, h.Summary(&stats.Summary{}))
	require.NoError(t, h.Close())
	return path
}

func TestHDRReadsBack(t *testing.T) {
	t.Parallel()
	file := musttest.Get(os.Open(writeHDR(t)))(t)
	defer file.Close()
	reader := hdrhistogram.NewHistogramLogReader(file)
	lines, counts := map[string]int{}, map[string]int64{}
	sums := map[string]*hdrhistogram.Histogram{}
	for {
		h := musttest.Get(reader.NextIntervalHistogram())(t)
		if h == nil {
			break
		}
		tag := h.Tag()
		n := lines[tag] // index of the interval among those of its tag
		if !strings.HasPrefix(tag, "warmup-") {
			n++
		}
		if tag == "b2c" || tag == "s2c" { // they have lines from the first interval with values on
			n = 4
		}
		// The reader rounds floats, so times may differ by a millisecond.
		require.InDelta(t, loadStart().Add(time.Duration(n)*1010*time.Millisecond).UnixMilli(), h.StartTimeMs(), 1, "%s %d", tag, n)
		require.InDelta(t, 1010, h.EndTimeMs()-h.StartTimeMs(), 1)
		lines[tag]++
		counts[tag] += h.TotalCount()
		if sums[tag] == nil {
			sums[tag] = hdrhistogram.New(1, stats.MaxLatency.Microseconds(), 2)
		}
		require.Zero(t, sums[tag].Merge(h), "values dropped")
	}
	require.Equal(t, map[string]int{
		"warmup-delay-send": 1, "warmup-send": 1, "warmup-response": 1, "warmup-transfer": 1,
		"delay-send": 3, "send": 3, "response": 3, "transfer": 4, "b2c": 1, "s2c": 1,
	}, lines)
	require.Equal(t, map[string]int64{
		"warmup-delay-send": 50, "warmup-send": 200, "warmup-response": 20, "warmup-transfer": 100,
		"delay-send": 100, "send": 400, "response": 40, "transfer": 203, "b2c": 5, "s2c": 4,
	}, counts)

	want := openLoop()
	want[result.Ack].Merge(openLoop()[result.Ack])
	require.True(t, sums["send"].Equals(want[result.Ack].Histogram.HDR()))
	want[result.Transfer].Merge(openLoop()[result.Transfer])
	want[result.Transfer].Merge(latency(3, time.Hour))
	require.True(t, sums["transfer"].Equals(want[result.Transfer].Histogram.HDR()))
}

// Java's HistogramLogProcessor is the reference reader.
func TestHDRInJavasHistogramLogProcessor(t *testing.T) {
	brokertest.Needs(t, "Java")
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	jar := musttest.Get(brokertest.MavenJar(ctx, "org.hdrhistogram:HdrHistogram:2.2.2"))(t)
	log := writeHDR(t)
	process := func(args ...string) string {
		args = append([]string{"-Xmx64m", "-cp", jar, "org.HdrHistogram.HistogramLogProcessor", "-i", log}, args...)
		out, err := exec.CommandContext(ctx, "java", args...).CombinedOutput() //nolint:gosec // a test's own arguments
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	tags := process("-listtags")
	for _, tag := range []string{
		"delay-send", "send", "response", "transfer",
		"warmup-delay-send", "warmup-send", "warmup-response", "warmup-transfer",
	} {
		require.Contains(t, strings.Fields(tags), tag)
	}

	out := filepath.Join(t.TempDir(), "out")
	process("-tag", "send", "-csv", "-outputValueUnitRatio", "1", "-o", out)
	series := musttest.Get(os.ReadFile(out))(t)
	rows := strings.Split(strings.TrimSpace(string(series)), "\n")
	require.Equal(t, []string{ // seconds from the base time to the interval's end; its count, 50%, 90%, max; those of all
		"2.555,200,100.000,180.000,200.000,200,100.000,180.000,198.000,200.000,200.000,200.000",
		"3.565,0,0.000,0.000,0.000,200,100.000,180.000,198.000,200.000,200.000,200.000",
		"4.575,200,100.000,180.000,200.000,400,100.000,180.000,198.000,200.000,200.000,200.000",
	}, rows[len(rows)-3:])
	require.Contains(t, rows[1], "#[StartTime: 1795257054.000")

	// The commands as they stand in the guides, for sends of up to 200 us.
	for _, guide := range []string{"results.md", "getting-started.md"} {
		text := musttest.Get(os.ReadFile(filepath.Join("../../docs", guide)))(t)
		commands := regexp.MustCompile("`java -cp HdrHistogram-2.2.2.jar org.HdrHistogram.HistogramLogProcessor\\s+-i \\S+\\s+([^`]*)`").FindAllSubmatch(text, -1)
		require.Len(t, commands, strings.Count(string(text), "org.HdrHistogram.HistogramLogProcessor"), guide)
		require.NotEmpty(t, commands, guide)
		for _, command := range commands {
			out := process(strings.Fields(string(command[1]))...)
			require.Regexp(t, `(?m)^ +0\.20 1\.0+ +400$`, out, "%s: milliseconds", guide)
		}
	}

	whole := process("-tag", "transfer", "-outputValueUnitRatio", "1")
	require.Regexp(t, `Total count    = +203\]`, whole)
	require.Regexp(t, `Max     = +1080\d{7}\.00, `, whole) // three hours, to two digits

	log = writeStepsHDR(t) // of several steps
	process("-tag", "transfer", "-csv", "-outputValueUnitRatio", "1", "-o", out)
	series = musttest.Get(os.ReadFile(out))(t)
	rows = strings.Split(strings.TrimSpace(string(series)), "\n")
	var ends []string
	for _, row := range rows[len(rows)-8:] {
		end, rest, _ := strings.Cut(row, ",")
		count, _, _ := strings.Cut(rest, ",")
		ends = append(ends, end+" "+count)
	}
	require.Equal(t, []string{ // as Java's floating point rounds them
		"2.537 20", "3.537 20", "3.588 0", "4.589 20", "5.590 20", "5.639 0", "6.641 20", "6.691 0",
	}, ends)
}
