package store

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults Faults
		want   []string
		counts FaultCounts
	}{
		{"none", Faults{}, []string{"1", "2", "3", "4", "5", "6"}, FaultCounts{}},
		{"lose", Faults{LoseEvery: 2}, []string{"1", "3", "5"}, FaultCounts{Lost: 3}},
		{"duplicate", Faults{DuplicateEvery: 4}, []string{"1", "2", "3", "4", "4", "5", "6"}, FaultCounts{Duplicated: 1}},
		{"reorder", Faults{ReorderEvery: 2}, []string{"1", "3", "2", "5", "4"}, FaultCounts{Reordered: 2}},
		{"reorder all", Faults{ReorderEvery: 1}, []string{"1", "2", "3", "4", "5"}, FaultCounts{}},
		{"damage", Faults{DamageEvery: 3}, []string{"1", "2", "1", "4", "5", "2"}, FaultCounts{Damaged: 2}},
		{"withhold", Faults{WithholdEvery: 3}, []string{"1", "2", "3", "4", "5", "6"}, FaultCounts{Withheld: 2}},
		{"two", Faults{LoseEvery: 3, DuplicateEvery: 3}, []string{"1", "2", "4", "5"}, FaultCounts{Lost: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Config{})
			s.SetFaults(c.faults)
			assert.Equal(t, c.faults, s.Faults())
			d, q := queue(s, "Q")
			withheld := uint64(0)
			for i := range 6 {
				if d.Send(message(strconv.Itoa(i+1))) == Withheld {
					withheld++
				}
			}
			got, _ := take(consume(t, q, nil), 20)
			if c.name == "damage" {
				assert.NotEqual(t, "3", got[2])
				assert.NotEqual(t, "6", got[5])
				got[2], got[5] = "1", "2" // whatever they are
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.counts, s.FaultCounts())
			assert.Equal(t, c.counts.Withheld, withheld)
		})
	}
}

func TestReorderIsPerSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		s.SetFaults(Faults{ReorderEvery: 3})
		d, q := queue(s, "Q")
		for i, source := range []uint64{1, 2, 1, 2, 2, 1} { // the third and the sixth
			m := message(strconv.Itoa(i + 1))
			m.Source = source
			d.Send(m)
		}
		c := consume(t, q, nil)
		got, _ := take(c, 20)
		assert.Equal(t, []string{"1", "2", "4", "5", "3"}, got)
		assert.Equal(t, uint64(0), s.FaultCounts().Reordered, "two held back by turns did not overtake each other")
		time.Sleep(reorderWait) //nolint:forbidigo // a fake clock
		synctest.Wait()
		got, _ = take(c, 20)
		assert.Equal(t, []string{"6"}, got, "nobody came to overtake it")
		assert.Equal(t, uint64(0), s.FaultCounts().Reordered)
	})
}

func TestDelayFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		s.SetFaults(Faults{Delay: time.Second})
		d, q := queue(s, "Q")
		var woken atomic.Int64
		c, _ := q.Consume(nil, func() { woken.Store(time.Now().UnixNano()) })
		start := time.Now()
		d.Send(message("1"))
		got, _ := take(c, 1)
		assert.Empty(t, got)
		time.Sleep(2 * time.Second) //nolint:forbidigo // a fake clock
		got, _ = take(c, 1)
		assert.Equal(t, []string{"1"}, got)
		assert.Equal(t, start.Add(time.Second).UnixNano(), woken.Load())

		late := message("2") // it is to wait longer anyway
		late.NotBefore = time.Now().Add(time.Minute).UnixNano()
		d.Send(late)
		s.Destination(driver.Destination{Kind: driver.Topic, Name: "nobody"}).Send(message("3"))
		assert.Equal(t, FaultCounts{Delayed: 1}, s.FaultCounts())
	})
}

