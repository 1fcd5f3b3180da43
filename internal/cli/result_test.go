package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

// jsonTotals are the totals of --json that a result has, too.
type jsonTotals struct {
	Sent        uint64                       `json:"totalSent"`
	Blocked     uint64                       `json:"totalBlocked"`
	Completed   uint64                       `json:"totalCompleted"`
	Received    uint64                       `json:"totalReceived"`
	Rejected    uint64                       `json:"totalRejected"`
	Failed      uint64                       `json:"totalFailed"`
	Unconfirmed uint64                       `json:"totalUnconfirmed"`
	Failures    map[string]map[string]uint64 `json:"failures"`
	Missing     *uint64                      `json:"totalMissing"`
	Details     result.Result
	Ack         struct{ Count, Max int64 } `json:"totalSendTime"`
	Reason      string                     `json:"reason"`
}

// TestResultIsThatOfTheSummary: the numbers of a result equal those of --json, whether they are read from result.json,
// its workers, the sum of its rows or the histograms.
func TestResultIsThatOfTheSummary(t *testing.T) {
	t.Parallel()
	schemas := resulttest.Compile(t, result.Schema(), result.SchemaID)
	for name, c := range map[string]struct {
		args   string
		status int
		found  string // kind of a finding; empty if there is none
	}{
		"client":     {"mem client --message-count 2003 --producers 3 --consumers 2 --max-pending 10 queue://A", result.StatusOK, ""},
		"rated":      {"mem client --rate 500 --duration 2 --warmup 1 --max-pending 5 --verify topic://A", result.StatusOK, ""},
		"producer":   {"mem producer --message-count 500 queue://A", result.StatusOK, ""},
		"rejected":   {"mem client --message-count 300 -o reject=10 --verify queue://A", result.StatusFailed, "rejected"},
		"lost":       {"mem client --message-count 300 -o lose=100 --verify --drain-timeout 2s queue://A", result.StatusFailed, "lost"},
		"allowed":    {"mem client --message-count 300 -o duplicate=100 --verify --allow-duplicates queue://A", result.StatusOK, "duplicated"},
		"failed":     {"mem producer --message-count 300 -o fail=7 queue://A", result.StatusFailed, "failed"},
		"withheld":   {"mem client --message-count 300 --commit-interval 10 --max-pending 20 queue://A", result.StatusOK, ""},
		"with login": {"mem client --message-count 30 --user u --password hunter2 -o auth=u:hunter2", result.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			dir, file := filepath.Join(folder, "run"), filepath.Join(folder, "run.json")
			r := call(nil, append(strings.Fields(c.args), "--result", dir, "--json", file)...)
			require.Equal(t, c.status, r.status, r.stderr)
			schemas.Validate(t, dir)
			got := musttest.Get(result.ReadHistograms(dir))(t)
			text := musttest.Get(os.ReadFile(file))(t)
			var records []jsonTotals
			require.NoError(t, json.Unmarshal(text, &records))
			want := records[len(records)-1]
			require.NotContains(t, string(text), "hunter2")
			head := want.Details.Head
			assert.JSONEq(t, string(got.Plan), string(head.Plan))
			head.Plan = got.Plan
			assert.Equal(t, got.Head, head, "plan, versions and run number")

			p, k := got.Total.Producers, got.Total.Consumers
			require.Equal(t, []uint64{want.Sent, want.Blocked, want.Completed, want.Rejected, want.Failed, want.Unconfirmed},
				[]uint64{p.Sent, p.Blocked, p.Completed, p.Rejected, p.Failed, p.Unconfirmed})
			assert.Equal(t, want.Details.Measured, got.Measured)
			assert.Equal(t, want.Details.Latencies, got.Latencies)
			if k != nil {
				assert.Equal(t, want.Received, k.Received)
			}
			assert.Equal(t, want.Missing, got.Missing)
			assert.Equal(t, want.Reason, got.Outcome.Reason)
			assert.Equal(t, c.status, got.Outcome.Status)
			assert.Equal(t, []int64{want.Ack.Count, want.Ack.Max}, []int64{got.Latencies[result.Ack].Count, got.Latencies[result.Ack].Max})
			assert.EqualValues(t, got.Measured.Producers.Completed, got.Latencies[result.Ack].Count, "each completion has its latency")

			var sent, blocked, completed, received uint64
			for _, w := range got.Workers {
				if w.Producers != nil {
					sent, blocked, completed = sent+w.Producers.Sent, blocked+w.Producers.Blocked, completed+w.Producers.Completed
				} else {
					received += w.Consumers.Received
				}
			}
			assert.Equal(t, []uint64{p.Sent, p.Blocked, p.Completed}, []uint64{sent, blocked, completed}, "the workers add up")
			if k != nil {
				assert.Equal(t, k.Received, received)
			}
			var failures uint64
			for _, e := range got.Errors {
				failures += e.Count
				assert.NotEmpty(t, e.Examples)
			}
			assert.Equal(t, p.Rejected+p.Failed+p.Unconfirmed, failures)

			kinds := map[string]bool{}
			for _, f := range got.Findings {
				busy := f.Subject == "tester" || slices.Contains([]string{"saturated", "rate-missed", "stall", "not-measured"}, f.Kind) // of a busy machine
				if f.Kind == c.found || !busy {
					kinds[f.Kind] = true
				}
			}
			assert.Equal(t, c.found != "", len(kinds) > 0, kinds)
			assert.Equal(t, c.found != "", kinds[c.found], kinds)

			requireRowsAddUp(t, dir, got)
		})
	}
}

