package load_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

const us = int64(1) // the unit of stats.Latency

func within1Percent(t *testing.T, want time.Duration, got int64, msg string) {
	t.Helper()
	require.InEpsilon(t, want.Microseconds(), got, 0.015, msg)
}

// A broker that acknowledges nothing for one second of two, at 1000 msg/s. Where the second shows depends on max-pending:
// with few messages in flight the producer must wait, so it shows in send delay; with many the messages lie at the
// broker, so it shows in send ack. It always shows in the response time.
func TestStallOfOneSecond(t *testing.T) {
	tests := []struct {
		pending           int
		delay, ack        time.Duration // p90
		delayMax, respMax time.Duration
	}{
		{1, 800 * time.Millisecond, 0, 0, 0},
		{10, 800 * time.Millisecond, 0, 0, 0},
		{100_000, 0, 800 * time.Millisecond, 0, 0},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.pending), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(load.ProducerConfig{Rate: rate(t, "1000"), MaxPending: tt.pending, Count: 2000})
				ack := 10 * time.Microsecond
				r.Attach(r.later(func(at time.Duration) time.Duration {
					if at >= 500*time.Millisecond && at < 1500*time.Millisecond {
						return 1500*time.Millisecond - at + ack
					}
					return ack
				}))
				runFor(t, r.Producer, time.Minute)
				time.Sleep(2 * time.Second)
				s := r.snapshot()
				require.EqualValues(t, 2000, s.Total.Completed)
				require.Zero(t, s.Total.LateSends, "it was the broker")
				l := s.Latencies
				// Of 2000 messages, those due in the 1000 ms of the stall waited 0 to 1 s: p50 is about 0, p75 half a
				// second, p90 0.8 s.
				within1Percent(t, 800*time.Millisecond, l.Response.Percentile(90), "response p90")
				within1Percent(t, 500*time.Millisecond, l.Response.Percentile(75), "response p75")
				within1Percent(t, time.Second, l.Response.Max(), "response max")
				if tt.delay > 0 {
					require.InDelta(t, tt.delay.Microseconds(), l.Delay.Percentile(90), 30_000)
					require.LessOrEqual(t, l.Ack.Percentile(99), 15*us)
				} else {
					require.Zero(t, l.Delay.Max())
					within1Percent(t, tt.ack, l.Ack.Percentile(90), "ack p90")
				}
				for _, p := range []float64{50, 75, 90, 99} {
					require.GreaterOrEqual(t, l.Response.Percentile(p), l.Ack.Percentile(p))
				}
			})
		})
	}
}

// A broker whose connection takes nothing for a second: Send blocks, whatever max-pending is. The message in Send has the
// stall in its ack time, the others in their delay.
func TestStallInSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(load.ProducerConfig{Rate: rate(t, "1000"), MaxPending: 1000, Count: 2000})
		r.Attach(sender(func(_ context.Context, m *driver.Message) error {
			if m.Slot == 0 && r.clock.Now() < time.Millisecond {
				time.Sleep(time.Second)
			}
			r.Done(m.Slot, driver.Outcome{})
			return nil
		}))
		runFor(t, r.Producer, time.Minute)
		s := r.snapshot()
		require.Zero(t, s.Total.LateSends)
		within1Percent(t, 999*time.Millisecond, s.Latencies.Delay.Max(), "delay max")
		within1Percent(t, time.Second, s.Latencies.Ack.Max(), "ack max")
		require.Zero(t, s.Latencies.Ack.Percentile(99))
		within1Percent(t, 800*time.Millisecond, s.Latencies.Response.Percentile(90), "response p90")
	})
}

// A broker that is only a little slower in Send than the rate needs: no single message waits long, yet none of the growing
// delay is the tester's fault. And the other way round: work of the tester itself counts as late.
func TestLateSends(t *testing.T) {
	tests := []struct {
		name string
		send time.Duration // each Send takes this
		rate string
		late bool
	}{
		{"in time", 50 * time.Microsecond, "1000", false},
		{"slow broker", 2 * time.Millisecond, "1000", false},
		{"slightly slow broker", 300 * time.Microsecond, "5000", false},
		{"rate beyond the tester", 20 * time.Microsecond, "100000", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(load.ProducerConfig{Rate: rate(t, tt.rate), MaxPending: 10})
				r.Attach(sender(func(_ context.Context, m *driver.Message) error {
					time.Sleep(tt.send)
					r.Done(m.Slot, driver.Outcome{})
					return nil
				}))
				runFor(t, r.Producer, 2*time.Second)
				n := r.snapshot().Total
				if tt.late {
					require.Greater(t, n.LateSends, n.Sent*9/10)
				} else {
					require.Zero(t, n.LateSends)
				}
			})
		})
	}
}

// max-pending 1 and an acknowledgement that takes twice the period: the producer is held up at every message.
func TestHeldByMaxPendingIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(load.ProducerConfig{Rate: rate(t, "1000"), MaxPending: 1})
		r.Attach(r.later(func(time.Duration) time.Duration { return 2 * time.Millisecond }))
		runFor(t, r.Producer, 2*time.Second)
		s := r.snapshot()
		require.InDelta(t, 1000, s.Total.Sent, 2, "as fast as the acknowledgements let it")
		require.Zero(t, s.Total.LateSends)
		require.InDelta(t, 1000, s.Total.Blocked, 2)
		within1Percent(t, time.Second, s.Latencies.Delay.Max(), "half the messages are behind")
	})
}

