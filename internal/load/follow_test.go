package load_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Every message leaves at its time: in a ramp, not in a pause, and in bursts. The load ends with the schedule.
func TestProducersFollowTheSchedule(t *testing.T) {
	s := schedule(t, "ramp 0 to 100 for 2s, pause 3s, burst 50 for 1s every 2s for 4s, 1.5 for 3s, pause 1m")
	for _, producers := range []int{1, 3, 7} {
		inBubble(t, fmt.Sprint(producers), func(t *testing.T) {
			clock := load.NewClock()
			var mu sync.Mutex
			perSecond := make([]int, 12)
			times := map[time.Duration]int{}
			var recs []*stats.ProducerRecorder
			var wg sync.WaitGroup
			for i := range producers {
				rec := stats.NewProducerRecorder(true, nil)
				recs = append(recs, rec)
				p := newRunning(setup{Index: i, Total: producers, Schedule: s, MaxPending: 1}, clock, rec)
				p.Attach(sender(func(_ context.Context, m *driver.Message) error {
					mu.Lock()
					defer mu.Unlock()
					perSecond[clock.Now()/time.Second]++
					times[clock.Now()]++
					p.Done(m.Slot, driver.Outcome{})
					return nil
				}))
				wg.Go(func() {
					require.NoError(t, p.Run(t.Context()))
					require.Equal(t, 72*time.Second, clock.Now(), "the pause at the end belongs to the load")
				})
			}
			wg.Wait()
			// A ramp from 0 to 100 in 2 s has sent 25 t² messages, and 4.5 in 3 s are 5: the first one is due at once.
			require.Equal(t, []int{25, 75, 0, 0, 0, 50, 0, 50, 0, 2, 1, 2}, perSecond)
			for n := range uint64(205) {
				require.Equal(t, 1, times[s.At(n)], "message %d at %s", n, s.At(n))
			}
			total := stats.NewCollector(recs, nil, clock.Start()).Collect(stats.Measure, time.Now(), true)
			require.EqualValues(t, 205, total.Total.Get(result.Completed))
			require.Zero(t, total.Latencies[result.Delay].Max)
		})
	}
}

// The broker does not answer before a pause. Messages due before it are late, with their own due time; nothing that was
// not due in the pause is sent because of it.
func TestHeldUpOverAPause(t *testing.T) {
	s := schedule(t, "100 for 1s, pause 10s, 100 for 1s")
	for _, tt := range []struct {
		until time.Duration // the answer to message 49, due at 490 ms
		late  uint64        // messages due meanwhile
	}{
		{700 * time.Millisecond, 21}, {5 * time.Second, 50}, {11 * time.Second, 51}, {11500 * time.Millisecond, 101}, {time.Minute, 150},
	} {
		for _, how := range []string{"max-pending", "send"} {
			inBubble(t, fmt.Sprintf("%s %s", how, tt.until), func(t *testing.T) {
				r := newRig(setup{Schedule: s, MaxPending: 1})
				var sent []time.Duration
				r.Attach(sender(func(_ context.Context, m *driver.Message) error {
					slot := m.Slot
					sent = append(sent, r.clock.Now())
					switch {
					case len(sent) != 50:
						r.Done(slot, driver.Outcome{})
					case how == "send":
						pass(tt.until - r.clock.Now())
						r.Done(slot, driver.Outcome{})
					default:
						time.AfterFunc(tt.until-r.clock.Now(), func() { r.Done(slot, driver.Outcome{}) })
					}
					return nil
				}))
				require.NoError(t, r.Run(t.Context()))
				require.Equal(t, max(12*time.Second, tt.until), r.clock.Now(), "all that was due is sent, then the load ends")
				require.Len(t, sent, 200)
				var delay time.Duration
				for n, at := range sent {
					want := s.At(uint64(n))
					if n >= 50 && uint64(n) < 50+tt.late {
						want = tt.until
					}
					require.Equal(t, want, at, "message %d", n)
					delay += at - s.At(uint64(n))
				}
				got := r.snapshot()
				require.Equal(t, delay.Microseconds(), got.Latencies[result.Delay].Sum, "delays are those from the due times")
				require.Zero(t, got.Total.Get(result.LateSends), "it was the broker")
			})
		}
	}
}

// The first of these ends a load: its schedule, its time, its count or its user.
func TestEndOfSchedule(t *testing.T) {
	for _, tt := range []struct {
		name, schedule string
		cfg            setup
		sent           uint64
		ended          time.Duration // a minute is the user's patience
	}{
		{"schedule", "10 for 2s", setup{}, 20, 2 * time.Second},
		{"fraction of a message", "0.7 for 2s", setup{}, 2, 2 * time.Second},
		{"endless", "10 for 2s, 1", setup{}, 20 + 58, time.Minute},
		{"time before", "10 for 2s", setup{Until: time.Second}, 10, time.Minute},
		{"time in a pause", "10 for 2s, pause 2s, 10 for 2s", setup{Until: 3 * time.Second}, 20, time.Minute},
		{"same time", "10 for 2s", setup{Until: 2 * time.Second}, 20, time.Minute},
		{"time after", "10 for 2s", setup{Until: 3 * time.Second}, 20, 2 * time.Second},
		{"count before", "10 for 2s", setup{Count: 5}, 5, 400 * time.Millisecond},
		{"count after", "10 for 2s", setup{Count: 21}, 20, 2 * time.Second},
		{"user in the last pause", "10 for 2s, pause 5m", setup{}, 20, time.Minute},
		{"more producers than messages", "1 for 2s", setup{Index: 2, Total: 3}, 0, 2 * time.Second},
	} {
		inBubble(t, tt.name, func(t *testing.T) {
			tt.cfg.Schedule, tt.cfg.MaxPending = schedule(t, tt.schedule), 1
			r := newRig(tt.cfg)
			r.Attach(r.answers(nil))
			runFor(t, r, time.Minute-time.Nanosecond)
			require.Equal(t, tt.ended, r.clock.Now().Round(time.Microsecond))
			require.Equal(t, tt.sent, r.snapshot().Total.Get(result.Sent))
		})
	}
}

// A producer in a pause waits, also in the last one: it is not at its limit.
func TestPauseIsNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(setup{Schedule: schedule(t, "10 for 2s, pause 3s, 10 for 2s, pause 3500ms"), MaxPending: 1})
		r.collector.SetWorkers([]stats.Worker{{Name: "producer-0"}})
		r.Attach(r.answers(nil))
		var wg sync.WaitGroup
		wg.Go(func() { require.NoError(t, r.Run(t.Context())) })
		for range 12 {
			pass(time.Second)
			synctest.Wait()
			r.snapshot()
			limit := r.collector.EndStep("load").Tally.Judge(make([]stats.ProducerAsked, 1), false, false)
			require.NotEqual(t, result.LimitWorker, limit.Kind, "after %s", r.clock.Now())
		}
		wg.Wait()
	})
}
