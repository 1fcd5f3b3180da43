package cli

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

const sixCells = `
name: six
vars: {count: 100}
labels: {heap: "${heap}"}
verify: true
broker: {url: "mem://NAME"}
matrix:
  senders.producers: [1, 2, 3]
  heap: [1g, 2g]
repeats: 2
groups:
  senders: {role: producer, destination: queue://A, message-count: "${count}", max-pending: 10, producers: "${senders.producers}"}
  readers: {role: consumer, destination: queue://A}
before: echo "$PERFMQ_CELL/$PERFMQ_REPEAT ${heap}" >> LOG
thresholds: [lost == 0, completed == 100]
`

const (
	patience = 2 * time.Minute
	tick     = 5 * time.Millisecond
)

// sweepFile writes a scenario with a mem broker of the test's own. Its commands write into the file log.
func sweepFile(t *testing.T, text string) (file, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	name := regexp.MustCompile(`[^A-Za-z]`).ReplaceAllString(t.Name(), "")
	return write(t, "six.yaml", strings.NewReplacer("NAME", name, "LOG", log).Replace(text)), log
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	text := musttest.Get(os.ReadFile(path))(t)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// TestSweep: each cell runs the requested number of times, and the results have the figures of the sweep; commands see
// label, cell and repeat; a finished sweep does not run again.
func TestSweep(t *testing.T) {
	t.Parallel()
	file, log := sweepFile(t, sixCells)
	dir := filepath.Join(t.TempDir(), "result")
	got := call(nil, "run", file, "--result", dir, "--broker-pid", strconv.Itoa(os.Getpid()))
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	require.Equal(t, []string{"1/1 1g", "2/1 2g", "3/1 1g", "4/1 2g", "5/1 1g", "6/1 2g", "1/2 1g", "2/2 2g", "3/2 1g", "4/2 2g", "5/2 1g", "6/2 2g"}, linesOf(t, log))
	require.Contains(t, got.stderr, "note: 6 cells, 2 runs of each\n")
	require.Contains(t, got.stderr, "note: cell 6 of 6, repeat 2 of 2")
	require.Contains(t, got.stdout, "--- SWEEP six: medians of the repeats, with the farthest repeat")
	s := musttest.Get(record.ReadSweep(dir))(t)
	require.Len(t, s.Runs, 12)
	for _, r := range s.Runs {
		require.Equal(t, record.Done, r.State)
		one := musttest.Get(result.Read(filepath.Join(dir, r.Folder)))(t)
		require.True(t, one.Complete)
		require.EqualValues(t, 100, one.Total.Producers.Completed)
		require.Equal(t, r.Values["heap"], one.Labels["heap"])
		require.InDelta(t, 100, r.Figures["completed"], 0)
		require.InEpsilon(t, *one.Figures.Completed, r.Figures["completed.avg"], 1e-9)
		require.InDelta(t, float64(one.Latencies[result.Ack].P99), r.Figures["ack.p99"], 0)
		require.InDelta(t, float64(one.Latencies[result.Ack].P9999), r.Figures["ack.p99.99"], 0)
		require.Equal(t, one.Limit.Kind, r.Limits[0].Kind)
		require.InDelta(t, float64(*one.BrokerSide[0].Whole.Memory), r.Figures["broker.memory"], 0)
		var plan struct {
			Steps []struct{ Groups []struct{ Producers int } }
		}
		require.NoError(t, json.Unmarshal(one.Plan, &plan))
		require.Equal(t, r.Values["senders.producers"], string(rune('0'+plan.Steps[0].Groups[0].Producers)))
	}
	rows := s.Rows()
	require.Len(t, rows, 6)
	require.Equal(t, 2, rows[0].Good)

	again := call(nil, "run", file, "--result", dir)
	require.Equal(t, result.StatusOK, again.status)
	require.Contains(t, again.stderr, "12 of 12 runs are finished")
	require.Equal(t, got.stdout[strings.Index(got.stdout, "--- SWEEP"):], again.stdout[strings.Index(again.stdout, "--- SWEEP"):])
	require.Len(t, linesOf(t, log), 12)

	other := call(nil, "run", file, "--result", dir, "--set", "count=50")
	require.Equal(t, result.StatusUsage, other.status)
	require.Contains(t, other.stderr, "has a sweep of another plan")
	require.Len(t, linesOf(t, log), 12)
}

// TestSweepResumes: the finished runs of a killed sweep stay; its unfinished run is repeated.
func TestSweepResumes(t *testing.T) {
	t.Parallel()
	file, log := sweepFile(t, sixCells)
	dir := filepath.Join(t.TempDir(), "result")
	require.Equal(t, result.StatusOK, call(nil, "run", file, "--result", dir).status)
	s := musttest.Get(record.ReadSweep(dir))(t)
	s.Runs[3].State = record.Running // the state after kill -9
	require.NoError(t, s.Write(dir))
	got := call(nil, "run", file, "--result", dir)
	require.Equal(t, result.StatusOK, got.status, got.stderr)
	require.Contains(t, got.stderr, "11 of 12 runs are finished\n")
	ran := linesOf(t, log)
	require.Len(t, ran, 13)
	require.Equal(t, "4/1 2g", ran[12])
	s = musttest.Get(record.ReadSweep(dir))(t)
	require.Equal(t, record.Done, s.Runs[3].State)
	require.Equal(t, 2, s.Runs[3].Attempts)
	_, err := result.Read(filepath.Join(dir, s.Runs[3].Folder))
	require.NoError(t, err)
	got = call(nil, "run", file, "--result", dir)
	require.Contains(t, got.stderr, "12 of 12 runs are finished\n")
	require.NotContains(t, got.stderr, "runs of each")
	require.Contains(t, got.stdout, "--- SWEEP ")
}

// TestSweepInterrupted: Ctrl-C ends the sweep after the summary of the present run, which counts as unfinished: with
// thresholds that fail.
func TestSweepInterrupted(t *testing.T) {
	t.Parallel()
	endless := strings.Replace(sixCells, "count: 100", "count: 1000000000", 1)
	text := strings.Replace(endless, "thresholds: [lost == 0, completed == 100]", "thresholds: [lost == 0, completed == 0]", 1)
	file, log := sweepFile(t, text)
	dir := filepath.Join(t.TempDir(), "result")
	signals := make(chan os.Signal)
	done := make(chan ended, 1)
	go func() { done <- callWith(signals, nil, "run", file, "--result", dir) }()
	require.Eventually(t, func() bool { return rowsBelow(dir) > 1 }, patience, tick) // a second has passed
	select {
	case signals <- syscall.SIGINT:
	case <-time.After(patience):
		require.Fail(t, "nobody takes the signal")
	}
	select {
	case got := <-done:
		require.Equal(t, result.StatusInterrupted, got.status, got.stderr)
		require.Contains(t, got.stderr, "the sweep ends early: 0 of 12 runs are finished; the same command goes on with it")
	case <-time.After(patience):
		require.Fail(t, "the sweep goes on")
	}
	require.Len(t, linesOf(t, log), 1)
	s := musttest.Get(record.ReadSweep(dir))(t)
	require.Equal(t, record.Unfinished, s.Runs[0].State)
}

// TestForeignFolder: a sweep refuses a folder with other files, and removes none of them.
func TestForeignFolder(t *testing.T) {
	t.Parallel()
	file, _ := sweepFile(t, strings.Replace(sixCells, "repeats: 2", "repeats: 1", 1))
	dir := filepath.Join(t.TempDir(), "result")
	require.NoError(t, os.Mkdir(dir, 0o755))
	old := filepath.Join(dir, "001", "result.json")
	require.NoError(t, os.Mkdir(filepath.Dir(old), 0o755))
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	got := call(nil, "run", file, "--result", dir)
	require.Equal(t, result.StatusUsage, got.status)
	require.Contains(t, got.stderr, "the folder is not empty, and has no sweep.json")
	require.FileExists(t, old)
	require.NoError(t, os.RemoveAll(filepath.Dir(old)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".sweep.json.1"), nil, 0o600)) // killed while it first saved
	for range 2 {
		got = call(nil, "run", file, "--result", dir)
		require.Equal(t, result.StatusOK, got.status, got.stderr)
	}
	other := filepath.Join(t.TempDir(), "repeat-1", "result.json")
	require.NoError(t, os.Mkdir(filepath.Dir(other), 0o755))
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Dir(filepath.Dir(other)), filepath.Join(dir, "link")))
	s := musttest.Get(record.ReadSweep(dir))(t)
	for _, c := range []struct {
		folder   string
		attempts int
		want     string
	}{
		{s.Runs[1].Folder, 0, "repeat-1 already"},
		{"link/repeat-1", 1, "path escapes"},
		{".", 1, "not within"},
		{"x/..", 1, "not within"},
		{"../x", 1, "not within"},
	} {
		s.Runs[0].State, s.Runs[0].Folder, s.Runs[0].Attempts = record.Waiting, c.folder, c.attempts
		require.NoError(t, s.Write(dir))
		_ = call(nil, "run", file, "--result", dir)
		got = call(nil, "run", file, "--result", dir)
		require.NotEqual(t, result.StatusOK, got.status, c.folder)
		require.Contains(t, got.stderr, c.want)
		require.FileExists(t, filepath.Join(dir, s.Runs[1].Folder, result.RowsFile))
		require.FileExists(t, other)
	}
}