// The tester is starved: it wakes 200 ms late, once. The clock of the producer is what was wrong, not the broker.
func TestStarvedTesterIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(load.ProducerConfig{Rate: rate(t, "1000"), MaxPending: 10, Count: 1000})
		r.Attach(sender(func(_ context.Context, m *driver.Message) error {
			r.Done(m.Slot, driver.Outcome{})
			return nil
		}))
		time.Sleep(200 * time.Millisecond) // before Run: the goroutine did not get a processor
		runFor(t, r.Producer, time.Minute)
		s := r.snapshot()
		// Messages 0 to 194 left more than 5 ms late.
		require.EqualValues(t, 195, s.Total.LateSends)
		within1Percent(t, 200*time.Millisecond, s.Latencies.Delay.Max(), "delay max")
	})
}

// A stall of the broker must not excuse what the tester does wrong afterwards.
func TestStallDoesNotHideLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(load.ProducerConfig{Rate: rate(t, "1000"), MaxPending: 10, Count: 500})
		first := true
		r.Attach(sender(func(_ context.Context, m *driver.Message) error {
			if first {
				time.Sleep(100 * time.Millisecond) // the broker
			}
			first = false
			time.Sleep(90 * time.Microsecond) // the tester, 9% of a period: catches up slowly
			r.Done(m.Slot, driver.Outcome{})
			return nil
		}))
		runFor(t, r.Producer, time.Minute)
		require.Zero(t, r.snapshot().Total.LateSends)
	})
}

func TestRateIsMet(t *testing.T) {
	tests := []struct {
		rate      string
		producers int
		duration  time.Duration
		want      uint64
	}{
		{"10", 7, 60 * time.Second, 600},
		{"10", 3, 60 * time.Second, 600},
		{"0.5", 3, 100 * time.Second, 50},
		{"33.333", 7, 1000 * time.Second, 33_333},
		{"2", 10, 50 * time.Second, 100},
		{"0.1", 3, 5 * 24 * time.Hour, 5 * 24 * 360}, // no drift over days
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s over %d", tt.rate, tt.producers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := load.NewClock()
				var mu sync.Mutex
				at := map[time.Duration]int{}
				ctx, cancel := context.WithTimeout(t.Context(), tt.duration-time.Nanosecond)
				defer cancel()
				var recs []*stats.ProducerRecorder
				var wg sync.WaitGroup
				for i := range tt.producers {
					rec := stats.NewProducerRecorder(true)
					recs = append(recs, rec)
					p := load.NewProducer(load.ProducerConfig{
						Index: i, Total: tt.producers, Rate: rate(t, tt.rate), MaxPending: 1,
					}, clock, rec)
					p.Attach(sender(func(_ context.Context, m *driver.Message) error {
						mu.Lock()
						at[clock.Now()]++
						mu.Unlock()
						p.Done(m.Slot, driver.Outcome{})
						return nil
					}))
					wg.Go(func() { _ = p.Run(ctx) })
				}
				wg.Wait()
				s := stats.NewCollector(recs, nil, clock.Start()).Collect(stats.Measure, time.Now(), true)
				require.Equal(t, tt.want, s.Total.Sent)
				require.Zero(t, s.Latencies.Delay.Max(), "each at its very moment")
				require.Len(t, at, int(tt.want), "never two producers at once")
			})
		})
	}
}

func TestCountIsExact(t *testing.T) {
	tests := []struct {
		count     uint64
		producers int
	}{{1_000_003, 7}, {3, 7}, {1, 1}, {100, 100}, {101, 100}}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d over %d", tt.count, tt.producers), func(t *testing.T) {
			var sent uint64
			for i := range tt.producers {
				r := newRig(load.ProducerConfig{Index: i, Total: tt.producers, Count: tt.count, MaxPending: 1})
				r.Attach(sender(func(_ context.Context, m *driver.Message) error {
					r.Done(m.Slot, driver.Outcome{})
					return nil
				}))
				require.NoError(t, r.Run(t.Context()))
				n := r.snapshot().Total.Completed
				require.InDelta(t, float64(tt.count)/float64(tt.producers), n, 1)
				sent += n
			}
			require.Equal(t, tt.count, sent)
		})
	}
}

