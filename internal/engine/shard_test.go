package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// A shard that has sent its part continues to receive from the others. An interruption ends that, and copies or
// foreign messages do not prolong it.
func TestShardAwaitsOthers(t *testing.T) {
	const own, others = 2 * time.Second, 20 * time.Second
	const copies = own + 2*drainTimeout + 3*time.Second // so long come copies, and the consumer cannot be stopped
	for _, c := range []struct {
		name      string
		run       int64
		noVerify  bool
		drain     time.Duration
		interrupt time.Duration // since the start; 0 for never
		took      time.Duration
		all       bool // messages are received
	}{
		{"until they end", 77, false, drainTimeout, 0, others + time.Second, true},
		{"interrupted in the drain time-out", 77, false, drainTimeout, own + drainTimeout - time.Second, own + drainTimeout, false},
		{"interrupted after it", 77, false, drainTimeout, own + drainTimeout + time.Second, own + drainTimeout + time.Second, false},
		{"interrupted in the load", 77, false, drainTimeout, own / 2, own/2 + drainTimeout, false},
		{"another run", 78, false, drainTimeout, 0, own + time.Second, false},
		{"copies without end", 77, false, drainTimeout, 0, copies, false},
		{"not verified", 77, true, drainTimeout, 0, own + drainTimeout, false},
		{"no drain", 77, false, 0, 0, own, false},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			b := broker(t, nil)
			shard := func(number int, run int64, lasting time.Duration) *flat {
				return newPlan(b.Factory(), func(p *flat) {
					p.Shard, p.RunID, p.Producers, p.Rate = plan.Shard{Number: number, Of: 2}, run, 2, rate("20")
					p.Duration, p.DrainTimeout, p.Verify = lasting, c.drain, !c.noVerify
				})
			}
			sent := make(chan uint64, 1)
			go func() {
				s, err := carryOut(t.Context(), nil, shard(2, c.run, others), new(recorder))
				if err != nil {
					s = new(stats.Summary)
				}
				sent <- s.Total.Get(result.Completed)
			}()
			stop := make(chan struct{})
			if c.interrupt > 0 {
				time.AfterFunc(c.interrupt, func() { close(stop) })
			}
			started := time.Now()
			mine := shard(1, 77, own)
			if c.took == copies {
				mine.Consumer.Factory = delivering(mine.Consumer.Factory, func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
					for time.Since(started) < copies {
						deliver(d)
						pass(100 * time.Millisecond)
					}
				})
			}
			s, err := carryOut(t.Context(), stop, mine, new(recorder))
			require.NoError(t, err)
			require.InDelta(t, c.took.Seconds(), time.Since(started).Seconds(), 0.2)
			theirs := <-sent
			require.EqualValues(t, others.Seconds()*10, theirs)
			if c.all {
				require.Equal(t, s.Total.Get(result.Completed)+theirs, s.Total.Get(result.Received))
			} else {
				require.Less(t, s.Total.Get(result.Received), s.Total.Get(result.Completed)+theirs)
			}
		})
	}
}