// rowsBelow returns the number of rows written so far in the results below a folder.
func rowsBelow(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // it is not there yet
		if err == nil && d.Name() == result.RowsFile {
			text, _ := os.ReadFile(path) //nolint:gosec // of the test's own folder
			n += strings.Count(string(text), "\n")
		}
		return nil
	})
	return n
}

// TestSweepFailures: a failed run ends the sweep only on request; the worst run determines the exit status, and failed
// runs do not count in the figures.
func TestSweepFailures(t *testing.T) {
	t.Parallel()
	const failing = `
name: failing
broker: {url: "mem://NAME", options: {reject: "${options.reject}"}}
matrix: {senders.message-count: [10, 20, 30], options.reject: [1000000, 1]}
groups:
  senders: {role: producer, destination: queue://A, message-count: "${senders.message-count}"}
  readers: {role: consumer, destination: queue://A}
before: echo x >> LOG
thresholds: [completed > 15]
`
	file, log := sweepFile(t, failing)
	got := call(nil, "run", file)
	require.Equal(t, result.StatusFailed, got.status)
	require.Len(t, linesOf(t, log), 6)
	require.Contains(t, got.stdout, "--- senders.message-count=10 options.reject=1000000: ")
	require.Regexp(t, `senders.message-count=10 options.reject=1000000: .*a threshold failed`, got.stdout)
	require.Regexp(t, `senders.message-count=20 options.reject=1: .*FAILED: messages rejected by the broker: 20`, got.stdout)
	require.Regexp(t, ` 0, 1 failed `, got.stdout)

	file, log = sweepFile(t, failing+"on-failure: stop\n")
	got = call(nil, "run", file)
	require.Equal(t, result.StatusFailed, got.status)
	require.Len(t, linesOf(t, log), 2)
	require.Contains(t, got.stderr, "the sweep ends early: 2 of 6 runs are finished\n")

	got = call(nil, "run", write(t, "a.yaml", strings.Replace(failing, "mem://NAME", "alpha://x", 1)+"repeats: 3\n"))
	require.NotEqual(t, result.StatusOK, got.status)
	require.Contains(t, got.stderr, "options.reject")
}