func TestMaxPendingIsNeverExceeded(t *testing.T) {
	for _, limit := range []int{1, 2, 10, 1 << 20} {
		for _, paced := range []string{"", "1000"} {
			t.Run(fmt.Sprintf("%d rate %s", limit, paced), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := load.ProducerConfig{MaxPending: limit, Count: 500}
					if paced != "" {
						cfg.Rate = rate(t, paced)
					}
					r, in := newRig(cfg), newPending(t, limit)
					r.Attach(sender(func(_ context.Context, m *driver.Message) error {
						slot := m.Slot
						in.begin(slot)
						time.AfterFunc(3*time.Second, func() {
							in.end(slot)
							r.Done(slot, driver.Outcome{})
						})
						return nil
					}))
					runFor(t, r.Producer, time.Hour)
					time.Sleep(time.Minute)
					require.Equal(t, min(limit, 500), in.most)
					n := r.snapshot().Total
					require.EqualValues(t, 500, n.Completed)
					// The first limit messages go out at once; each other waits once for a slot to come back, unless one
					// came back in the same moment as another.
					switch limit {
					case 1:
						require.EqualValues(t, 499, n.Blocked)
					case 1 << 20:
						require.Zero(t, n.Blocked)
					default:
						require.LessOrEqual(t, n.Blocked, uint64(500-limit))
						require.GreaterOrEqual(t, n.Blocked, uint64(500/limit-1))
					}
				})
			})
		}
	}
}

// Completions race with sends, from many goroutines and before Send returns: for the race detector.
func TestSlotsAreUniqueUnderRace(t *testing.T) {
	const limit, count = 16, 20_000
	r, in := newRig(load.ProducerConfig{MaxPending: limit, Count: count}), newPending(t, limit)
	work := make(chan driver.Slot, limit)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for s := range work {
				in.end(s)
				r.Done(s, driver.Outcome{})
			}
		})
	}
	r.Attach(sender(func(_ context.Context, m *driver.Message) error {
		in.begin(m.Slot)
		if m.Slot%3 == 0 {
			in.end(m.Slot)
			r.Done(m.Slot, driver.Outcome{})
			return nil
		}
		work <- m.Slot
		return nil
	}))
	require.NoError(t, r.Run(t.Context()))
	close(work)
	wg.Wait()
	n := r.snapshot().Total
	require.EqualValues(t, count, n.Sent)
	require.EqualValues(t, count, n.Completed)
	require.Zero(t, n.InFlight())
}

func TestStopping(t *testing.T) {
	for _, paced := range []string{"", "1", "1000"} {
		for _, where := range []string{"slot", "send", "timer"} {
			t.Run(where+" rate "+paced, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := load.ProducerConfig{MaxPending: 1}
					if paced != "" {
						cfg.Rate = rate(t, paced)
					}
					r := newRig(cfg)
					var sends uint64
					r.Attach(sender(func(ctx context.Context, m *driver.Message) error {
						switch where {
						case "send":
							<-ctx.Done()
							return fmt.Errorf("no credit: %w", ctx.Err())
						case "timer":
							time.Sleep(time.Millisecond)
							r.Done(m.Slot, driver.Outcome{})
						}
						sends++
						return nil
					}))
					begun := time.Now()
					runFor(t, r.Producer, 4500*time.Millisecond)
					require.InDelta(t, 4500*time.Millisecond, time.Since(begun), float64(time.Millisecond))
					s := r.snapshot()
					require.Equal(t, sends, s.Total.Sent, "what did not leave does not count")
					require.Zero(t, s.Total.Failed)
					if paced != "" {
						require.EqualValues(t, s.Total.Sent, s.Latencies.Delay.Count())
					}
				})
			})
		}
	}
}

func TestSendErrorEndsTheRun(t *testing.T) {
	for _, paced := range []string{"", "1000"} {
		t.Run(paced, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := load.ProducerConfig{MaxPending: 3}
				if paced != "" {
					cfg.Rate = rate(t, paced)
				}
				r := newRig(cfg)
				lost := driver.Errorf(driver.ClassConnectionLost, "send", "", "gone")
				var sends int
				r.Attach(sender(func(_ context.Context, m *driver.Message) error {
					if sends++; sends > 5 {
						return lost
					}
					r.Done(m.Slot, driver.Outcome{})
					return nil
				}))
				require.ErrorIs(t, r.Run(t.Context()), lost)
				n := r.snapshot().Total
				require.EqualValues(t, 6, n.Sent)
				require.EqualValues(t, 5, n.Completed)
				require.EqualValues(t, 1, n.Failed)
				require.EqualValues(t, 1, n.FailuresOf[driver.Failed][driver.ClassConnectionLost])
				require.Zero(t, n.InFlight())
				require.True(t, errors.Is(r.rec.FirstError(driver.ClassConnectionLost), lost))
			})
		})
	}
}

// The message says when it was actually sent, in wall-clock microseconds, also when it was late.
func TestStamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(load.ProducerConfig{Rate: rate(t, "10"), MaxPending: 1, Count: 3, Body: []byte("body")})
		var stamps []int64
		start := time.Now().UnixMicro()
		r.Attach(sender(func(_ context.Context, m *driver.Message) error {
			require.Equal(t, time.Now().UnixMicro(), m.Time)
			require.Equal(t, "body", string(m.Body))
			stamps = append(stamps, m.Time-start)
			time.Sleep(250 * time.Millisecond)
			r.Done(m.Slot, driver.Outcome{})
			return nil
		}))
		require.NoError(t, r.Run(t.Context()))
		require.Equal(t, []int64{0, 250_000, 500_000}, stamps)
	})
}
