package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// seldom is a plan of producers with a message every twenty seconds, through a line.
func seldom(b *mem.Broker, line *mem.Line, edit func(*flat)) *flat {
	return newPlan(b.Factory(), func(p *flat) {
		through(p, line)
		verified(p)
		p.Role, p.Rate, p.Duration, p.MaxPending = plan.Producer, rate("0.05"), 70*time.Second, 10
		edit(p)
	})
}

// TestIdleProducerEnds: a producer that sends nothing learns at once that its connection has ended, and so the run ends.
func TestIdleProducerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		line, began := b.Line(), time.Now()
		time.AfterFunc(4*time.Second, line.Cut)
		s, _ := run(t, seldom(b, line, func(*flat) {}), nil)
		require.False(t, s.Outcome.Success)
		require.Contains(t, s.Problems()[0], "the connection was lost")
		require.EqualValues(t, 1, s.Total.Get(result.Sent))
		require.Zero(t, s.Total.Get(result.Unsent), "no message was due")
		require.InDelta(t, 4*time.Second, time.Since(began), float64(time.Second), "the run ended with the connection")
	})
}

// TestIdleProducersReconnect: producers that send nothing lose their connections and come back, and the outages begin
// when that happens; all messages are sent at their times.
func TestIdleProducersReconnect(t *testing.T) {
	for name, c := range map[string]struct {
		producers int
		outages   []outage
	}{
		"of no time":             {1, []outage{{4 * time.Second, 0}}},
		"twice":                  {1, []outage{{4 * time.Second, 3 * time.Second}, {24 * time.Second, time.Second}}},
		"many beyond their send": {7, []outage{{18 * time.Second, 4 * time.Second}}},
	} {
		inBubble(t, name, func(t *testing.T) {
			b := broker(t, nil)
			line, began := b.Line(), time.Now()
			for _, o := range c.outages {
				time.AfterFunc(o.at, func() {
					line.Cut()
					time.AfterFunc(o.lasts, line.Restore)
				})
			}
			s, _ := run(t, seldom(b, line, func(p *flat) { p.Reconnect, p.Producers = true, c.producers }), nil)
			require.True(t, s.Outcome.Success, "%q", s.Problems)
			require.Len(t, s.Outages, len(c.outages))
			for i, found := range s.Outages {
				o := inTime(found)
				require.Equal(t, c.outages[i].at, o.after(began), "start of outage %d", i+1)
				require.Equal(t, driver.ClassConnectionLost.String(), o.Class)
				require.Empty(t, o.NotBack)
				for _, came := range []time.Duration{o.Length, o.Reconnected} {
					require.GreaterOrEqual(t, came, c.outages[i].lasts)
					require.Less(t, came, c.outages[i].lasts+closeTo, "the next message is sent later, and not because of the outage")
				}
			}
			require.EqualValues(t, 4, s.Total.Get(result.Completed))
			require.Zero(t, s.Total.Get(result.Unsent)+s.Total.Get(result.Failed)+s.Total.Get(result.Unconfirmed))
		})
	}
}
