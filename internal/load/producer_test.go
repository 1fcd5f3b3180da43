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

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

const us = int64(1) // the unit of result.Latency

func within1Percent(t *testing.T, want time.Duration, got int64, msg string) {
	t.Helper()
	require.InEpsilon(t, want.Microseconds(), got, 0.015, msg)
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
				r := newRig(setup{Index: i, Total: tt.producers, Count: tt.count, MaxPending: 1})
				r.Attach(r.answers(nil))
				require.NoError(t, r.Run(t.Context()))
				n := r.snapshot().Total.Get(result.Completed)
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
			inBubble(t, fmt.Sprintf("%d rate %s", limit, paced), func(t *testing.T) {
				cfg := setup{MaxPending: limit, Count: 500}
				if paced != "" {
					cfg.Schedule = constant(t, paced)
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
				runFor(t, r, time.Hour)
				pass(time.Minute)
				require.Equal(t, min(limit, 500), in.most)
				n := r.snapshot().Total.Values()
				require.EqualValues(t, 500, n[result.Completed])
				// The first limit messages go out at once; each other waits once for a slot to come back, unless one
				// came back in the same moment as another.
				switch limit {
				case 1:
					require.EqualValues(t, 499, n[result.Blocked])
				case 1 << 20:
					require.Zero(t, n[result.Blocked])
				default:
					require.LessOrEqual(t, n[result.Blocked], uint64(500-limit))
					require.GreaterOrEqual(t, n[result.Blocked], uint64(500/limit-1))
				}
			})
		}
	}
}

// Completions race with sends, from many goroutines and before Send returns: for the race detector.
func TestSlotsAreUniqueUnderRace(t *testing.T) {
	const limit, count = 16, 20_000
	r, in := newRig(setup{MaxPending: limit, Count: count}), newPending(t, limit)
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
		if m.Slot.Index()%3 == 0 {
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
	n := r.snapshot().Total.Values()
	require.EqualValues(t, count, n[result.Sent])
	require.EqualValues(t, count, n[result.Completed])
	require.Zero(t, r.snapshot().Total.InFlight())
}

func TestStopping(t *testing.T) {
	for _, paced := range []string{"", "1", "1000"} {
		for _, where := range []string{"slot", "send", "timer"} {
			inBubble(t, where+" rate "+paced, func(t *testing.T) {
				cfg := setup{MaxPending: 1}
				if paced != "" {
					cfg.Schedule = constant(t, paced)
				}
				r := newRig(cfg)
				var sends uint64
				r.Attach(sender(func(ctx context.Context, m *driver.Message) error {
					switch where {
					case "send":
						<-ctx.Done()
						return fmt.Errorf("no credit: %w", ctx.Err())
					case "timer":
						pass(time.Millisecond)
						r.Done(m.Slot, driver.Outcome{})
					}
					sends++
					return nil
				}))
				begun := time.Now()
				runFor(t, r, 4500*time.Millisecond)
				require.InDelta(t, 4500*time.Millisecond, time.Since(begun), float64(time.Millisecond))
				s := r.snapshot()
				require.Equal(t, sends, s.Total.Get(result.Sent), "what did not leave does not count")
				require.Zero(t, s.Total.Get(result.Failed))
				if paced != "" {
					require.EqualValues(t, s.Total.Get(result.Sent), s.Latencies[result.Delay].Count)
				}
			})
		}
	}
}

func TestSendErrorEndsTheRun(t *testing.T) {
	for _, paced := range []string{"", "1000"} {
		inBubble(t, paced, func(t *testing.T) {
			cfg := setup{MaxPending: 3}
			if paced != "" {
				cfg.Schedule = constant(t, paced)
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
			n := r.snapshot().Total.Values()
			require.EqualValues(t, 6, n[result.Sent])
			require.EqualValues(t, 5, n[result.Completed])
			require.EqualValues(t, 1, n[result.Failed])
			require.EqualValues(t, 1, n[result.Unsent])
			require.EqualValues(t, 1, r.snapshot().Total.Producers.Failures["failed"]["connection-lost"])
			require.Zero(t, r.snapshot().Total.InFlight())
			require.True(t, errors.Is(r.rec.FirstError(driver.ClassConnectionLost), lost))
		})
	}
}

// The message says when it was actually sent, in wall-clock microseconds, also when it was late.
func TestStamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{Schedule: constant(t, "10"), MaxPending: 1, Count: 3})
		var stamps []int64
		start := time.Now().UnixMicro()
		r.Attach(r.answers(func(m *driver.Message) {
			require.Equal(t, time.Now().UnixMicro(), m.Time)
			stamps = append(stamps, m.Time-start)
			pass(250 * time.Millisecond)
		}))
		require.NoError(t, r.Run(t.Context()))
		require.Equal(t, []int64{0, 250_000, 500_000}, stamps)
	})
}

