package engine

import (
	"testing"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
)

// TestCutSettlements: a message that is received twice because its settlement was cut off is acknowledged once. Nothing
// else may be missing from the broker's count.
func TestCutSettlements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		acknowledged uint64
		outages      int
		counts       *result.Verified // nil without verification
		known        bool
		differs      int64
	}{
		"no outage":                     {97, 0, &result.Verified{Duplicates: 3}, true, -3},
		"three cut off":                 {97, 1, &result.Verified{Duplicates: 3, AfterOutage: 3}, true, 0},
		"one more is missing":           {96, 1, &result.Verified{Duplicates: 3, AfterOutage: 3}, true, -1},
		"others are unexplained":        {97, 1, &result.Verified{Duplicates: 3, AfterOutage: 1}, true, -2},
		"the marked ones are left out":  {97, 1, &result.Verified{Duplicates: 3, Redelivered: 2, AfterOutage: 3}, true, -2},
		"too many":                      {101, 1, &result.Verified{Duplicates: 3, AfterOutage: 3}, true, 1},
		"without verification":          {97, 1, nil, false, 0},
		"without verification, equal":   {100, 1, nil, true, 0},
		"without verification, no cuts": {97, 0, nil, true, -3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &stats.Summary{
				Outages: make([]stats.Outage, c.outages),
				BrokerCount: &stats.BrokerCount{Destinations: []stats.DestinationCount{{
					Destination:  "queue://TEST",
					Acknowledged: stats.Compared{Known: true, Count: c.acknowledged, Least: 100, Most: 100},
				}}},
			}
			if c.counts != nil {
				s.Verification = &verify.Result{Scopes: []verify.Scope{{Destination: "queue://TEST", Verified: *c.counts}}}
			}
			cutSettlements(s)
			d := &s.BrokerCount.Destinations[0]
			require.Equal(t, c.known, d.Acknowledged.Known)
			require.Equal(t, c.differs, d.Acknowledged.Differs())
			require.Equal(t, !c.known, d.Why != "")
		})
	}
}

// TestCountedAnew: once the broker could not be reached, a count that is too low says nothing. One that is too high does.
func TestCountedAnew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		unreached bool
		added     uint64
		known     bool
		differs   int64
	}{
		"reached, too low":    {false, 70, true, -30},
		"unreached, too low":  {true, 70, false, 0},
		"unreached, right":    {true, 100, true, 0},
		"unreached, too high": {true, 101, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := stats.Compared{Known: true, Count: c.added, Least: 100, Most: 100}
			s := &stats.Summary{BrokerCount: &stats.BrokerCount{Destinations: []stats.DestinationCount{
				{Unreached: c.unreached, Added: count, Acknowledged: count},
			}}}
			countedAnew(s)
			d := &s.BrokerCount.Destinations[0]
			for _, got := range []stats.Compared{d.Added, d.Acknowledged} {
				require.Equal(t, c.known, got.Known)
				require.Equal(t, c.differs, got.Differs())
			}
			require.Equal(t, !c.known, d.Why != "")
		})
	}
	countedAnew(&stats.Summary{})
}