// TestSweepSeparates: the destinations of a run are kept or fresh.
func TestSweepSeparates(t *testing.T) {
	t.Parallel()
	const text = `
name: queues
broker: {url: "mem://NAME"}
repeats: 3
groups:
  senders: {role: producer, destination: queue://A, message-count: 10}
`
	for mode, want := range map[string][]int{"keep": {10, 20, 30}, "fresh": {0, 0, 0}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			file, _ := sweepFile(t, text+"between-runs: "+mode+"\n")
			checked := call(nil, "run", "--dry-run", file)
			require.Equal(t, result.StatusOK, checked.status, checked.stderr)
			dir := filepath.Join(t.TempDir(), "result")
			got := call(nil, "run", file, "--result", dir)
			require.Equal(t, result.StatusOK, got.status, got.stderr)
			s := musttest.Get(record.ReadSweep(dir))(t)
			seen := map[string]bool{}
			for i := range s.Runs {
				one := musttest.Get(result.Read(filepath.Join(dir, s.Runs[i].Folder)))(t)
				d := one.BrokerCount.Destinations[0]
				seen[d.Destination] = true
				if mode != "fresh" {
					require.EqualValues(t, want[i], *d.Depth)
				} else {
					require.EqualValues(t, 10, *d.Depth)
				}
			}
			if mode == "fresh" {
				require.Len(t, seen, 3)
			}
		})
	}
}

// TestSweepMistakes: mistakes are reported before anything is sent.
func TestSweepMistakes(t *testing.T) {
	t.Parallel()
	file, log := sweepFile(t, sixCells)
	for args, want := range map[string]string{
		"--repeats 0":   "--repeats=0: must be a whole number from 1 to 1000",
		"--json x.json": "--json is for one run, and there are several",
		"--set count=x": "message-count",
	} {
		got := call(nil, append([]string{"run", file}, strings.Fields(args)...)...)
		require.Equal(t, result.StatusUsage, got.status, args)
		require.Contains(t, got.stderr, want, args)
	}
	for add, want := range map[string]string{
		"knee: heap":           "unknown setting \"knee\" of the file",
		"find-max: lost == 0":  "--find-max is for one run, and there are several",
		"settle: long":         "settle: ",
		"order: sorted":        "order: must be one of in-turn, shuffled",
		"between-runs: reread": "between-runs: must be one of keep, fresh",
	} {
		file, _ := sweepFile(t, sixCells+add+"\n")
		got := call(nil, "run", file)
		require.Equal(t, result.StatusUsage, got.status, add)
		require.Contains(t, got.stderr, want, add)
	}
	secret, _ := sweepFile(t, strings.Replace(sixCells, "heap: [1g, 2g]", `heap: ["amqp://joe:s3cret@127.0.0.1:1", 2g]`, 1))
	dir := filepath.Join(t.TempDir(), "result")
	got := call(nil, "run", "--result", dir, secret)
	require.Equal(t, result.StatusUsage, got.status)
	require.Contains(t, got.stderr, "a value of the axis heap has a password")
	require.Contains(t, got.stderr, "hint: give the password by --password or PERFMQ_PASSWORD")
	require.NotContains(t, got.stderr, "s3cret")
	require.NoDirExists(t, dir)
	require.NoFileExists(t, log)
	plan := call(nil, "run", file, "--dry-run")
	require.Equal(t, result.StatusOK, plan.status)
	require.Contains(t, plan.stdout, "# note: 6 cells, 2 runs of each\n")
	require.Contains(t, plan.stdout, "# note: cell 6: senders.producers=3 heap=2g\n")
}

