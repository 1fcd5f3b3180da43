package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	loadTime = 10 * time.Second
	// closeBound is the longest time that closing may take: the workers, side by side, the time-out for stopping within
	// the connect time-out, then the connections 2 s, and moments for drivers that do not obey.
	closeBound = connectTimeout + 8*time.Second
	hurryBound = 4 * time.Second // the same after the second Ctrl-C: half a second for each of these steps
)

// steady is a load of 100 msg/s for loadTime.
func steady(p *flat) { p.Rate, p.Duration, p.MaxPending = rate("100"), loadTime, 10 }

func TestEndings(t *testing.T) {
	tests := []struct {
		name        string
		edit        func(*flat)
		options     func(*mem.Options)
		act         func(b *mem.Broker, stop, cancel func()) // after 4 s
		sent        int
		lasts       time.Duration
		reason      string
		interrupted bool
		success     bool
	}{
		{name: "duration", edit: steady, sent: 1000, lasts: loadTime, reason: "duration reached", success: true},
		{
			name: "count before duration", edit: func(p *flat) { steady(p); p.Count = 333 },
			sent: 333, lasts: 3320 * time.Millisecond, reason: "message count reached", success: true,
		},
		{
			name: "duration before count", edit: func(p *flat) { steady(p); p.Count = 5000 },
			sent: 1000, lasts: loadTime, reason: "duration reached", success: true,
		},
		{
			name: "first Ctrl-C", edit: steady, act: func(_ *mem.Broker, stop, _ func()) { stop() },
			options: func(o *mem.Options) { o.Latency = 50 * time.Millisecond },
			sent:    400, lasts: 4050 * time.Millisecond, reason: "interrupted", interrupted: true, success: true,
		},
		{
			name: "second Ctrl-C", edit: steady, act: func(_ *mem.Broker, stop, cancel func()) { stop(); cancel() },
			options: func(o *mem.Options) { o.Withhold = 50 },
			sent:    400, lasts: 4 * time.Second, reason: "interrupted", interrupted: true,
		},
		{
			name: "broken broker", edit: steady, act: func(b *mem.Broker, _, _ func()) { b.Disconnect() },
			sent: 401, lasts: 4 * time.Second, reason: "failed",
		},
		{
			name: "broken broker, consumer only", act: func(b *mem.Broker, _, _ func()) { b.Disconnect() },
			edit:  func(p *flat) { steady(p); p.Role, p.Rate = plan.Consumer, rate("1") },
			lasts: 4 * time.Second, reason: "consumer-0 failed",
		},
		{
			name: "no one waits for the missing for ever", edit: steady, options: func(o *mem.Options) { o.Lose = 100 },
			sent: 1000, lasts: loadTime + drainTimeout, reason: "duration reached",
		},
		{
			name: "no drain asked for", edit: func(p *flat) { steady(p); p.DrainTimeout = 0 },
			options: func(o *mem.Options) { o.Lose = 100 },
			sent:    1000, lasts: loadTime, reason: "duration reached",
		},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, tt.options)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := make(chan struct{})
			if tt.act != nil {
				time.AfterFunc(4*time.Second, func() { tt.act(b, func() { close(stop) }, cancel) })
			}
			p, rep := newPlan(b.Factory(), tt.edit), new(recorder)
			s, err := carryOut(ctx, stop, p, rep)
			require.NoError(t, err)
			check(t, p, s, rep)
			require.InDelta(t, tt.sent, s.Total.Get(result.Sent), 1)
			require.InDelta(t, tt.lasts, lasted(s), float64(100*time.Millisecond))
			require.Contains(t, s.Outcome.Reason, tt.reason)
			require.Equal(t, tt.interrupted, s.Outcome.Interrupted)
			require.Equal(t, tt.success, s.Outcome.Success, s.Problems())
			require.Equal(t, tt.success, len(s.Problems()) == 0)
			require.Empty(t, s.Outcome.LeftBehind)
			require.Zero(t, s.Total.InFlight())
			truth := b.Stats()
			require.Zero(t, truth.Connections)
		})
	}
}

func TestConsumerCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		run(t, newPlan(b.Factory(), func(p *flat) { p.Role, p.Count = plan.Producer, 500 }), nil)
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) { p.Role, p.Count = plan.Consumer, 300 }), nil)
		require.Equal(t, "message count reached", s.Outcome.Reason)
		require.EqualValues(t, 300, s.Total.Get(result.Received))
		require.EqualValues(t, 200, b.Stats().Backlog, "the rest stays at the broker")
		require.Zero(t, s.Total.Get(result.Foreign))
	})
}

