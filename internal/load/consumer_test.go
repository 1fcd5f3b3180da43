package load_test

import (
	"context"
	"errors"
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
			s := received(t, load.ConsumerConfig{Phases: new(load.Phases), OwnOnly: tt.own}, tt.delivery)
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
		s := received(t, load.ConsumerConfig{Phases: new(load.Phases)}, own, known, half, none)
		require.EqualValues(t, 4, s.Total.Get(result.Received))
		require.EqualValues(t, 3, s.Latencies[result.B2C].Count)
		require.EqualValues(t, 21_000, s.Latencies[result.B2C].Sum)
		require.EqualValues(t, 2, s.Latencies[result.S2C].Count)
		require.EqualValues(t, 6_000, s.Latencies[result.S2C].Sum)
	})
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().Add(10 * time.Second).UnixMicro()
		s := received(t, load.ConsumerConfig{Phases: new(load.Phases), OwnOnly: true}, driver.Delivery{Born: now - 7000, Stored: now - 3000})
		require.EqualValues(t, 1, s.Total.Get(result.Foreign))
		require.Nil(t, s.Latencies[result.B2C])
		require.Nil(t, s.Latencies[result.S2C])
	})
}

func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used := 0
		cfg := load.ConsumerConfig{Phases: new(load.Phases), Quota: load.NewQuota(3, func() { used++ })}
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

// watchedSender is a sender that reports the end of its connection.
type watchedSender struct {
	sender
	ended func(error)
}

func (s *watchedSender) OnEnd(f func(error)) { s.ended = f }

// TestEndOfAnIdleConnection: a producer that waits for the time of its next message learns at once that its connection
// has ended, and ends with the reason; after its last message the connection does not matter.
func TestEndOfAnIdleConnection(t *testing.T) {
	lost := errors.New("the connection was lost")
	for name, c := range map[string]struct {
		schedule string
		edit     func(*setup, *load.Load)
		at       time.Duration // when the connection ends
		ends     time.Duration // when Run ends; -1 if it goes on
	}{
		"between messages": {"0.05", nil, 4 * time.Second, 4 * time.Second},
		"before the first": {"pause 30s, 1", nil, 4 * time.Second, 4 * time.Second},
		"to be sent again": {"0.05", func(_ *setup, l *load.Load) { l.Resend = true }, 4 * time.Second, 4 * time.Second},
		"at the end of a schedule": {
			"1 for 2s, pause 30s", func(_ *setup, l *load.Load) { l.Until = time.Hour }, 4 * time.Second, 4 * time.Second,
		},
		"nothing more is due":   {"0.05", func(_ *setup, l *load.Load) { l.Until = 10 * time.Second }, 4 * time.Second, -1},
		"all messages are sent": {"1", func(s *setup, l *load.Load) { s.Count, l.Count = 3, 3 }, 4 * time.Second, 2 * time.Second},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := setup{Schedule: schedule(t, c.schedule), MaxPending: 1}
			l := s.load()
			if c.edit != nil {
				c.edit(&s, &l)
			}
			r := newRig(s)
			out := &watchedSender{}
			out.sender = func(_ context.Context, m *driver.Message) error {
				r.Done(m.Slot, driver.Outcome{})
				return nil
			}
			r.Attach(out)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			time.AfterFunc(c.at, func() { out.ended(lost) })
			err := r.Producer.Run(ctx, l)
			switch {
			case c.ends < 0:
				require.NoError(t, err)
				require.Equal(t, time.Minute, r.clock.Now())
			case c.ends < c.at:
				require.NoError(t, err)
				require.Equal(t, c.ends, r.clock.Now())
			default:
				require.ErrorIs(t, err, lost)
				require.Equal(t, c.ends, r.clock.Now())
			}
		})
	}
}

// mender is a sender that replaces its connection.
type mender struct {
	sender
	news func()
	mend func(context.Context) error
}

func (m *mender) OnNews(f func())                { m.news = f }
func (m *mender) Mend(ctx context.Context) error { return m.mend(ctx) }

// TestMend: a producer replaces its connection while no message is due, as often as there is news, and the messages
// keep their times; it ends if that fails.
func TestMend(t *testing.T) {
	hopeless := errors.New("not connected again")
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(setup{Schedule: constant(t, "0.1"), MaxPending: 1})
			var sent, mended []time.Duration
			out := &mender{}
			out.sender = func(_ context.Context, m *driver.Message) error {
				sent = append(sent, r.clock.Now())
				r.Done(m.Slot, driver.Outcome{})
				return nil
			}
			out.mend = func(context.Context) error {
				if mended = append(mended, r.clock.Now()); fails && len(mended) == 2 {
					return hopeless
				}
				return nil
			}
			r.Attach(out)
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			defer cancel()
			for _, at := range []time.Duration{4 * time.Second, 6 * time.Second, 17 * time.Second} {
				time.AfterFunc(at, out.news)
			}
			err := r.Run(ctx)
			if fails {
				require.ErrorIs(t, err, hopeless)
				require.Equal(t, []time.Duration{4 * time.Second, 6 * time.Second}, mended)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []time.Duration{4 * time.Second, 6 * time.Second, 17 * time.Second}, mended)
			require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second}, sent)
			s := r.snapshot()
			require.Zero(t, s.Total.Get(result.LateSends))
		})
	}
}
