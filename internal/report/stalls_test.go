package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
)

// Stalls at regular times are told with their period.
func TestObservedPeriod(t *testing.T) {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := &stats.Summary{Start: start}
	for i := range 5 {
		s.Stalls.List = append(s.Stalls.List, stats.Stall{Side: stats.SendSide, Start: time.Duration(10*i+4) * time.Second, Length: 2 * time.Second})
	}
	f := Observations(s)
	require.Len(t, f, 1)
	require.Equal(t, "stall", f[0].Kind)
	require.Equal(t, "send", f[0].Subject)
	require.EqualValues(t, 5, f[0].Count)
	require.Equal(t, "the broker did not answer 5 times, for 2 s at most: no message was confirmed "+
		"at 4.000 s for 2.000 s, at 14.000 s for 2.000 s, at 24.000 s for 2.000 s and 2 times more; every 10 s", f[0].Text)
}

// TestObservedStallsOfParts: the stalls of the run come first, then those of each broker and group, by name.
func TestObservedStallsOfParts(t *testing.T) {
	s := &stats.Summary{Start: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	add := func(side stats.Side, group, broker string, at int) {
		s.Stalls.List = append(s.Stalls.List, stats.Stall{
			Side: side, Group: group, Broker: broker, Start: time.Duration(at) * time.Second, Length: 2 * time.Second,
		})
	}
	add(stats.SendSide, "g", "", 1)
	add(stats.SendSide, "g", "b", 5)
	add(stats.ReceiveSide, "", "b", 9)
	add(stats.BothSides, "", "b", 13)
	add(stats.SendSide, "", "", 17)
	var got []string
	for _, f := range Observations(s) {
		require.EqualValues(t, 1, f.Count)
		got = append(got, f.Subject+": "+f.Text)
	}
	require.Equal(t, []string{
		"send: the broker did not answer once for 2 s: no message was confirmed from 17.0 s (12:00:17) on",
		"send, group g: the broker did not answer group g once for 2 s: no message was confirmed from 1.0 s (12:00:01) on",
		"send, group g, broker b: broker b did not answer group g once for 2 s: no message was confirmed from 5.0 s (12:00:05) on",
		"both, broker b: broker b stalled once for 2 s: nothing was confirmed or received from 13.0 s (12:00:13) on",
		"receive, broker b: broker b did not deliver once for 2 s: nothing was received from 9.0 s (12:00:09) on",
	}, got)
}