func TestOpeningFails(t *testing.T) {
	refused := driver.Errorf(driver.ClassConnect, "connect", "start it", "refused")
	fail := func(context.Context) error { return refused }
	third := func() func(context.Context) error {
		var n atomic.Int32
		return func(context.Context) error {
			if n.Add(1) == 3 {
				return refused
			}
			return nil
		}
	}
	tests := []struct {
		name  string
		hooks *hooks
		hangs bool // rather than fails
	}{
		{"driver", &hooks{open: fail}, false},
		{"consumer", &hooks{consumer: fail}, false},
		{"producer", &hooks{producer: fail}, false},
		{"third consumer", &hooks{consumer: third()}, false},
		{"third producer", &hooks{producer: third()}, false},
		{"no answer to the driver", &hooks{open: wait}, true},
		{"no answer to a consumer", &hooks{consumer: wait}, true},
		{"no answer to a producer", &hooks{producer: wait}, true},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b, rep, begun := mem.New(), new(recorder), time.Now()
			p := newPlan(tt.hooks.factory(b.Factory()), func(p *flat) { p.Producers, p.Consumers = 1, 1 })
			if strings.HasPrefix(tt.name, "third") {
				p.Destinations = []driver.Destination{{Name: "A"}, {Name: "B"}, {Name: "C"}}
			}
			_, err := carryOut(t.Context(), nil, p, rep)
			require.Error(t, err)
			if !tt.hangs {
				require.ErrorIs(t, err, refused)
				require.Equal(t, driver.ClassConnect, driver.ClassOf(err))
				require.Equal(t, "start it", driver.HintOf(err))
			} else {
				require.ErrorContains(t, err, "no answer within 2s")
				require.Contains(t, driver.HintOf(err), "raise --connect-timeout")
				require.Equal(t, driver.ClassConnect, driver.ClassOf(err))
			}
			require.LessOrEqual(t, time.Since(begun), connectTimeout+closeBound)
			require.Nil(t, rep.summary)
			truth := b.Stats()
			require.Zero(t, truth.Connections)
			require.Zero(t, truth.Arrived)
		})
	}
	inBubble(t, "drivers that ignore their context", func(t *testing.T) {
		released := make(chan struct{})
		hang := func(context.Context) error { <-released; return refused }
		for _, h := range []*hooks{{open: hang}, {consumer: hang}, {producer: hang}} {
			begun := time.Now()
			_, err := carryOut(t.Context(), nil, newPlan(h.factory(mem.New().Factory()), nil), new(recorder))
			require.Error(t, err)
			require.LessOrEqual(t, time.Since(begun), connectTimeout+closeBound)
		}
		close(released)
	})
	inBubble(t, "the driver's own time-out says more", func(t *testing.T) {
		says := driver.Errorf(driver.ClassTimeout, "connect", "is it a broker?", "it did not answer CONNECT")
		late := func(ctx context.Context) error {
			select {
			case <-ctx.Done(): // must not win by chance
				return ctx.Err()
			case <-time.After(connectTimeout):
			}
			require.NoError(t, ctx.Err())
			return says
		}
		for _, h := range []*hooks{{open: late}, {consumer: late}, {producer: late}} {
			_, err := carryOut(t.Context(), nil, newPlan(h.factory(mem.New().Factory()), nil), new(recorder))
			require.ErrorIs(t, err, says)
			require.Equal(t, "is it a broker?", driver.HintOf(err))
		}
	})
	inBubble(t, "interrupted", func(t *testing.T) {
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		begun := time.Now()
		h := &hooks{producer: wait}
		_, err := carryOut(t.Context(), stop, newPlan(h.factory(mem.New().Factory()), nil), new(recorder))
		require.ErrorContains(t, err, "interrupted")
		require.Equal(t, time.Second, time.Since(begun))
	})
}

// Whoever fails after the load has ended must be told of, too.
func TestFailureDuringDrainIsNotSwallowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.DeliveryLatency = 2 * time.Second })
		time.AfterFunc(loadTime+time.Second, b.Disconnect)
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) { steady(p); p.Consumers = 3 }), nil)
		require.Equal(t, "duration reached", s.Outcome.Reason)
		require.False(t, s.Outcome.Success)
		require.Contains(t, strings.Join(s.Problems(), "\n"), "connection was lost")
		require.Contains(t, strings.Join(s.Problems(), "\n"), "and 2 more workers failed")
		require.InDelta(t, 100, *s.Missing, 3)
		require.InDelta(t, loadTime+time.Second, lasted(s), float64(50*time.Millisecond),
			"nobody is left to receive: no reason to wait for the deadline")
	})
}

// The consumer of one topic dies in the drain; messages that it does not get are missing, but the drain does not wait
// for them.
func TestDrainWaitsOnlyForWhatCanCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		died := errors.New("died")
		var n atomic.Int32
		h := &hooks{runs: func(_ context.Context, run func() error) error {
			if n.Add(1) > 1 {
				return run()
			}
			pass(loadTime + time.Millisecond)
			return died
		}}
		s, _ := run(t, newPlan(h.factory(mem.New().Factory()), steady, func(p *flat) {
			p.Consumers = 2
			p.Destinations = []driver.Destination{{Kind: driver.Topic, Name: "T"}}
		}), nil)
		require.InDelta(t, 1000, *s.Missing, 1)
		require.Less(t, lasted(s), loadTime+time.Second)
		require.Contains(t, strings.Join(s.Problems(), "\n"), "died")
	})
}

// A producer that waits for credit when the load ends has sent nothing: the totals must not count it, nor shrink.
func TestBlockedInSendAtTheEnd(t *testing.T) {
	for _, stopAt := range []time.Duration{loadTime, loadTime + 500*time.Millisecond} {
		inBubble(t, stopAt.String(), func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Limit = 250 })
			s, rep := run(t, newPlan(b.Factory(), steady, func(p *flat) {
				p.Role, p.Duration, p.Producers = plan.Producer, stopAt, 3
			}), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			require.EqualValues(t, 250, s.Total.Get(result.Sent))
			require.EqualValues(t, 250, s.Total.Get(result.Completed))
			require.EqualValues(t, 250, b.Stats().Arrived)
			require.EqualValues(t, 250, rep.last().Get(result.Sent))
			require.Zero(t, s.Total.Get(result.LateSends))
		})
	}
}

func wait(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("no answer: %w", ctx.Err())
}
