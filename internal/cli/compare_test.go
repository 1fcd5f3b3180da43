package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perfmq/perfmq/pkg/result"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// makeRepeats makes n repeats of a run of 8 messages on a broker with the given latency, by a fake clock, and returns
// their folder.
func makeRepeats(t *testing.T, name, latency string, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	for i := range n {
		r := runTold(t, "mem", "producer", "--message-count", "8", "-o", "latency="+latency, "--label", "build="+name,
			"--result", filepath.Join(dir, strconv.Itoa(i)))
		require.Equal(t, result.StatusOK, r.status, r.stderr)
	}
	return dir
}

// TestCompare: a slower broker is found, reported and judged; results of the same broker show no difference; too few
// results are reported as such.
func TestCompare(t *testing.T) {
	t.Parallel()
	fast, slow := makeRepeats(t, "fast", "1ms", 5), makeRepeats(t, "slow", "200ms", 5)

	r := call(nil, "compare", fast, slow)
	assert.Equal(t, result.StatusUsage, r.status)
	assert.Contains(t, r.stderr, "error: the plans differ in steps.load.groups.1.broker.options.latency: 1ms | 200ms\nhint: compare runs of one plan, or add --unlike, which lists what differs\n")
	assert.Empty(t, r.stdout)

	r = call(nil, "compare", "--unlike", "--fail-if", "ack.p50 +10%", "--fail-if", "completed.avg -10%", fast, slow)
	assert.Equal(t, result.StatusThreshold, r.status, r.stderr)
	assert.Regexp(t, `^ +fast \(5 runs\) +slow \(5 runs\) +change\n`, r.stdout)
	assert.Regexp(t, `(?m)^ack.p50 .*worse \(p=0.008\)$`, r.stdout)
	assert.Contains(t, r.stdout, "label build: fast | slow\n")
	// ack.p99 is not checked: a single stall of the machine decides it.
	assert.Regexp(t, `(?m)^slow is slower than fast: completed.avg -\d+.\d% \(95% interval -\d+.\d% to -\d+.\d%, p=0.008\), ack.p50 \+\d+.\d%`, r.stdout)
	assert.Regexp(t, `^error: --fail-if ack.p50 \+10%: slow changed by \+\d+.\d%\nerror: --fail-if completed.avg -10%: slow changed by -\d+.\d%\n$`, r.stderr)
	one := filepath.Join(slow, "0")
	r = call(nil, "compare", "--fail-if", "ack.p50 +10%", one, filepath.Join(slow, "1"))
	assert.Equal(t, result.StatusUsage, r.status)
	assert.Contains(t, r.stdout, "too few repeats to tell")
	assert.Equal(t, "error: --fail-if ack.p50 +10%: it cannot be told: 1 and 1 repeats are too few\nhint: 5 repeats of each are enough, if perfmq is not the limit\n", r.stderr)

	r = call(nil, "compare", one, filepath.Join(slow, "1"))
	assert.Equal(t, result.StatusOK, r.status, r.stderr)
}

// TestCompareFailedRuns: the figures of failed runs count only if there are no others, and --fail-if never passes
// failed runs.
func TestCompareFailedRuns(t *testing.T) {
	t.Parallel()
	good, mixed, bad := makeRepeats(t, "good", "1ms", 5), makeRepeats(t, "mixed", "1ms", 5), filepath.Join(t.TempDir(), "bad")
	r := call(nil, "mem", "producer", "--message-count", "8", "-o", "latency=1ms", "-o", "reject=4", "--result", filepath.Join(mixed, "5"))
	require.Equal(t, result.StatusFailed, r.status, r.stderr)
	r = call(nil, "mem", "producer", "--message-count", "8", "-o", "latency=1ms", "-o", "reject=4", "--result", bad)
	require.Equal(t, result.StatusFailed, r.status, r.stderr)

	r = call(nil, "compare", "--unlike", good, mixed, bad)
	assert.Equal(t, result.StatusOK, r.status, r.stderr)
	assert.Contains(t, r.stdout, "mixed (5 runs)")
	assert.Contains(t, r.stdout, "note: mixed: 1 of 6 runs are left out, as they failed; the first: messages rejected by the broker: 2\n")
	assert.Contains(t, r.stdout, "note: bad: 1 run failed, and the figures are those of failed runs; the first: messages rejected by the broker: 2\n")
	assert.Empty(t, r.stderr)

	r = call(nil, "compare", "--unlike", "--fail-if", "rejected +1000000%", good, mixed)
	assert.Equal(t, result.StatusUsage, r.status, "rejected is no metric of comparisons")
	r = call(nil, "compare", "--unlike", "--fail-if", "ack.p50 +1000000%", good, mixed)
	assert.Equal(t, result.StatusFailed, r.status)
	assert.Contains(t, r.stderr, "error: --fail-if: mixed: 1 of the runs failed, whatever their figures: messages rejected by the broker: 2\n")
	r = call(nil, "compare", "--unlike", "--fail-if", "ack.p50 +1000000%", mixed, good)
	assert.NotEqual(t, result.StatusFailed, r.status, "the first one is what the others are held against")
}

// TestFilesForFolders: a file of a result in place of its folder is refused, with the folder in the hint.
func TestFilesForFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "result.json")
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	for _, command := range []string{"report", "compare", "merge"} {
		r := call(nil, command, file, dir)
		assert.Equal(t, result.StatusUsage, r.status, command)
		assert.Contains(t, r.stderr, "error: "+file+" is a file: a result is a folder\nhint: name the folder of --result DIR, such as "+dir+"\n", command)
	}
}

// TestCompareMistakes: each mistake has a hint.
func TestCompareMistakes(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for args, want := range map[string]string{
		"":                           "at least two results are needed",
		"--metric ack.p98 X":         `--metric: unknown metric "ack.p98"; did you mean ack.p90?`,
		"--fail-if ack.p99 X Y":      `--fail-if: "ack.p99" must be a metric and a change`,
		empty + " " + empty:          "there is no result",
		"/does/not/exist /nor/this":  "no such file or directory",
		"--metric sent.min X /dev/1": `unknown metric "sent.min"`,
	} {
		r := call(nil, append([]string{"compare"}, strings.Fields(args)...)...)
		assert.Equal(t, result.StatusUsage, r.status, args)
		assert.Contains(t, r.stderr, want, args)
		assert.Contains(t, r.stderr, "hint: ", args)
	}
}
