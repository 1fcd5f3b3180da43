package mem_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

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
	type ends = [driver.NumStates]uint64
	tests := map[string]struct {
		options []string
		deliver []int64
		stats   mem.Stats // how sends end, and faults
	}{
		"none": {nil, numbers(1, n, nil), mem.Stats{Stored: n, Ended: ends{n}}},
		"lose": {
			[]string{"lose=100"},
			numbers(1, n, func(i int64) bool { return i%100 == 0 }),
			mem.Stats{Stored: n, Ended: ends{n}, Lost: 10},
		},
		"reject":  {[]string{"reject=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Ended: ends{667, driver.Rejected: 333}}},
		"release": {[]string{"release=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Ended: ends{667, driver.Released: 333}}},
		"modify":  {[]string{"modify=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Ended: ends{667, driver.Modified: 333}}},
		"fail":    {[]string{"fail=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Ended: ends{667, driver.Failed: 333}}},
		"withhold": {
			[]string{"withhold=3"},
			numbers(1, n, nil),
			mem.Stats{Stored: n, Ended: ends{667, driver.Unknown: 333}, Withheld: 333},
		},
		"rollback":        {[]string{"rollback=3"}, numbers(1, n, third), mem.Stats{Stored: 667, Ended: ends{n}, RolledBack: 333}},
		"no ID to damage": {[]string{"damage-id=100"}, numbers(1, n, nil), mem.Stats{Stored: n, Ended: ends{n}}},
		"every n-th of what is stored": {
			[]string{"reject=2", "lose=50"},
			numbers(1, n, func(i int64) bool { return i%2 == 0 || i%100 == 99 }),
			mem.Stats{Stored: 500, Ended: ends{500, driver.Rejected: 500}, Lost: 10},
		},
		"the first fault wins": {
			[]string{"fail=2", "reject=2", "release=3"},
			numbers(1, n, func(i int64) bool { return i%2 == 0 || i%3 == 0 }),
			mem.Stats{Stored: 333, Ended: ends{333, driver.Rejected: 500, driver.Released: 167}},
		},
	}
	for name, tt := range tests {
		inBubble(t, name, func(t *testing.T) {
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
			require.Equal(t, want.Ended, r.outcomes)
		})
	}
}

func TestContents(t *testing.T) {
	id := driver.ID{Run: 1, Producer: 2, Number: 3, Sum: 4}
	flippedNumber := driver.ID{Run: 1, Producer: 2, Number: 3 | 1<<20, Sum: 4}
	for _, tt := range []struct {
		option string
		want   []driver.Delivery
		stats  mem.Stats
	}{
		{"damage=1", []driver.Delivery{{ID: id, Body: []byte("boly")}}, mem.Stats{Damaged: 1, Delivered: 1}},
		{"damage-id=1", []driver.Delivery{{ID: flippedNumber, Body: []byte("body")}}, mem.Stats{DamagedIDs: 1, Delivered: 1}},
		{
			"duplicate=1",
			[]driver.Delivery{{ID: id, Body: []byte("body")}, {ID: id, Body: []byte("body"), Redelivered: true}},
			mem.Stats{Duplicated: 1, Delivered: 2, Redelivered: 1},
		},
	} {
		inBubble(t, tt.option, func(t *testing.T) {
			r := newRig(t, options(tt.option))
			require.NoError(t, r.producer.Send(t.Context(), &driver.Message{ID: id}))
			var got []driver.Delivery
			ctx, cancel := context.WithCancel(t.Context())
			r.cancel = cancel
			go func() {
				r.result <- r.consumer.Run(ctx, accept(func(d *driver.Delivery) {
					got = append(got, driver.Delivery{ID: d.ID, Body: bytes.Clone(d.Body), Redelivered: d.Redelivered})
				}))
			}()
			synctest.Wait()
			r.stop()
			require.Equal(t, tt.want, got)
			tt.stats.Arrived, tt.stats.Stored, tt.stats.Ended[driver.Accepted], tt.stats.Acknowledged = 1, 1, 1, tt.stats.Delivered
			require.Equal(t, tt.stats, r.broker.Stats())
		})
	}
}

func TestReorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, options("reorder=4"))
		r.receive()
		r.send(1, 8)
		synctest.Wait()
		require.Equal(t, []int64{1, 2, 3, 5, 4, 6, 7}, r.delivered, "the eighth waits for the end of a producer")
		require.NoError(t, r.producer.Close(t.Context()))
		synctest.Wait()
		r.stop()
		require.Equal(t, []int64{1, 2, 3, 5, 4, 6, 7, 8}, r.delivered)
		require.EqualValues(t, 1, r.broker.Stats().Reordered)
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
		r.broker.Set(mem.Options{})
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
		require.Equal(t, [driver.NumStates]uint64{driver.Accepted: 30, driver.Unknown: 5}, r.outcomes)
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

func TestNotAURL(t *testing.T) {
	f := mem.Factory()
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