// An answer that comes again, or when another message is in the place of its slot, is counted and ends nothing.
func TestStrayAnswers(t *testing.T) {
	r := newRig(setup{MaxPending: 1, Count: 3})
	var last driver.Slot
	r.Attach(sender(func(_ context.Context, m *driver.Message) error {
		require.Zero(t, m.Slot.Index())
		require.NotEqual(t, last, m.Slot, "the place has another generation")
		if last != 0 {
			r.Done(last, driver.Outcome{State: driver.Rejected, Class: driver.ClassFull})
		}
		last = m.Slot
		r.DoneAll([]driver.Slot{m.Slot, m.Slot, m.Slot + 7}, driver.Outcome{})
		return nil
	}))
	require.NoError(t, r.Run(t.Context()))
	n := r.snapshot().Total.Values()
	require.EqualValues(t, 3, n[result.Sent])
	require.EqualValues(t, 3, n[result.Completed])
	require.Zero(t, n[result.Failed]+n[result.Rejected])
	require.EqualValues(t, 2+3*2, n[result.Strays])
}

// A range is ended as each of its messages would be, whatever its length.
func TestDoneAll(t *testing.T) {
	for _, count := range []int{1, 63, 64, 65, 1000} {
		r := newRig(setup{MaxPending: count, Count: uint64(count)})
		var list []driver.Slot
		r.Attach(sender(func(_ context.Context, m *driver.Message) error {
			list = append(list, m.Slot)
			return nil
		}))
		require.NoError(t, r.Run(t.Context()))
		r.DoneAll(list[:count/2], driver.Outcome{State: driver.Rejected, Class: driver.ClassFull})
		r.DoneAll(list[count/2:], driver.Outcome{})
		s := r.snapshot()
		require.EqualValues(t, count-count/2, s.Total.Get(result.Completed))
		require.EqualValues(t, count/2, s.Total.Get(result.Rejected))
		require.Zero(t, s.Total.InFlight())
		require.EqualValues(t, count-count/2, s.Latencies[result.Ack].Count)
	}
}

// More says that the next message follows at once, or a flush.
func TestMore(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     setup
		pending bool // messages stay in flight
		want    []bool
	}{
		{"closed loop", setup{MaxPending: 10, Count: 3}, true, []bool{true, true, false}},
		{"one at a time", setup{MaxPending: 1, Count: 3}, false, []bool{false, false, false}},
		{"the last slot", setup{MaxPending: 2, Count: 3}, true, []bool{true, false}},
		{"behind schedule", setup{Schedule: constant(t, "1000000000"), MaxPending: 10, Count: 3}, true, []bool{false, true, false}},
		{"on schedule", setup{Schedule: constant(t, "1"), MaxPending: 10, Count: 3}, true, []bool{false, false, false}},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			r := newRig(tt.cfg)
			var more []bool
			r.Attach(sender(func(_ context.Context, m *driver.Message) error {
				more = append(more, m.More)
				if !tt.pending {
					r.Done(m.Slot, driver.Outcome{})
				}
				pass(time.Microsecond)
				return nil
			}))
			runFor(t, r, time.Minute)
			require.Equal(t, tt.want, more)
		})
	}
}

