package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestConsumerWork: consumers that work 2 ms on each message receive 500 messages per second each, and those of a rate
// their share of it.
func TestConsumerWork(t *testing.T) {
	work := load.Work{Min: 2 * time.Millisecond, Max: 2 * time.Millisecond}
	for name, c := range map[string]struct {
		edit      func(*flat)
		perSecond float64
	}{
		"work":                {func(p *flat) { p.ConsumerWork = work }, 500},
		"work, two consumers": {func(p *flat) { p.ConsumerWork, p.Consumers = work, 2 }, 1000},
		"rate":                {func(p *flat) { p.ConsumerRate = plainRate("800") }, 800},
		"rate, four":          {func(p *flat) { p.ConsumerRate, p.Consumers = plainRate("800"), 4 }, 800},
		"work within a rate":  {func(p *flat) { p.ConsumerWork, p.ConsumerRate = work, plainRate("100") }, 100},
	} {
		inBubble(t, name, func(t *testing.T) {
			s, _ := run(t, newPlan(broker(t, nil).Factory(), func(p *flat) {
				verified(p)
				p.Count, p.MaxPending, p.DrainTimeout = 4000, 100, time.Hour
				c.edit(p)
			}), nil)
			require.True(t, s.Success, s.Problems())
			require.EqualValues(t, 4000, s.Total[result.Received])
			// After the last message there is a moment in which others may come.
			require.InEpsilon(t, 4000/c.perSecond, s.End.Sub(s.Start).Seconds()-0.25, 0.02)
		})
	}
}
