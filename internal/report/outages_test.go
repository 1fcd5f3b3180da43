package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

func TestOutageLines(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.Local)
	s := &stats.Summary{Result: result.Result{Complete: true, Outcome: result.Outcome{Success: true}, Outages: []result.Outage{
		{
			Time: at.UnixMicro(), Length: 1_500_000, Confirmed: 1_500_000, Received: 2_000_000, Tried: 1_000_000, Back: 1_250_000,
			Reconnected: 3_000_000, Workers: []string{"a", "b"}, Attempts: 1,
			InDoubt: 7, Resent: 8, Lost: 3, Doubled: 5, Silent: 12_000_000, Recovered: 4_000_000, Watched: 6_000_000,
			Class: driver.ClassConnectionLost.String(), Error: "reset\x1b[2J",
		},
		{
			Time: at.Add(time.Minute).UnixMicro(), Workers: []string{"a"}, NotBack: []string{"a"}, Attempts: 12,
			LastAttempt: "no route", Class: driver.ClassConnect.String(), Error: "refused",
		},
	}}}
	require.Equal(t, "success after 2 outages (not all have an end): 7 in doubt", outcomeOf(s))
	require.Equal(t, []string{
		"at 03:04:05.006 for 1.5 s: the broker came back between 1 s and 1.25 s; 2 workers connected again after 3 s; 1 attempt failed; rate recovered after 4 s; nothing had come for 12 s before it; " +
			"7 in doubt; 8 resent; 3 lost; 5 duplicated; connection-lost: reset\x1b[2J", // writeList escapes it
		"at 03:05:05.006: no message came through after it; 1 of 1 worker not connected again; 12 attempts failed; the last: no route; connect: refused",
	}, outageLines(s))
	more := &result.MoreOutages{Count: 3000, Length: 3_600_000_000, Longest: 9_000_000, InDoubt: 40}
	many := &stats.Summary{Result: result.Result{Complete: true, Outcome: s.Outcome, Outages: s.Outages, MoreOutages: more}}
	require.Equal(t, "success after 3002 outages (not all have an end): 47 in doubt", outcomeOf(many))
	require.Equal(t, "beside the first and the last 100: 3000 outages, 3600 s in all, the longest 9 s; 40 in doubt",
		outageLines(many)[0])
	require.Len(t, outageLines(many), 3)
	var short bytes.Buffer
	require.NoError(t, NewShort(&short, ConsoleOptions{}).Summary(s))
	require.Contains(t, short.String(), "\noutage    at 03:05:05.006: no message came through after it; ")
	for want, o := range map[string]result.Outcome{
		"fail": {Interrupted: true}, "success": {Success: true, Interrupted: true}, "fail after 1 outage of 1.5 s: 7 in doubt": {},
	} {
		s := &stats.Summary{Result: result.Result{Complete: true, Outcome: o}}
		if strings.Contains(want, "outage") {
			s.Outages = many.Outages[:1]
		}
		require.Equal(t, want, outcomeOf(s), "the words of artemis perf")
	}
}

// TestOutageLive: during an outage, the console and the short format describe it, and a row counts the workers without
// a connection.
func TestOutageLive(t *testing.T) {
	t.Parallel()
	for text, p := range map[string]*stats.OutageProgress{
		"": nil, "1.5 s, 1 worker not connected": {Count: 1, Down: 1, Since: 1500 * time.Millisecond},
		"2.0 s, all workers connected again, no message yet": {Count: 1, Since: 2 * time.Second},
	} {
		var console, short bytes.Buffer
		s := snapshot(stats.Measure, 0, stats.Counters{}, result.Latencies{})
		s.Outage = p
		c := NewConsole(&console, ConsoleOptions{})
		require.NoError(t, c.Start(clientRun()))
		require.NoError(t, c.Interval(s))
		require.Equal(t, text != "", strings.Contains(console.String(), "--- outage:"))
		require.Contains(t, console.String(), text)
		sh := NewShort(&short, ConsoleOptions{Lines: true})
		require.NoError(t, sh.Start(clientRun()))
		require.NoError(t, sh.Interval(s))
		require.Contains(t, short.String(), text)
		require.Equal(t, text != "", strings.Contains(short.String(), "outage: "))
	}
}
