//go:build unix

package e2e

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
)

const hdrHistogramJar = "org.hdrhistogram:HdrHistogram:2.2.2"

// tagged has the values of a run's JSON for a tag of the HDR log.
type tagged struct {
	count uint64
	max   int64
}

// wantTags collects the expected contents of the HDR log of a run, by tag.
func wantTags(r *result) map[string]tagged {
	want := map[string]tagged{}
	for i := range r.intervals {
		v := &r.intervals[i]
		prefix := ""
		if v.Warmup {
			prefix = "warmup-"
		}
		left := &v.Leftover
		for tag, l := range map[string]*latency{
			prefix + "delay-send": v.DelaySend, prefix + "send": v.Send, prefix + "response": v.Response, prefix + "transfer": v.Transfer,
		} {
			add(want, tag, l)
		}
		for tag, l := range map[string]*latency{
			"warmup-delay-send": left.DelaySend, "warmup-send": left.Send, "warmup-response": left.Response, "warmup-transfer": left.Transfer,
		} {
			add(want, tag, l)
		}
	}
	return want
}

func add(to map[string]tagged, tag string, l *latency) {
	if l != nil {
		sum := to[tag]
		to[tag] = tagged{sum.count + l.Count, max(sum.max, l.Max)}
	}
}

// requireComplete reads an HDR log to its end with Go's reader: by tag it has as many values as the JSON. It costs a
// millisecond where Java takes seconds; [requireHDR] shows that Java reads these files.
func requireComplete(t *testing.T, file string, r *result) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	log := hdrhistogram.NewHistogramLogReader(f)
	got := map[string]uint64{}
	for {
		h, err := log.NextIntervalHistogram()
		require.NoError(t, err)
		if h == nil {
			break
		}
		got[h.Tag()] += uint64(h.TotalCount())
	}
	want := map[string]uint64{}
	for tag, sum := range wantTags(r) {
		want[tag] = sum.count
	}
	require.Equal(t, want, got)
}

// requireHDR opens an HDR log in Java's own HistogramLogProcessor: it must find the tags of the run, and behind each of
// them as many values and the same maximum as the JSON of the run has.
func requireHDR(t *testing.T, file string, r *result) {
	t.Helper()
	want := wantTags(r)
	var tags []string
	for tag := range want {
		tags = append(tags, tag)
	}
	slices.Sort(tags)
	_, listed, found := strings.Cut(java(t, file, "-listtags"), "Tags found in input file:")
	require.True(t, found)
	got := strings.Fields(listed)
	slices.Sort(got)
	require.Equal(t, tags, got)

	for _, tag := range tags {
		out := java(t, file, "-tag", tag, "-outputValueUnitRatio", "1")
		count := regexp.MustCompile(`Total count *= *(\d+)\]`).FindStringSubmatch(out)
		require.NotNil(t, count, "tag %s:\n%s", tag, out)
		require.Equal(t, want[tag].count, parseUint(t, count[1]), "values of tag %s", tag)
		largest := regexp.MustCompile(`\[Max *= *(\d+)\.\d+,`).FindStringSubmatch(out)
		require.NotNil(t, largest, "tag %s:\n%s", tag, out)
		// Both have two significant digits; the JSON's maximum is exact.
		require.InEpsilon(t, float64(want[tag].max)+1, float64(parseUint(t, largest[1]))+1, 0.02, "maximum of tag %s, in microseconds", tag)
	}
}

func java(t *testing.T, file string, args ...string) string {
	t.Helper()
	ctx := soon(t)
	jar, err := brokertest.MavenJar(ctx, hdrHistogramJar)
	require.NoError(t, err)
	cmd, err := brokertest.JavaCommand(ctx, []string{jar}, "org.HdrHistogram.HistogramLogProcessor", append([]string{"-i", file}, args...)...)
	require.NoError(t, err)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "Exception")
	return string(out)
}
