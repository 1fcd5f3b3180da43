package words_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestVerdict: the graver outcome wins, and the effects of outages are named as far as they are known.
func TestVerdict(t *testing.T) {
	const second = 1_000_000
	ended := result.Outage{Time: 1, Length: 40 * second, Reconnected: 1, InDoubt: 15}
	later := result.Outage{Time: 100 * second, Length: 2 * second, Reconnected: 1}
	open := result.Outage{Time: 200 * second, Reconnected: 1, NotBack: []string{"producer-0"}}
	verified := &result.Verification{Known: true, Total: result.Verified{Lost: 3, Duplicates: 2}}
	failing := []result.Threshold{{Kept: true}, {Kept: false}}
	success := result.Outcome{Success: true}
	shards := make([]result.Part, 2)
	for _, c := range []struct {
		mark words.VerdictMark
		want string
		of   result.Result
	}{
		{words.MarkSuccess, "success", result.Result{Outcome: success, Outages: []result.Outage{}, Thresholds: failing[:1]}},
		{words.MarkThreshold, "threshold failed", result.Result{Outcome: success, Thresholds: failing}},
		{words.MarkThreshold, "threshold failed", result.Result{Outcome: result.Outcome{Success: true, Interrupted: true}, Thresholds: failing}},
		{words.MarkFailed, "failed", result.Result{Outcome: result.Outcome{Interrupted: true}, Thresholds: failing}},
		{words.MarkInterrupted, "interrupted", result.Result{Outcome: result.Outcome{Success: true, Interrupted: true}}},
		{words.MarkOutage, "success after 1 outage of 40 s: 15 in doubt", result.Result{Outcome: success, Outages: []result.Outage{ended}}},
		{words.MarkOutage, "success after 1 outage of 40 s: 0 missing, 15 in doubt", result.Result{Outcome: success, Outages: []result.Outage{ended}, Missing: new(uint64)}},
		{words.MarkOutage, "success after 1 outage of 102 ms: 0 in doubt", result.Result{Outcome: success, Outages: []result.Outage{{Time: 1, Length: 101_900, Reconnected: 1}}}},
		{words.MarkOutage, "success after 2 outages, the longest 40 s: 15 in doubt", result.Result{Outcome: success, Outages: []result.Outage{ended, later}}},
		{words.MarkFailed, "failed after 1 outage of 40 s: 3 lost, 15 in doubt, 2 duplicated", result.Result{Outages: []result.Outage{ended}, Missing: new(uint64(3)), Verification: verified}},
		{words.MarkFailed, "failed after 2 outages (not all have an end): 15 in doubt", result.Result{Outages: []result.Outage{ended, open}}},
		{words.MarkThreshold, "threshold failed after 1 outage of 40 s: 15 in doubt", result.Result{Outcome: success, Outages: []result.Outage{ended}, Thresholds: failing}},
		{words.MarkOutage, "success after outages, the longest 50 s: 22 in doubt", result.Result{Outcome: success, Parts: shards, Outages: []result.Outage{ended}, MoreOutages: &result.MoreOutages{Count: 1, Longest: 50 * second, InDoubt: 7}}},
		{words.MarkOutage, "success after 1 outage of 40 s: 30 in doubt", result.Result{Outcome: success, Parts: shards, Outages: []result.Outage{{Host: "a", Time: 1, Length: 40 * second, InDoubt: 15}, {Host: "b", Time: 1, Length: 40 * second, InDoubt: 15}}}},
	} {
		c.of.Complete = true
		v := words.VerdictOf(&c.of)
		require.Equal(t, c.want, v.String())
		require.Equal(t, c.mark, v.Mark, c.want)
	}
	require.Equal(t, words.Verdict{Mark: words.MarkInterrupted, Word: "unfinished"}, words.VerdictOf(&result.Result{}), "killed, or still running")
	require.Equal(t, words.MarkFailed, words.VerdictOf(&result.Result{Outcome: result.Outcome{Problems: []string{"messages lost: 1"}}}).Mark)
}
