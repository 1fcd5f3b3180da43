package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	embedded "github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// stallsAt lets a broker stand still at moments of the run.
func stallsAt(t *testing.T, b *mem.Broker, length time.Duration, at ...time.Duration) {
	t.Helper()
	for _, moment := range at {
		timer := time.AfterFunc(moment, func() { b.Stall(length) })
		t.Cleanup(func() { timer.Stop() })
	}
}

// TestStalls: a broker stands still at given times, and the run reports these stalls.
func TestStalls(t *testing.T) {
	type stall struct {
		side          stats.Side
		start, length time.Duration
	}
	both := func(start, length time.Duration) []stall { return []stall{{stats.BothSides, start, length}} }
	s, ms := time.Second, time.Millisecond
	for _, tt := range []struct {
		name   string
		edit   func(*flat)
		length time.Duration
		at     []time.Duration
		want   []stall
		period time.Duration
		// mayDeliver: all that was sent may have been received before.
		mayDeliver bool
	}{
		{name: "none", edit: steady},
		{name: "one", edit: steady, length: 2500 * ms, at: []time.Duration{3 * s}, want: both(3*s, 2500*ms)},
		{name: "too short", edit: steady, length: 900 * ms, at: []time.Duration{3 * s}},
		{
			name: "shorter threshold", length: 900 * ms, at: []time.Duration{3 * s}, want: both(3*s, 900*ms),
			edit: func(p *flat) { steady(p); p.StallThreshold = 800 * ms },
		},
		{name: "not looked for", length: 5 * s, at: []time.Duration{3 * s}, edit: func(p *flat) { steady(p); p.StallThreshold = 0 }},
		{
			name: "regular", edit: steady, length: 1200 * ms, at: []time.Duration{1500 * ms, 4500 * ms, 7500 * ms}, period: 3 * s,
			want: []stall{{stats.BothSides, 1500 * ms, 1200 * ms}, {stats.BothSides, 4500 * ms, 1200 * ms}, {stats.BothSides, 7500 * ms, 1200 * ms}},
		},
		{
			name: "irregular", edit: steady, length: 1200 * ms, at: []time.Duration{1500 * ms, 3500 * ms, 7500 * ms},
			want: []stall{{stats.BothSides, 1500 * ms, 1200 * ms}, {stats.BothSides, 3500 * ms, 1200 * ms}, {stats.BothSides, 7500 * ms, 1200 * ms}},
		},
		{
			name: "closed loop", mayDeliver: true, length: 1500 * ms, at: []time.Duration{2 * s}, want: both(2*s, 1500*ms),
			edit: func(p *flat) { p.Duration, p.ConsumerRate = 6*s, load.Rate{} },
		},
		{
			name: "many workers", length: 1500 * ms, at: []time.Duration{2 * s}, want: both(2*s, 1500*ms),
			edit: func(p *flat) { steady(p); p.Producers, p.Consumers = 7, 5 },
		},
		{name: "a message every five seconds", edit: func(p *flat) { p.Rate, p.Duration = rate("0.2"), 12*s }},
		{
			name: "nothing to do in it", edit: func(p *flat) { p.Rate, p.Duration = rate("0.2"), 12*s }, length: 3 * s, at: []time.Duration{s},
		},
		{
			name: "a message comes within it", edit: func(p *flat) { p.Rate, p.Duration = rate("0.2"), 12*s },
			length: 4 * s, at: []time.Duration{3 * s}, want: both(5*s, 2*s),
		},
		{name: "in the warm-up", edit: func(p *flat) { steady(p); p.Warmup = 5 * s }, length: 1500 * ms, at: []time.Duration{2 * s}},
		{name: "slow consumers", edit: func(p *flat) {
			steady(p)
			p.ConsumerWork, _ = load.ParseWork("2s")
			p.Duration, p.Count = 8*s, 3
		}},
		{
			name: "transactions that fill slowly",
			edit: func(p *flat) { steady(p); p.CommitInterval, p.MaxPending, p.Duration = 3000, 5000, 7*s },
		},
		{
			name: "commits", length: 1500 * ms, at: []time.Duration{2 * s}, want: []stall{{stats.SendSide, 2 * s, 1500 * ms}},
			mayDeliver: true, edit: func(p *flat) { steady(p); p.CommitInterval = 1 },
		},
		{
			name: "until the drain", edit: steady, length: 3 * s, at: []time.Duration{8 * s}, want: both(8*s, 3*s),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := broker(t, func(o *mem.Options) { o.Latency = time.Millisecond })
				p := newPlan(b.Factory(), func(p *flat) {
					p.StallThreshold = s
					tt.edit(p)
				})
				stallsAt(t, b, tt.length, tt.at...)
				sum, reported := run(t, p, nil)
				found := sum.Stalls.Measured()
				require.Len(t, found, len(tt.want), "%v", found)
				var longest time.Duration
				for i, want := range tt.want {
					if !tt.mayDeliver {
						require.Equal(t, want.side, found[i].Side)
					}
					require.InDelta(t, want.start, found[i].Start, float64(15*ms))
					require.InDelta(t, want.length, found[i].Length, float64(15*ms))
					longest = max(longest, found[i].Length)
				}
				require.EqualValues(t, len(tt.want), sum.Stalls.Count)
				require.Equal(t, longest, sum.Stalls.Max)
				var sides [2]int // in the snapshots, one of both sides is one of each
				for _, snap := range reported.snapshots {
					for _, stall := range snap.Stalls {
						if !stall.Warmup {
							sides[stall.Side]++
						}
					}
				}
				if !tt.mayDeliver {
					require.Equal(t, [2]int{len(tt.want), len(tt.want)}, sides)
				}
				require.InDelta(t, tt.period, stats.Period(found), float64(15*ms))
			})
		})
	}
}

