package mem_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/driver"
)

// numbers returns from..to without those for which drop is true.
func numbers(from, to int64, drop func(int64) bool) (list []int64) {
	for i := from; i <= to; i++ {
		if drop == nil || !drop(i) {
			list = append(list, i)
		}
	}
	return list
}

func TestCounts(t *testing.T) {
	const n = 1000
	third := func(i int64) bool { return i%3 == 0 }
	tests := map[string]struct {
		options []string
		deliver []int64
		stats   mem.Stats // how sends end, and faults
	}{
		"none": {nil, numbers(1, n, nil), mem.Stats{Stored: n, Accepted: n}},
		"lose": {
			[]string{"lose=100"},
			numbers(1, n, func(i int64) bool { return i%100 == 0 }),
			mem.Stats{Stored: n, Accepted: n, Lost: 10},
		},
		"reject":  {[]string{"reject=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Accepted: 667, Rejected: 333}},
		"release": {[]string{"release=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Accepted: 667, Released: 333}},
		"modify":  {[]string{"modify=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Accepted: 667, Modified: 333}},
		"fail":    {[]string{"fail=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Accepted: 667, Failed: 333}},
		"withhold": {
			[]string{"withhold=3"},
			numbers(1, n, nil),
			mem.Stats{Stored: n, Accepted: 667, Unknown: 333, Withheld: 333},
		},
		"damage":          {[]string{"damage=100"}, numbers(1, n, nil), mem.Stats{Stored: n, Accepted: n, Damaged: 10}},
		"rollback":        {[]string{"rollback=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Accepted: n, RolledBack: 333}},
		"no ID to damage": {[]string{"damage-id=100"}, numbers(1, n, nil), mem.Stats{Stored: n, Accepted: n}},
		"every n-th of what is stored": {
			[]string{"reject=2", "lose=50"},
			numbers(1, n, func(i int64) bool { return i%2 == 0 || i%100 == 99 }),
			mem.Stats{Stored: 500, Accepted: 500, Rejected: 500, Lost: 10},
		},
		"the first fault wins": {
			[]string{"fail=2", "reject=2", "release=3"},
			numbers(1, n, func(i int64) bool { return i%2 == 0 || i%3 == 0 }),
			mem.Stats{Stored: 333, Accepted: 333, Failed: 500, Released: 167},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, options(tt.options...))
				r.send(1, n)
				r.receive()
				synctest.Wait()
				r.stop()
				require.Equal(t, tt.deliver, r.delivered)
				want := tt.stats
				want.Arrived = n
				want.Delivered, want.Acknowledged = uint64(len(tt.deliver)), uint64(len(tt.deliver))
				require.Equal(t, want, r.broker.Stats())
				for state, n := range [driver.NumStates]uint64{
					want.Accepted, want.Rejected, want.Released, want.Modified, want.Failed, want.Unknown,
				} {
					require.EqualValues(t, n, r.outcomes[state], driver.State(state))
				}
			})
		})
	}
}

// Each fault does to a message just what it says.
func TestWhatArrives(t *testing.T) {
	id := driver.ID{Run: 1, Producer: 2, Number: 3, Sum: 4}
	flippedNumber := driver.ID{Run: 1, Producer: 2, Number: 3 | 1<<20, Sum: 4}
	for _, tt := range []struct {
		option, body, want string
		id                 driver.ID
		redelivered        bool
		n                  int
	}{
		{"lose=2", "body", "body", id, false, 1},
		{"damage=1", "body", "boly", id, false, 1},
		{"damage=1", "", "\x01", id, false, 1},
		{"damage-id=1", "body", "body", flippedNumber, false, 1},
		{"duplicate=1", "body", "body", id, true, 2},
	} {
		t.Run(tt.option, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, options(tt.option))
				spec := producerSpec(driver.Destination{Name: "q"}, tt.body)
				p, err := r.driver.Producer(t.Context(), spec, driver.DoneFunc(func(driver.Slot, driver.Outcome) {}))
				require.NoError(t, err)
				require.NoError(t, p.Send(t.Context(), &driver.Message{ID: id}))
				require.NoError(t, p.Close(t.Context()))
				require.Equal(t, tt.body, string(spec.Variants[0].Body), "the sender's body stays as it is")
				var got []driver.Delivery
				ctx, cancel := context.WithCancel(t.Context())
				result := make(chan error, 1)
				go func() {
					result <- r.consumer.Run(ctx, accept(func(d *driver.Delivery) {
						got = append(got, driver.Delivery{ID: d.ID, Body: bytes.Clone(d.Body), Redelivered: d.Redelivered})
					}))
				}()
				synctest.Wait()
				cancel()
				require.NoError(t, <-result)
				require.Len(t, got, tt.n)
				last := got[len(got)-1]
				require.Equal(t, driver.Delivery{ID: tt.id, Body: []byte(tt.want), Redelivered: tt.redelivered}, last)
				r.stop()
			})
		})
	}
}

func TestDuplicate(t *testing.T) {
	for unmarked, again := range map[string]int{"false": 2, "true": 0} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, options("duplicate=4", "duplicate-unmarked="+unmarked))
			r.send(1, 10)
			r.receive()
			synctest.Wait()
			r.stop()
			require.Equal(t, []int64{1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10}, r.delivered)
			require.Equal(t, again, r.again)
			s := r.broker.Stats()
			require.EqualValues(t, 2, s.Duplicated)
			require.EqualValues(t, again, s.Redelivered)
			require.EqualValues(t, 12, s.Delivered)
			require.EqualValues(t, 10, s.Accepted)
		})
	}
}

func TestReorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, options("reorder=4"))
		r.receive()
		r.send(1, 8)
		require.Equal(t, uint64(1), r.broker.Stats().Reordered, "the eighth waits")
		begin := time.Now()
		<-time.After(time.Second)
		r.stop()
		require.Equal(t, []int64{1, 2, 3, 5, 4, 6, 7, 8}, r.delivered)
		require.Equal(t, 100*time.Millisecond, r.at[7].Sub(begin), "nothing overtook the last one")
		s := r.broker.Stats()
		require.EqualValues(t, 1, s.Reordered)
		require.EqualValues(t, 8, s.Stored)
		require.EqualValues(t, 8, s.Accepted)
	})
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, options("latency=30ms", "delivery-latency=70ms"))
		r.receive()
		begin := time.Now()
		r.send(1, 100)
		require.Equal(t, time.Duration(0), time.Since(begin), "Send does not wait")
		<-time.After(time.Second)
		r.stop()
		require.Len(t, r.doneAt, 100)
		for i := range r.delivered {
			require.Equal(t, 30*time.Millisecond, r.doneAt[driver.Slot(i+1)].Sub(begin))
			require.Equal(t, 70*time.Millisecond, r.at[i].Sub(begin))
		}
		require.Equal(t, numbers(1, 100, nil), r.delivered)
	})
}

// TestStall sends a message each 10 ms; from 100 ms to 1100 ms nothing moves.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, options("latency=5ms", "stall-after=100ms", "stall-for=1s"))
		r.receive()
		begin := time.Now()
		ms := func(t time.Time) int { return int(t.Sub(begin).Milliseconds()) }
		for i := 1; i <= 200; i++ {
			r.send(i, i)
			require.Equal(t, (i-1)*10, ms(time.Now()), "Send does not wait")
			<-time.After(10 * time.Millisecond)
		}
		<-time.After(time.Second)
		r.stop()
		for i := 1; i <= 200; i++ {
			sent := (i - 1) * 10
			ack, delivery := sent+5, sent
			if ack >= 100 && ack < 1100 {
				ack = 1100
			}
			if delivery >= 100 && delivery < 1100 {
				delivery = 1100
			}
			require.Equalf(t, ack, ms(r.doneAt[driver.Slot(i)]), "acknowledgement of %d", i)
			require.Equalf(t, delivery, ms(r.at[i-1]), "delivery of %d", i)
		}
		require.EqualValues(t, 200, r.broker.Stats().Accepted)
	})
}

func TestStallNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, options())
		r.receive()
		r.send(1, 10)
		synctest.Wait()
		r.broker.Stall(time.Second)
		begin := time.Now()
		r.send(11, 20)
		synctest.Wait()
		require.Equal(t, [2]int{10, 10}, r.counts())
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Equal(t, [2]time.Duration{time.Second, time.Second}, r.since(begin, 20))

		r.broker.Stall(time.Hour)
		r.send(21, 30)
		synctest.Wait()
		require.Equal(t, [2]int{20, 20}, r.counts())
		require.NoError(t, r.broker.Set(mem.Options{}))
		synctest.Wait()
		require.Equal(t, [2]int{30, 30}, r.counts(), "Set ends the stall")
		r.broker.Stall(time.Hour)
		r.send(31, 35)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		require.NoError(t, r.producer.Close(ctx))
		require.Equal(t, time.Second, time.Since(begin), "Close waits until its context ends")
		r.stop()
		require.Equal(t, [driver.NumStates]int{driver.Accepted: 30, driver.Unknown: 5}, r.outcomes)
	})
}

