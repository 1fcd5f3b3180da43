package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestCountedAnew: after an outage, or once the broker could not be reached, a count that is too low says nothing. One
// that is too high does.
func TestCountedAnew(t *testing.T) {
	for name, c := range map[string]struct {
		outages             int
		unreached           bool
		count               uint64
		added, acknowledged bool // known
	}{
		"too low":                    {0, false, 70, true, true},
		"too low after an outage":    {1, false, 70, true, false},
		"too low, unreached":         {0, true, 70, false, false},
		"right, unreached":           {1, true, 100, true, true},
		"too high, after an outage":  {1, false, 101, true, true},
		"too high, though unreached": {1, true, 101, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			count := &result.Compared{Count: c.count, Least: 100, Most: 100}
			s := &stats.Summary{
				Outages: make([]stats.Outage, c.outages),
				BrokerCount: &result.BrokerCount{Destinations: []result.DestinationCount{
					{Unreached: c.unreached, Added: count, Acknowledged: count},
				}},
			}
			countedAnew(s)
			d := &s.BrokerCount.Destinations[0]
			require.Equal(t, [2]bool{c.added, c.acknowledged}, [2]bool{d.Added != nil, d.Acknowledged != nil})
			require.Equal(t, c.added && c.acknowledged, d.Why == "")
		})
	}
}