// requireRowsAddUp removes result.json, and requires that the sum of the rows equals its totals.
func requireRowsAddUp(t *testing.T, dir string, want *result.Result) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(dir, result.ResultFile)))
	got := musttest.Get(result.Read(dir))(t)
	require.False(t, got.Complete)
	for _, pair := range []struct{ want, got any }{{want.Total, got.Total}, {want.Latencies, got.Latencies}, {want.Head, got.Head}} {
		a := musttest.Get(json.Marshal(pair.want))(t)
		b := musttest.Get(json.Marshal(pair.got))(t)
		require.JSONEq(t, string(a), string(b))
	}
}

// TestResultsOfBefore: results of version f9c44c09 in testdata/before are read, reported, merged, compared and verified. They
// are never renewed.
func TestResultsOfBefore(t *testing.T) {
	before := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join("testdata", "before", name))
		}
		return paths
	}
	for _, c := range []struct {
		args     []string
		status   int
		contains []string
	}{
		{append([]string{"report", "--format", "csv"}, before("lost", "shard1", "shard2", "set1/1", "set1/2", "set2/1", "set2/2")...), result.StatusOK, []string{",600,600,0,0,299.848,,,600,299.848,", ",4.519,"}},
		{append([]string{"report", "--format", "markdown"}, before("scenario")...), result.StatusOK, []string{"| 1,628 |", "told", "290"}},
		{
			append([]string{"merge", "--result", filepath.Join(t.TempDir(), "both")}, before("shard1", "shard2")...), result.StatusOK,
			[]string{"total received:      900", "19.86"},
		},
		{append([]string{"compare", "--unlike"}, before("set1", "set2")...), result.StatusOK, []string{"ack.p50"}},
		{append([]string{"verify"}, before("lost/verify.pv")...), result.StatusFailed, []string{"596"}},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			r := call(nil, c.args...)
			require.Equal(t, c.status, r.status, r.stderr)
			for _, text := range c.contains {
				require.Contains(t, r.stdout, text)
			}
		})
	}
}

// TestDamagedResults: report, compare and merge refuse the same folders, and name the file and what to do.
func TestDamagedResults(t *testing.T) {
	t.Parallel()
	for file, says := range map[string]string{
		result.RowsFile: ": it is missing", result.LatenciesFile: ": it is missing", result.ResultFile: ": its digest does not match",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			good, bad := filepath.Join(makeRepeats(t, "good", "1ms", 1), "0"), filepath.Join(makeRepeats(t, "bad", "1ms", 1), "0")
			path := filepath.Join(bad, file)
			text := musttest.Get(os.ReadFile(path))(t)
			require.NoError(t, os.Remove(path))
			if file == result.ResultFile {
				changed := regexp.MustCompile(`("completed": )\d`).ReplaceAll(text, []byte("${1}7"))
				require.NotEqual(t, string(text), string(changed))
				require.NoError(t, os.WriteFile(path, changed, 0o600))
			}
			for _, args := range [][]string{
				{"report", "--format", "csv", bad},
				{"report", "--format", "csv", filepath.Dir(bad)},
				{"compare", good, bad},
				{"merge", bad},
			} {
				r := call(nil, args...)
				assert.Equal(t, result.StatusUsage, r.status, args)
				assert.Empty(t, r.stdout, args)
				assert.Contains(t, r.stderr, file+says, args)
				assert.Contains(t, r.stderr, "the files were changed or are not complete", args)
			}
		})
	}
}

// TestKilledResult: after a kill, report and merge --partial read the rest.
func TestKilledResult(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "before", "shard1"))))
	require.NoError(t, os.Remove(filepath.Join(dir, result.ResultFile)))
	text := musttest.Get(os.ReadFile(filepath.Join(dir, result.LatenciesFile)))(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, result.LatenciesFile), text[:len(text)-10], 0o600))
	for _, args := range [][]string{{"report", "--format", "csv", dir}, {"merge", "--partial", dir}} {
		r := call(nil, args...)
		assert.NotEqual(t, result.StatusUsage, r.status, r.stderr)
		assert.NotEmpty(t, r.stdout)
	}
}