// A stall that lasts until the end is one as long as the run waits.
func TestStallWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		p := newPlan(b.Factory(), func(p *flat) {
			steady(p)
			p.StallThreshold = time.Second
		})
		stallsAt(t, b, time.Hour, 4*time.Second)
		s, _ := run(t, p, nil)
		require.False(t, s.Success)
		require.EqualValues(t, 1, s.Stalls.Count)
		require.InDelta(t, 4*time.Second, s.Stalls.List[0].Start, float64(20*time.Millisecond))
		require.GreaterOrEqual(t, s.Stalls.Max, loadTime+drainTimeout-4*time.Second-20*time.Millisecond)
	})
}

// If consumers do not get messages for a while, though there are some, this is a stall of their side alone.
func TestStallOfDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		f := b.Factory()
		n := 0
		f.Open = openWith(f.Open, func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
			if n++; n == 300 {
				<-time.After(1700 * time.Millisecond)
			}
			deliver(d)
		})
		s, _ := run(t, newPlan(f, func(p *flat) {
			steady(p)
			p.StallThreshold = time.Second
			p.Plan.Thresholds = demands(t, "stall.count == 1", "stall.max < 2s", "stall.max > 1600ms")
		}), nil)
		require.True(t, s.Success, s.Problems)
		require.Len(t, s.Stalls.List, 1)
		require.Equal(t, stats.ReceiveSide, s.Stalls.List[0].Side)
		require.InDelta(t, 2990*time.Millisecond, s.Stalls.List[0].Start, float64(15*time.Millisecond))
		require.InDelta(t, 1700*time.Millisecond, s.Stalls.List[0].Length, float64(15*time.Millisecond))
		for _, o := range s.Thresholds {
			require.True(t, o.Kept, o.String())
		}
	})
}

// TestNoStallOfDeferredDeliveries: a message that its producer has held back, such as RocketMQ's transactions that are
// left open, tells of no stall when it comes.
func TestNoStallOfDeferredDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		f := b.Factory()
		n := 0
		f.Open = openWith(f.Open, func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
			if n++; n == 300 {
				<-time.After(1700 * time.Millisecond)
				d.Deferred = true
			}
			deliver(d)
			d.Deferred = false
		})
		s, _ := run(t, newPlan(f, func(p *flat) {
			steady(p)
			p.StallThreshold = time.Second
		}), nil)
		require.True(t, s.Success, s.Problems)
		require.Empty(t, s.Stalls.List)
	})
}

// TestStallsOfTheEmbeddedBroker: two stalls over real connections, and none in a run without, whatever else the machine
// does.
func TestStallsOfTheEmbeddedBroker(t *testing.T) {
	for _, f := range []driver.Factory{amqp.Factory(), stomp.Factory()} {
		for _, at := range [][]time.Duration{nil, {time.Second, 9 * time.Second}} {
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				b, err := embedded.Start(embedded.Config{Listen: map[string]string{f.Name: "127.0.0.1:0"}})
				require.NoError(t, err)
				t.Cleanup(b.Close)
				const length = 4 * time.Second // the tester may stand still for a part of it, which is no stall
				rep := &recorder{}
				p := newPlan(f, func(p *flat) {
					for _, e := range p.Sides() {
						e.URL, e.ConnectTimeout, e.Options = f.Schemes[0]+"://"+b.Addr(f.Name), 20*time.Second, f.NewOptions()
					}
					p.Rate, p.MaxPending, p.Producers, p.Consumers = rate("300"), 1000, 2, 2
					p.Duration, p.DrainTimeout, p.StallThreshold = 15*time.Second, 20*time.Second, time.Second
				})
				began := time.Now()
				for _, moment := range at {
					timer := time.AfterFunc(moment, func() { b.Store().Stall(length) })
					t.Cleanup(func() { timer.Stop() })
				}
				s, err := carryOut(t.Context(), nil, p, rep)
				require.NoError(t, err)
				require.True(t, s.Success, s.Problems)
				// On a busy machine the stall begins and ends late, and sends may stand still for a second more than receipts,
				// which are then two stalls. The fake clock of the others allows 15 ms.
				const early, late = 1400 * time.Millisecond, 3 * time.Second
				seen := make([]bool, len(at))
				for _, found := range s.Stalls.List {
					i := slices.IndexFunc(at, func(moment time.Duration) bool {
						begin := moment - s.Start.Sub(began)
						return found.Start > begin-early && found.Start+found.Length < begin+length+late
					})
					require.GreaterOrEqual(t, i, 0, "%v of %v", found, s.Stalls.List)
					seen[i] = seen[i] || found.Length > length-early
				}
				// Times in which the tester itself stood still are none of the broker's.
				if paused := time.Duration(s.Health.Pauses) * s.Health.PauseMax; paused < length-p.StallThreshold {
					require.NotContains(t, seen, false, "%v", s.Stalls.List)
				}
			})
		}
	}
}