// TestRateFault: messages are served at the rate, to the nanosecond, over all destinations. After a pause the row
// begins again. A message without a receiver takes no turn.
func TestRateFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		s.SetFaults(Faults{Rate: 30_000, LoseEvery: 4})
		d, q := queue(s, "Q")
		other, _ := queue(s, "other")
		nobody := s.Destination(driver.Destination{Kind: driver.Topic, Name: "nobody"})
		start := time.Now()
		c := consume(t, q, nil)
		for _, to := range []*Destination{d, other, d, d, nobody, d} { // the fourth is lost
			assert.Equal(t, Stored, to.Send(message("m")))
		}
		for _, at := range []time.Duration{33_333, 100_000, 133_333} {
			time.Sleep(time.Until(start.Add(at - 1))) //nolint:forbidigo // a fake clock
			got, _ := take(c, 9)
			assert.Empty(t, got, at)
			time.Sleep(time.Nanosecond) //nolint:forbidigo // a fake clock
			synctest.Wait()
			got, _ = take(c, 9)
			assert.Len(t, got, 1, at)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // a fake clock
		start = time.Now()
		for range 60_000 {
			s.faults.Load().serve(start.UnixNano())
		}
		assert.Equal(t, start.Add(2*time.Second).UnixNano(), s.faults.Load().serviceEnd())
		assert.Equal(t, FaultCounts{Served: 4, Lost: 1}, s.FaultCounts())
	})
}

// TestWorkFault: the messages of a connection take their time one after another, and connections work in parallel.
func TestWorkFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		s.SetFaults(Faults{Work: 3 * time.Millisecond})
		start := time.Now()
		var connections sync.WaitGroup
		for range 4 {
			connections.Go(func() {
				for range 10 {
					assert.Equal(t, Stored, s.Destination(driver.Destination{Kind: driver.Queue, Name: "Q"}).Send(message("m")))
				}
			})
		}
		connections.Wait()
		assert.Equal(t, 30*time.Millisecond, time.Since(start))
		assert.Equal(t, FaultCounts{Worked: 40}, s.FaultCounts())
	})
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		d, q := queue(s, "Q")
		woken := make(chan time.Time, 1)
		c, _ := q.Consume(nil, func() { woken <- time.Now() })
		d.Send(message("1"))
		s.Stall(time.Hour)
		s.Stall(time.Second)
		s.Stall(3 * time.Second)
		start := time.Now()
		got, _ := take(c, 1)
		assert.Empty(t, got)
		var sent atomic.Int64
		go func() {
			d.Send(message("2"))
			sent.Store(int64(time.Since(start)))
		}()
		assert.Equal(t, 3*time.Second, (<-woken).Sub(start))
		synctest.Wait()
		assert.Equal(t, int64(3*time.Second), sent.Load())
		got, list := take(c, 9)
		assert.Equal(t, []string{"1", "2"}, got)
		assert.True(t, c.Settle(list[0].ID, Accepted))

		s.Stall(time.Hour)
		s.Stall(0)
		assert.True(t, c.Settle(list[1].ID, Accepted))
		assert.Equal(t, uint64(2), s.FaultCounts().Stalls)
	})
}

// TestStallAfterStall: the timer of a stall that ends while another one begins does not end that.
func TestStallAfterStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		for range 50 {
			s.Stall(time.Second)
			s.stallMu.Lock()
			<-time.After(time.Second)
			runtime.Gosched() // the timer waits for the lock, as a rule
			s.stallMu.Unlock()
			s.Stall(time.Hour)
			synctest.Wait()
			assert.True(t, s.Stalled())
		}
		s.Stall(0)
	})
}

func TestDropAndRefuse(t *testing.T) {
	s := New(Config{})
	dropped := make(chan bool, 9)
	s.OnDrop(func() { dropped <- true })
	s.SetFaults(Faults{DropEvery: 2, Refuse: true})
	d, _ := queue(s, "Q")
	assert.Equal(t, Stored, d.Send(message("1")))
	assert.Equal(t, Withheld, d.Send(message("2")), "the connection is gone")
	<-dropped
	assert.True(t, s.Refuse())
	s.CountDropped(2)
	assert.Equal(t, FaultCounts{Withheld: 1, Dropped: 2, Refused: 1}, s.FaultCounts())
	s.SetFaults(Faults{})
	assert.False(t, s.Refuse())
}
