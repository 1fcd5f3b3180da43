package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestObservedStallsOfParts: the stalls of a side, broker and group are one finding; the first stalls come first.
func TestObservedStallsOfParts(t *testing.T) {
	s := &stats.Summary{}
	s.Start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).UnixMicro()
	add := func(side, group, broker string, at int) {
		s.Stalls = append(s.Stalls, result.Stall{
			Side: side, Group: group, Broker: broker, Elapsed: int64(at) * 1_000_000, Length: 2_000_000,
		})
	}
	add(stats.SendSide, "g", "", 1)
	add(stats.SendSide, "g", "b", 5)
	add(stats.ReceiveSide, "", "b", 9)
	add(stats.BothSides, "", "b", 13)
	add(stats.SendSide, "", "", 17)
	add(stats.SendSide, "g", "b", 21)
	var got []string
	Observe(s)
	for _, f := range s.Findings {
		got = append(got, f.Subject+": "+f.Text)
	}
	require.Equal(t, []string{
		"send, group g: the broker did not answer group g once, for 2 s at most: at 1.000 s (12:00:01) for 2.000 s",
		"send, group g, broker b: broker b did not answer group g 2 times, for 2 s at most: at 5.000 s (12:00:05) for 2.000 s, at 21.000 s (12:00:21) for 2.000 s",
		"receive, broker b: broker b did not deliver once, for 2 s at most: at 9.000 s (12:00:09) for 2.000 s",
		"both, broker b: broker b stalled once, for 2 s at most: at 13.000 s (12:00:13) for 2.000 s",
		"send: the broker did not answer once, for 2 s at most: at 17.000 s (12:00:17) for 2.000 s",
	}, got)
}

// Lines of the broker's log and events of its process are findings.
func TestObservedBroker(t *testing.T) {
	errors, warnings := uint64(4), uint64(0)
	s := &stats.Summary{Result: result.Result{BrokerSide: []result.BrokerSide{{
		Whole: result.BrokerUse{Errors: &errors, Warnings: &warnings}, Events: []result.BrokerEvent{{Text: "the broker's process 7 has ended"}},
	}}}}
	Observe(s)
	require.Equal(t, []string{"errors in the broker's log: 4", "the broker's process 7 has ended"}, s.Notes())
}
