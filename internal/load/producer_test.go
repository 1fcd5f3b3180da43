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