// A broker that acknowledges nothing for one second of two, at 1000 msg/s. Where the second shows depends on
// max-pending: with few messages in flight the producer must wait, so it shows in send delay; with many the messages
// lie at the broker, so it shows in send ack. It always shows in the response time.
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
		inBubble(t, fmt.Sprint(tt.pending), func(t *testing.T) {
			r := newRig(setup{Schedule: constant(t, "1000"), MaxPending: tt.pending, Count: 2000})
			ack := 10 * time.Microsecond
			r.Attach(r.later(func(at time.Duration) time.Duration {
				if at >= 500*time.Millisecond && at < 1500*time.Millisecond {
					return 1500*time.Millisecond - at + ack
				}
				return ack
			}))
			runFor(t, r, time.Minute)
			pass(2 * time.Second)
			s := r.snapshot()
			require.EqualValues(t, 2000, s.Total.Get(result.Completed))
			require.Zero(t, s.Total.Get(result.LateSends), "it was the broker")
			l := s.Latencies
			// Of 2000 messages, those due in the 1000 ms of the stall waited 0 to 1 s: p50 is about 0, p75 half a
			// second, p90 0.8 s.
			within1Percent(t, 800*time.Millisecond, l[result.Response].Percentile(90), "response p90")
			within1Percent(t, 500*time.Millisecond, l[result.Response].Percentile(75), "response p75")
			within1Percent(t, time.Second, l[result.Response].Max, "response max")
			if tt.delay > 0 {
				require.InDelta(t, tt.delay.Microseconds(), l[result.Delay].Percentile(90), 30_000)
				require.LessOrEqual(t, l[result.Ack].Percentile(99), 15*us)
			} else {
				require.Zero(t, l[result.Delay].Max)
				within1Percent(t, tt.ack, l[result.Ack].Percentile(90), "ack p90")
			}
			for _, p := range []float64{50, 75, 90, 99} {
				require.GreaterOrEqual(t, l[result.Response].Percentile(p), l[result.Ack].Percentile(p))
			}
		})
	}
}

// A broker that is only a little slower in Send than the rate needs: no single message waits long, yet none of the
// growing delay is the tester's fault. And the other way round: work of the tester itself counts as late.
func TestLateSends(t *testing.T) {
	tests := []struct {
		name  string
		send  time.Duration // each Send takes this
		rate  string
		waits string // the driver says that it waited for that; empty if it does not report its waits
		late  bool
	}{
		{"in time", 50 * time.Microsecond, "1000", "", false},
		{"slow broker", 2 * time.Millisecond, "1000", "", false},
		{"nobody knows whose fault it is", 300 * time.Microsecond, "5000", "", true},
		{"no credit", 300 * time.Microsecond, "5000", "credit", false},
		{"slow network", 300 * time.Microsecond, "5000", "socket", false},
		{"slow driver", 2 * time.Millisecond, "1000", "nothing", true},
		{"rate beyond the tester", 20 * time.Microsecond, "100000", "", true},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			r := newRig(setup{Schedule: constant(t, tt.rate), MaxPending: 10})
			var waits driver.Waits
			send := sender(func(_ context.Context, m *driver.Message) error {
				pass(tt.send)
				switch tt.waits {
				case "credit":
					waits.Credit.Time += tt.send
				case "socket":
					waits.Socket.Time += tt.send
				}
				r.Done(m.Slot, driver.Outcome{})
				return nil
			})
			if tt.waits == "" {
				r.Attach(send)
			} else {
				r.Attach(waitingSender{send, &waits})
			}
			runFor(t, r, 2*time.Second)
			n := r.snapshot().Total.Values()
			if tt.late {
				require.Greater(t, n[result.LateSends], n[result.Sent]*9/10)
			} else {
				require.Zero(t, n[result.LateSends])
			}
		})
	}
}

// A message that is late, and waits in Send until the load ends, was not sent: it is not one that was sent late.
func TestUnsentIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{Schedule: constant(t, "1000"), MaxPending: 10})
		r.Attach(sender(func(ctx context.Context, _ *driver.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		pass(200 * time.Millisecond) // before Run: the goroutine did not get a processor
		runFor(t, r, time.Second)
		n := r.snapshot().Total.Values()
		require.Zero(t, n[result.Sent])
		require.Zero(t, n[result.LateSends])
	})
}

// The tester is starved: it wakes 200 ms late, once. The clock of the producer was wrong, not the broker.
func TestStarvedTesterIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{Schedule: constant(t, "1000"), MaxPending: 10, Count: 1000})
		r.Attach(r.answers(nil))
		pass(200 * time.Millisecond) // before Run: the goroutine did not get a processor
		runFor(t, r, time.Minute)
		s := r.snapshot()
		// Messages 0 to 194 left more than 5 ms late.
		require.EqualValues(t, 195, s.Total.Get(result.LateSends))
		within1Percent(t, 200*time.Millisecond, s.Latencies[result.Delay].Max, "delay max")
	})
}

// A stall of the broker must not excuse the tester's own lateness afterwards.
func TestStallDoesNotHideLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{Schedule: constant(t, "1000"), MaxPending: 10, Count: 500})
		first := true
		r.Attach(r.answers(func(m *driver.Message) {
			if first {
				pass(100 * time.Millisecond) // the broker
			}
			first = false
			pass(90 * time.Microsecond) // the tester, 9% of a period: catches up slowly
		}))
		runFor(t, r, time.Minute)
		require.Zero(t, r.snapshot().Total.Get(result.LateSends))
	})
}