// TestFindNothing: if no rate passes a threshold, the status is 3, or 5 on a busy machine, and all rates tried are
// printed; a second search does not overwrite the first.
func TestFindNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "found")
	args := []string{
		"mem", "producer", "--find-max", "ack.p50 < 5ms", "-o", "latency=30ms", "--rate", "5", "--duration", "400ms", "--warmup", "0", "--result", dir, "queue://A",
	}
	r := call(nil, args...)
	require.Contains(t, []int{result.StatusThreshold, result.StatusUndecided}, r.status, r.stderr)
	assert.Contains(t, r.stdout, "--- FIND-MAX: the highest rate at which ack.p50 < 5ms, completed.avg >= 99% of target, delay.p99 < 100ms; a load may miss its target by 2 messages\n")
	assert.Regexp(t, `^error: (not even 1 msg/s passes the thresholds: ack.p50 < 5ms: |undecided: perfmq was the limit of )`, r.stderr)
	text := musttest.Get(os.ReadFile(filepath.Join(dir, record.SearchFile)))(t)
	var found record.Search
	require.NoError(t, json.Unmarshal(text, &found))
	assert.Zero(t, found.Rate)
	assert.GreaterOrEqual(t, len(found.Points), 2)
	assert.True(t, found.Complete)

	again := call(nil, args...)
	assert.Equal(t, result.StatusUsage, again.status)
	assert.Contains(t, again.stderr, "the folder is not empty")
	kept := musttest.Get(os.ReadFile(filepath.Join(dir, record.SearchFile)))(t)
	assert.Equal(t, string(text), string(kept))
}

// TestScenarioSearch: a search in a file does what --find-max does, for one group; it is no sweep.
func TestScenarioSearch(t *testing.T) {
	t.Parallel()
	const text = `
name: searches
broker: {url: "mem://scenario-search", options: {latency: 30ms}}
find-max: [ack.p50 < 20ms]
groups:
  senders: {role: producer, destination: queue://A, max-pending: 1, rate: 4}
duration: 300ms
`
	file := write(t, "search.yaml", text)
	plan := call(nil, "run", file, "--dry-run")
	require.Equal(t, result.StatusOK, plan.status, plan.stderr)
	require.Contains(t, plan.stdout, "# note: a search: each of its loads has another rate\n")
	dir := filepath.Join(t.TempDir(), "found")
	got := call(nil, "run", file, "--result", dir, "--json", filepath.Join(t.TempDir(), "found.json"))
	require.Contains(t, []int{result.StatusThreshold, result.StatusUndecided}, got.status, got.stderr) // perfmq may be the limit on a busy machine
	found := musttest.Get(record.ReadSearch(dir))(t)
	require.True(t, found.Complete)
	require.Equal(t, "ack.p50 < 20ms", found.Thresholds[0])
	require.Regexp(t, `(?m)^--- +4 msg/s: (fail|undecided) +ack.p50 [^;]*; limit: `, got.stdout)
	for i, p := range found.Points {
		_, err := result.Read(filepath.Join(dir, record.PointFolder(i+1, p.Rate)))
		require.NoError(t, err)
	}
	again := call(nil, "run", file, "--result", dir)
	require.Equal(t, result.StatusUsage, again.status)
	require.Contains(t, again.stderr, "the folder is not empty")

	for add, want := range map[string]string{
		"repeats: 3": "--find-max is for one run, and there are several",
		"steps: [{name: one, duration: 1s}, {name: two, duration: 1s}]": "a search needs one step with a duration",
	} {
		body := text
		if strings.HasPrefix(add, "steps") {
			body = strings.Replace(text, "duration: 300ms\n", "", 1)
		}
		got := call(nil, "run", write(t, "search.yaml", body+add+"\n"))
		require.Equal(t, result.StatusUsage, got.status, add)
		require.Contains(t, got.stderr, want, add)
	}
	got = call(nil, "run", file, "--hdr", "x.hdr")
	require.Contains(t, got.stderr, "--hdr is for one run, and there are several")
}
