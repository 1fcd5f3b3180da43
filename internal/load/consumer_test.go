package load_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// receiver is a driver.Consumer made of a function.
type receiver func(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error

func (r receiver) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	return r(ctx, deliver)
}
func (r receiver) Close(context.Context) error { return nil }

// received runs a consumer over deliveries with times relative to now, 10 s into the run.
func received(t *testing.T, cfg load.ConsumerConfig, deliveries ...driver.Delivery) *stats.Snapshot {
	t.Helper()
	rec, clock := stats.NewConsumerRecorder(), load.NewClock()
	pass(10 * time.Second)
	now := time.Now().UnixMicro()
	c := load.NewConsumer(cfg, clock, rec, receiver(func(_ context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
		for _, d := range deliveries {
			if d.Time != 0 {
				d.Time += now
			}
			deliver(&d)
		}
		return nil
	}))
	require.NoError(t, c.Run(t.Context()))
	return stats.NewCollector(nil, []*stats.ConsumerRecorder{rec}, clock.Start()).Collect(stats.Measure, time.Now(), true)
}

func TestConsumer(t *testing.T) {
	at := func(d time.Duration) driver.Delivery { return driver.Delivery{Time: d.Microseconds(), HasTime: true} }
	redelivered := at(-time.Second)
	redelivered.Redelivered = true
	tests := []struct {
		name     string
		own      bool
		delivery driver.Delivery
		want     stats.Counters
		transfer int64 // microseconds; -1 for none
	}{
		{"own", true, at(-3 * time.Second), stats.Counters{result.Received: 1}, 3_000_000},
		{"sent in the first moment of the run", true, at(-10 * time.Second), stats.Counters{result.Received: 1}, 10_000_000},
		{"of an earlier run", true, at(-10*time.Second - time.Microsecond), stats.Counters{result.Foreign: 1}, -1},
		{"of an earlier run, to a consumer that does not know", false, at(-time.Hour), stats.Counters{result.Received: 1}, 3_600_000_000},
		{"unstamped", false, driver.Delivery{}, stats.Counters{result.Received: 1, result.Unstamped: 1}, -1},
		{"unstamped among our own", true, driver.Delivery{}, stats.Counters{result.Foreign: 1}, -1},
		{"a stamp that is none", false, driver.Delivery{HasTime: true}, stats.Counters{result.Received: 1, result.Unstamped: 1}, -1},
		{"redelivered", true, redelivered, stats.Counters{result.Received: 1, result.Redelivered: 1}, 1_000_000},
		{"clock ahead of ours", false, at(5 * time.Second), stats.Counters{result.Received: 1, result.NegativeTransfers: 1}, -1},
		{"clock far ahead of ours", false, at(25 * time.Hour), stats.Counters{result.Received: 1, result.Unstamped: 1}, -1},
		{"waited for days", false, at(-48 * time.Hour), stats.Counters{result.Received: 1, result.OutOfRange: 1}, stats.MaxLatency.Microseconds()},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			s := received(t, load.ConsumerConfig{OwnOnly: tt.own}, tt.delivery)
			require.Equal(t, tt.want.Counts(false, true), s.Total)
			if tt.transfer < 0 {
				require.Zero(t, s.Latencies[result.Transfer].Count)
				return
			}
			require.EqualValues(t, 1, s.Latencies[result.Transfer].Count)
			require.Equal(t, tt.transfer, s.Latencies[result.Transfer].Sum)
		})
	}
}

// Born and stored times become latencies for all messages but foreign ones, by the clock that was read anyway.
func TestConsumerAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().Add(10 * time.Second).UnixMicro() // when received delivers
		known := driver.Delivery{Born: now - 7000, Stored: now - 3000}
		own, half, none := known, known, known
		own.Time, own.HasTime = -5000, true
		half.Stored = 0
		none.Born, none.Stored = 0, 0
		s := received(t, load.ConsumerConfig{}, own, known, half, none)
		require.EqualValues(t, 4, s.Total.Get(result.Received))
		require.EqualValues(t, 3, s.Latencies[result.B2C].Count)
		require.EqualValues(t, 21_000, s.Latencies[result.B2C].Sum)
		require.EqualValues(t, 2, s.Latencies[result.S2C].Count)
		require.EqualValues(t, 6_000, s.Latencies[result.S2C].Sum)
	})
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().Add(10 * time.Second).UnixMicro()
		s := received(t, load.ConsumerConfig{OwnOnly: true}, driver.Delivery{Born: now - 7000, Stored: now - 3000})
		require.EqualValues(t, 1, s.Total.Get(result.Foreign))
		require.Nil(t, s.Latencies[result.B2C])
		require.Nil(t, s.Latencies[result.S2C])
	})
}

func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used := 0
		cfg := load.ConsumerConfig{Quota: load.NewQuota(3, func() { used++ })}
		d := driver.Delivery{Time: -1, HasTime: true}
		received(t, cfg, d, d)
		require.Zero(t, used)
		received(t, cfg, d, d, d)
		require.Equal(t, 1, used)
	})
}

// Setting the machine's clock must not disturb the measurements of one process: the wall clock is read once.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := load.NewClock()
		pass(time.Minute)
		c.Begin()
		require.Zero(t, c.Now())
		pass(90 * time.Second)
		require.Equal(t, 90*time.Second, c.Now())
		require.Equal(t, time.Now().UnixMicro(), c.Epoch(c.Now()))
		require.Equal(t, c.Start().UnixMicro(), c.Epoch(0))
	})
}