// Messages that one worker has fetched are for all workers of the consumer, also after a commit.
func TestWorkersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, mem.Options{})
		require.NoError(t, r.consumer.Close(t.Context()))
		spec := driver.ConsumerSpec{Destination: driver.Destination{Name: "q"}, Concurrency: 2, Credit: 2, TransactionSize: 2}
		c, err := r.driver.Consumer(t.Context(), spec)
		require.NoError(t, err)
		var delivering atomic.Int64
		gate, result := make(chan bool), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			result <- c.Run(ctx, accept(func(*driver.Delivery) {
				delivering.Add(1)
				defer delivering.Add(-1)
				<-gate
			}))
		}()
		for range 3 {
			r.send(1, 2)
			synctest.Wait()
			require.EqualValues(t, 2, delivering.Load())
			r.send(3, 4)
			gate <- true
			synctest.Wait()
			gate <- true
			synctest.Wait()
			require.EqualValues(t, 2, delivering.Load())
			gate <- true
			gate <- true
			synctest.Wait()
		}
		cancel()
		require.NoError(t, <-result)
		require.NoError(t, c.Close(t.Context()))
		require.EqualValues(t, 6, r.broker.Stats().Commits)
		r.stop()
	})
}

func TestFullBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, options("limit=10", "latency=1ms"))
		r.send(1, 10)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		err := r.producer.Send(ctx, &driver.Message{Slot: 11, Time: 11})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 50*time.Millisecond, time.Since(begin))
		require.NotEmpty(t, driver.HintOf(err))
		require.EqualValues(t, 10, r.broker.Stats().Arrived, "a send that failed does not count")

		go func() {
			<-time.After(time.Second)
			r.receive()
		}()
		begin = time.Now()
		r.send(11, 30)
		require.Equal(t, time.Second, time.Since(begin), "Send waited for room")
		<-time.After(time.Second)
		r.stop()
		require.Equal(t, numbers(1, 30, nil), r.delivered)
	})
}

func TestDisconnectAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, options("disconnect-after=10", "latency=1s", "withhold=5"))
		r.receive()
		r.send(1, 10)
		synctest.Wait()
		require.Equal(t, 10, r.outcomes[driver.Unknown])
		require.Equal(t, 10, r.classes[driver.ClassConnectionLost])
		err := r.producer.Send(t.Context(), &driver.Message{Slot: 11})
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err))
		err = <-r.result
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err))
		r.cancel = nil
		r.stop()
		s := r.broker.Stats()
		require.EqualValues(t, 10, s.Arrived)
		require.EqualValues(t, 10, s.Unknown)
		require.EqualValues(t, 10, s.Acknowledged+s.Backlog, "nothing is lost")
		require.Zero(t, s.Connections)
	})
}

func TestMistakes(t *testing.T) {
	f := mem.Factory()
	o := options("lose=-1", "latency=-1s")
	err := f.Check(driver.OpenOptions{URL: "mem://local", Options: &o})
	require.ErrorContains(t, err, "option lose=-1: must be 0 or more")
	require.ErrorContains(t, err, "option latency=-1s: must be 0 or more")
	require.NoError(t, f.Check(driver.OpenOptions{URL: "mem://local"}))
	require.Error(t, f.Check(driver.OpenOptions{URL: "amqp://local"}))
}

func TestFactoriesAreBrokers(t *testing.T) {
	f := mem.Factory()
	dest := driver.Destination{Kind: driver.Queue, Name: "q"}
	depth := func(f driver.Factory, url string) uint64 {
		d, err := f.Open(t.Context(), driver.OpenOptions{URL: url, ConnectTimeout: time.Second, Options: f.NewOptions()})
		require.NoError(t, err)
		defer d.Close(t.Context())
		list, err := d.(driver.Inspector).Inspect(t.Context(), []driver.Destination{dest})
		require.NoError(t, err)
		return list[0].Depth.N
	}
	d, err := f.Open(t.Context(), driver.OpenOptions{URL: "mem://a", ConnectTimeout: time.Second, Options: f.NewOptions()})
	require.NoError(t, err)
	p, err := d.Producer(t.Context(), producerSpec(dest), driver.DoneFunc(func(driver.Slot, driver.Outcome) {}))
	require.NoError(t, err)
	require.NoError(t, p.Send(t.Context(), &driver.Message{}))
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, d.Close(t.Context()))
	require.Zero(t, depth(mem.Factory(), "mem://a"), "another factory has another broker")
	require.EqualValues(t, 1, depth(f, "mem://user:secret@a"))
}
