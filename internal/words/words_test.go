package words_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write docs/result-reference.md")

// TestGuideHasAllKinds: the table of findings in docs/result-reference.md is made of the kinds.
func TestGuideHasAllKinds(t *testing.T) {
	const guide, from, to = "../../docs/result-reference.md", "<!-- findings, written by -update of internal/words -->\n", "<!-- end of findings -->"
	text := musttest.Get(os.ReadFile(guide))(t)
	before, rest, ok := strings.Cut(string(text), from)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, to)
	require.True(t, ok)
	var b strings.Builder
	b.WriteString("\n| kind | severity | text |\n| --- | --- | --- |\n")
	values := regexp.MustCompile(`%[.0-9]*[df]|%s|%%`)
	seen := map[string]bool{}
	for _, k := range words.Kinds() {
		require.False(t, seen[k.Name], k.Name)
		seen[k.Name] = true
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.Severity, values.ReplaceAllStringFunc(k.Text, func(verb string) string {
			switch verb {
			case "%s":
				return "…"
			case "%%":
				return "%"
			default:
				return "N"
			}
		}))
	}
	want := before + from + b.String() + "\n" + to + after
	if *update {
		require.NoError(t, os.WriteFile(guide, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "run the test with -update to write it")
}

func TestFind(t *testing.T) {
	require.Equal(t, result.Finding{
		Kind: "rejected", Severity: "problem", Count: 3, Subject: "queue://A", Failure: true, Text: "queue://A: messages rejected by the broker: 3",
	}, words.Find("rejected", "queue://A", 3, 3))
	pause := words.Find("pause", words.Perfmq, 1, "once", time.Second, "12:00:00", 5)
	require.Equal(t, "perfmq was paused once, the longest for 1s until 12:00:00: the latencies of 5 sends and receipts include that", pause.Text)
	require.False(t, pause.Failure)
	require.True(t, words.As(pause, result.Problem).Failure)
}

func TestUnits(t *testing.T) {
	for want, got := range map[string]string{
		"1 outage": words.Plural(1, "outage"), "2 outages": words.Plural(uint64(2), "outage"), "once": words.Times(1),
		"< 0.01 %": words.Percent(1e-6), "> 99.99 %": words.Percent(1 - 1e-6), "100.00 %": words.Percent(1), "0.00 %": words.Percent(0),
		"34 µs": words.Duration(34), "1.20 ms": words.Duration(1200), "0 µs": words.Duration(0), "2.00 s": words.Duration(2_000_000), "1m40s": words.Duration(100_400_000),
		"999 s": words.Seconds(999 * time.Second), "1000 s": words.Seconds(999500 * time.Millisecond), "0.123 s": words.Seconds(123456 * time.Microsecond),
		"1.50": words.Megabytes(1.5e6), "12.3k": words.Short(12_345), "9999": words.Short(9999), "10.0k": words.Short(10_000), "100k": words.Short(99_960),
		"999k": words.Short(999_400), "1.00M": words.Short(999_900), "2.50G": words.Short(2_500_000_000), "0.25": words.Short(0.25),
		"a, b and 1 more": words.First([]string{"a", "b", "c"}, 2, ", "),
	} {
		require.Equal(t, want, got)
	}
}

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
