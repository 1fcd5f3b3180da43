package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestOutageLines(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.Local)
	s := &stats.Summary{Success: true, Start: at.Add(-time.Second), Outages: []stats.Outage{
		{
			Start: at, Confirmed: 1500 * time.Millisecond, Received: 2 * time.Second, Reconnected: 3 * time.Second, Workers: []string{"a", "b"}, Attempts: 1,
			InDoubt: 7, Class: driver.ClassConnectionLost, Error: "reset\x1b[2J",
		},
		{Start: at.Add(time.Minute), Workers: []string{"a"}, NotBack: []string{"a"}, Attempts: 12, Class: driver.ClassConnect, Error: "refused"},
	}}
	require.Equal(t, "success, after 2 outages (1.5 s)", outcomeOf(s))
	require.Equal(t, []string{
		"at 03:04:05.006 for 1.5 s: first confirmation after 1.5 s, first receipt after 2 s; 2 workers connected again after 3 s, 1 attempt failed; " +
			"7 in doubt; connection-lost: reset\x1b[2J", // writeList escapes it
		"at 03:05:05.006: no message came through after it; 1 of 1 worker not connected again, 12 attempts failed; connect: refused",
	}, outageLines(s))
	list := outages(s)
	require.EqualValues(t, 1_500_000, list[0].Length)
	require.EqualValues(t, 1_000_000, list[0].Elapsed)
	require.Equal(t, at.UnixMicro(), list[0].Time)
	require.Equal(t, "fail", outcomeOf(&stats.Summary{}))
}
