package store

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestOrderAndReturns(t *testing.T) {
	d, q := queue(New(Config{}), "Q")
	c := consume(t, q, nil)
	sendNumbers(t, d, 1, 6)
	got, list := take(c, 4)
	assert.Equal(t, []string{"1", "2", "3", "4"}, got)
	assert.Equal(t, uint64(3), list[3].ID)

	assert.True(t, c.Settle(list[1].ID, Accepted))
	assert.False(t, c.Settle(list[1].ID, Accepted), "settled once")
	assert.True(t, c.Settle(list[3].ID, Failed))
	assert.True(t, c.Settle(list[0].ID, Released))
	assert.Equal(t, 1, unsettled(c))
	got, list = take(c, 10)
	assert.Equal(t, []string{"1", "4", "5", "6"}, got, "what comes back takes its old place")
	assert.Equal(t, []uint32{0, 1, 0, 0}, []uint32{list[0].Attempts, list[1].Attempts, list[2].Attempts, list[3].Attempts})

	assert.Equal(t, 3, c.SettleRange(0, list[1].ID, Accepted), "3, 1 and 4")
	assert.True(t, c.Settle(list[2].ID, Rejected))
	c.Close(true)
	c.Close(true)
	other := consume(t, q, nil)
	got, list = take(other, 10)
	assert.Equal(t, []string{"6"}, got)
	assert.Equal(t, uint32(1), list[0].Attempts)
	assert.Equal(t, QueueStats{
		Consumers: 1, Depth: 1, Bytes: 257, Stored: 6, Delivered: 9, Redelivered: 2, Settled: 4, Returned: 3, Rejected: 1,
	}, q.Stats())
}

func TestPriorities(t *testing.T) {
	d, q := queue(New(Config{}), "Q")
	c := consume(t, q, nil)
	for i, p := range []uint8{4, 9, 0, 9, 4, 200} {
		m := message(strconv.Itoa(i))
		m.Priority = p
		d.Send(m)
	}
	got, _ := take(c, 10)
	assert.Equal(t, []string{"1", "3", "5", "0", "4", "2"}, got)
}

func TestFiltersPassOver(t *testing.T) {
	d, q := queue(New(Config{}), "Q")
	even := func(m *Message) bool { n, _ := strconv.Atoi(string(m.Content.Body())); return n%2 == 0 }
	woken := 0
	c := musttest.Get(q.Consume(even, func() { woken++ }))(t)
	sendNumbers(t, d, 1, 5)
	got, list := take(c, 10)
	assert.Equal(t, []string{"2", "4"}, got)
	d.Send(message("7"))
	assert.Zero(t, woken, "it does not want that one")
	d.Send(message("8"))
	assert.Equal(t, 1, woken)
	c.Settle(list[0].ID, Released)
	got, _ = take(c, 10)
	assert.Equal(t, []string{"2", "8"}, got)

	got, _ = take(consume(t, q, nil), 10)
	assert.Equal(t, []string{"1", "3", "5", "7"}, got)
}

func TestGroupsStick(t *testing.T) {
	d, q := queue(New(Config{}), "Q")
	a, b := consume(t, q, nil), consume(t, q, nil)
	for i := range 6 {
		m := message(strconv.Itoa(i))
		m.Group = string(rune('x' + i%2))
		d.Send(m)
	}
	got, _ := take(a, 1)
	assert.Equal(t, []string{"0"}, got)
	got, _ = take(b, 10)
	assert.Equal(t, []string{"1", "3", "5"}, got, "the first group is the other's")
	got, _ = take(a, 10)
	assert.Equal(t, []string{"2", "4"}, got)
	a.Close(false)
	got, _ = take(b, 10)
	assert.Equal(t, []string{"0", "2", "4"}, got, "the group's owner has left")
}

func TestExpiryAndDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, q := queue(New(Config{}), "Q")
		var woken atomic.Int32
		c := musttest.Get(q.Consume(nil, func() { woken.Add(1) }))(t)
		m := message("short-lived")
		m.Expires = time.Now().Add(time.Second).UnixMilli()
		d.Send(m)
		for i := range 3 { // the second is due last
			m = message("late " + strconv.Itoa(i))
			m.NotBefore = time.Now().Add([]time.Duration{2, 3, 2}[i] * time.Second).UnixNano()
			d.Send(m)
		}
		time.Sleep(time.Second) //nolint:forbidigo // a fake clock
		got, _ := take(c, 10)
		assert.Empty(t, got)
		assert.Equal(t, uint64(1), q.Stats().Expired)
		time.Sleep(time.Second) //nolint:forbidigo // a fake clock
		synctest.Wait()
		assert.Equal(t, int32(1), woken.Load())
		got, _ = take(c, 10)
		assert.Equal(t, []string{"late 0", "late 2"}, got)
		time.Sleep(time.Second) //nolint:forbidigo // a fake clock
		synctest.Wait()
		got, _ = take(c, 10)
		assert.Equal(t, []string{"late 1"}, got)
		assert.Equal(t, int64(3), q.Stats().Depth)
	})
}

// onRoom calls f when there is room, unless done is closed before.
func onRoom(d *Destination, done chan struct{}, f func()) {
	g := &Gate{Done: done, Write: func([]byte) { f() }}
	g.Withhold(d, nil, 1)
}

func testBlock(t *testing.T) {
	d, q := queue(New(Config{Limit: 8}), "Q")
	c := consume(t, q, nil)
	sendNumbers(t, d, 1, 7)
	assert.True(t, d.Room())
	sendNumbers(t, d, 8, 10)
	assert.False(t, d.Room())
	room, gone := make(chan bool, 1), make(chan struct{})
	onRoom(d, nil, func() { room <- true })
	onRoom(d, gone, func() { t.Error("whoever asked has gone") })
	close(gone)
	_, list := take(c, 10)
	c.SettleRange(0, list[1].ID, Accepted)
	<-time.After(time.Hour)
	assert.Empty(t, room, "eight of eight")
	start := time.Now()
	c.Settle(list[2].ID, Accepted)
	<-room
	assert.LessOrEqual(t, time.Since(start), RoomPause)
	assert.True(t, d.Room())
}

// testExpired: a queue, or a broker, full of expired messages has room: nobody waits, and nothing is refused.
func testExpired(t *testing.T) {
	for i, cfg := range []Config{{Limit: 3}, {Limit: 3, Reject: true}, {Memory: 1 << 20}, {Memory: 1 << 20, Reject: true}} {
		s := New(cfg)
		q := s.Queue("Q")
		d, c := q.dest, consume(t, q, nil)
		if cfg.Limit == 0 {
			d, _ = queue(s, "other")
		}
		put := func(priority uint8, life time.Duration) Verdict {
			m := message(strings.Repeat("x", 300_000))
			m.Priority, m.Expires = priority, time.Now().Add(life).UnixMilli()
			return q.dest.Send(m)
		}
		assert.Equal(t, Stored, put(1, time.Minute))
		_, list := take(c, 1)
		assert.Equal(t, []Verdict{Stored, Stored}, []Verdict{put(1, 2*time.Minute), put(9, time.Minute)}, i)
		if cfg.Limit == 0 {
			assert.Equal(t, Stored, put(4, 2*time.Minute))
		}
		c.Settle(list[0].ID, Released)
		begun, room := time.Now(), make(chan time.Duration, 1)
		require.False(t, d.Room(), i)
		onRoom(d, nil, func() { room <- time.Since(begun) })
		if s.Rejects() {
			require.Equal(t, Full, d.Send(message("refused")))
			<-time.After(time.Minute + reclaimPause) // a waiter's check may be under way at the minute itself
			require.Equal(t, Stored, d.Send(message("y")))
		}
		select {
		case after := <-room:
			assert.Equal(t, time.Minute, after.Round(time.Minute), i)
		case <-time.After(time.Hour):
			require.Fail(t, "no room", i)
		}
		assert.Equal(t, uint64(2), q.Stats().Expired, i)
		put(4, time.Hour)
		put(4, time.Hour)
		require.False(t, q.Room(), i)
		_, list = take(c, 9)
		assert.EqualValues(t, q.Stats().Depth, len(list), "none of these has expired")
	}
}

func TestLimits(t *testing.T) {
	t.Run("block", func(t *testing.T) { synctest.Test(t, testBlock) })
	t.Run("expired", func(t *testing.T) { synctest.Test(t, testExpired) })
	t.Run("reject", func(t *testing.T) {
		d, q := queue(New(Config{Limit: 2, Reject: true}), "Q")
		sendNumbers(t, d, 1, 2)
		assert.Equal(t, Full, d.Send(message("3")))
		assert.Equal(t, uint64(1), d.Stats().Refused)
		assert.Equal(t, 2, q.purge())
		assert.Equal(t, Stored, d.Send(message("4")))
	})
	t.Run("bytes", func(t *testing.T) {
		d, _ := queue(New(Config{LimitBytes: 600, Reject: true}), "Q")
		sendNumbers(t, d, 1, 3)
		assert.Equal(t, Full, d.Send(message("4")))
	})
	t.Run("full by request", func(t *testing.T) {
		s := New(Config{})
		d, _ := queue(s, "Q")
		s.SetFaults(Faults{Full: true})
		room := make(chan bool, 1)
		assert.False(t, d.Room())
		onRoom(d, nil, func() { room <- true })
		s.SetFaults(Faults{})
		<-room
	})
}

// TestManyAtOnce has senders and consumers work against each other, with returns and leaving consumers: each message is
// settled exactly once.
func TestManyAtOnce(t *testing.T) {
	const senders, consumers, each = 4, 6, 5000
	s := New(Config{})
	d, q := queue(s, "Q")
	seen := make([]atomic.Int32, senders*each)
	var settled atomic.Int64
	var wg sync.WaitGroup
	over := make(chan struct{})
	for n := range senders {
		wg.Go(func() { sendNumbers(t, d, n*each, (n+1)*each-1) })
	}
	for n := range consumers {
		wg.Go(func() {
			for round := 0; ; round++ {
				wake := make(chan struct{}, 1)
				c, err := q.Consume(nil, func() {
					select {
					case wake <- struct{}{}:
					default:
					}
				})
				if !assert.NoError(t, err) {
					return
				}
				for i := range 50 {
					buf := make([]Delivery, 7)
					got := c.Take(buf)
					for _, e := range buf[:got] {
						number, _ := strconv.Atoi(string(e.Message.Content.Body()))
						if (number+i+n)%11 == 0 {
							c.Settle(e.ID, Failed)
							continue
						}
						if i == 49 {
							continue // left to Close
						}
						c.Settle(e.ID, Accepted)
						seen[number].Add(1)
						if settled.Add(1) == senders*each {
							close(over)
						}
					}
					if got == 0 {
						select {
						case <-wake:
						case <-over:
							c.Close(true)
							return
						}
					}
				}
				c.Close(true)
			}
		})
	}
	wg.Wait()
	for i := range seen {
		require.Equal(t, int32(1), seen[i].Load(), "message %d", i)
	}
	assert.Zero(t, q.Stats().Depth)
	assert.Zero(t, q.Stats().Bytes)
}

// TestOneThatStays: a message that nobody takes, and a delivery that is never settled, do not keep the rest in memory.
func TestOneThatStays(t *testing.T) {
	d, q := queue(New(Config{}), "Q")
	d.Send(message("unwanted"))
	c := consume(t, q, func(m *Message) bool { return string(m.Content.Body()) != "unwanted" })
	d.Send(message("kept"))
	_, kept := take(c, 1)
	for i := range 10_000 {
		body := strconv.Itoa(i)
		d.Send(message(body))
		got, list := take(c, 9)
		require.Equal(t, []string{body}, got)
		require.True(t, c.Settle(list[0].ID, Accepted))
	}
	assert.LessOrEqual(t, q.levels[normalPriority].Next-q.levels[normalPriority].First, uint64(64))
	assert.LessOrEqual(t, c.unsettled.Next-c.unsettled.First, uint64(64))
	assert.Equal(t, 1, unsettled(c))
	d.Send(message("1"))
	_, list := take(c, 1)
	assert.True(t, c.Settle(kept[0].ID, Accepted))
	assert.False(t, c.Settle(kept[0].ID, Accepted))
	assert.Equal(t, 1, c.SettleRange(0, list[0].ID, Accepted))
	got, _ := take(consume(t, q, nil), 9)
	assert.Equal(t, []string{"unwanted"}, got)
}

func TestSendAllocatesNothing(t *testing.T) {
	d, q := queue(New(Config{}), "Q")
	c := consume(t, q, nil)
	m := message("x")
	buf := make([]Delivery, 16)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		for range 16 {
			d.Send(m)
		}
		for _, e := range buf[:c.Take(buf)] {
			c.Settle(e.ID, Accepted)
		}
	}))
}

// TestManyGroups: groups without end cost no memory without end, and still have one consumer each.
func TestManyGroups(t *testing.T) {
	const n = 70_000
	d, q := queue(New(Config{}), "Q")
	c := [2]*Consumer{consume(t, q, nil), consume(t, q, nil)}
	owners := map[string]int{}
	buf := make([]Delivery, 5)
	for round := range 2 {
		for i := range n {
			m := message("x")
			m.Group = strconv.Itoa(i)
			d.Send(m)
			for who := 0; who < len(c) && i%10 == 9; who++ {
				for got := c[who].Take(buf); got > 0; got = c[who].Take(buf) {
					for _, e := range buf[:got] {
						if round == 0 {
							owners[e.Message.Group] = who
						} else if owners[e.Message.Group] != who {
							t.Fatalf("group %s went to another consumer", e.Message.Group)
						}
					}
					c[who].SettleRange(0, buf[got-1].ID, Accepted)
				}
			}
		}
	}
	assert.Len(t, owners, n)
	assert.LessOrEqual(t, len(q.owners), 1<<16)
	assert.Zero(t, q.Stats().Depth)
	c[0].Close(false)
	c[1].Close(false)
	assert.Empty(t, q.owners)
}

func subscribe(t *testing.T, s *Store, sub Subscription) *Consumer {
	t.Helper()
	c := musttest.Get(s.Subscribe("T", sub, func() {}))(t)
	return c
}

func TestTopics(t *testing.T) {
	s := New(Config{})
	d := s.Destination(driver.Destination{Kind: driver.Topic, Name: "T"})
	sendNumbers(t, d, 1, 1)
	alone := subscribe(t, s, Subscription{})
	durable := subscribe(t, s, Subscription{Name: "d", Durable: true})
	shared1, shared2 := subscribe(t, s, Subscription{Name: "s"}), subscribe(t, s, Subscription{Name: "s"})
	sendNumbers(t, d, 2, 3)

	got, _ := take(alone, 9)
	assert.Equal(t, []string{"2", "3"}, got)
	got, _ = take(shared1, 1)
	assert.Equal(t, []string{"2"}, got)
	got, _ = take(shared2, 9)
	assert.Equal(t, []string{"3"}, got)
	shared1.Close(true)
	got, _ = take(shared2, 9)
	assert.Equal(t, []string{"2"}, got)

	alone.Close(false)
	shared2.Close(false)
	durable.Close(false)
	sendNumbers(t, d, 4, 4)
	stats := d.Stats()
	assert.Equal(t, uint64(1), stats.Unrouted)
	require.Len(t, stats.Queues, 1, "only the durable one is left")
	assert.Equal(t, int64(3), stats.Queues[0].Depth)

	durable = subscribe(t, s, Subscription{Name: "d", Durable: true})
	got, _ = take(durable, 9)
	assert.Equal(t, []string{"2", "3", "4"}, got)
	require.ErrorIs(t, s.FindSubscription("d").Remove(), ErrInUse)
	durable.Close(false)
	require.NoError(t, s.FindSubscription("d").Remove())
	require.Nil(t, s.FindSubscription("d"))
	assert.Empty(t, d.Stats().Queues)
}

func TestSelectorOfASubscription(t *testing.T) {
	s := New(Config{})
	d := s.Destination(driver.Destination{Kind: driver.Topic, Name: "T"})
	is := func(want string) Filter { return func(m *Message) bool { return string(m.Content.Body()) == want } }
	c := subscribe(t, s, Subscription{Name: "d", Durable: true, Selector: "two", Filter: is("2")})
	sendNumbers(t, d, 1, 3)
	assert.Equal(t, int64(1), d.Stats().Queues[0].Depth, "the rest is not stored")
	_, err := s.Subscribe("T", Subscription{Name: "d", Durable: true, Selector: "three", Filter: is("3")}, nil)
	require.ErrorIs(t, err, ErrInUse)
	c.Close(false)
	_, err = s.Subscribe("T", Subscription{Name: "d", Durable: true, Selector: "three", Filter: is("3")}, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(0), d.Stats().Queues[0].Depth, "it is another one")
	require.Len(t, d.Stats().Queues, 1)
}

// TestCommitIsAllOrNothing: where a full queue refuses messages, a transaction is stored as a whole or not at all, even
// if it is larger than the room there was.
func TestCommitIsAllOrNothing(t *testing.T) {
	s := New(Config{Limit: 2, Reject: true})
	d, q := queue(s, "Q")
	account := s.NewAccount()
	for i, fits := range []bool{true, false} {
		x := account.Begin()
		for range 3 {
			require.True(t, x.Send(d, message("x")))
		}
		_, full := x.Commit()
		assert.Equal(t, fits, full == nil, i)
		assert.EqualValues(t, 3, q.Stats().Stored)
	}
	assert.EqualValues(t, 3, d.Stats().Refused, "all messages of the second transaction")
	assert.Zero(t, account.held.Load())
}

func TestTransactionsAreBounded(t *testing.T) {
	s := New(Config{})
	d, q := queue(s, "Q")
	account := s.NewAccount()
	x := account.Begin()
	for range 3 {
		x.Send(d, message(strings.Repeat("x", maxTransaction/3)))
	}
	assert.True(t, x.Failed)
	assert.False(t, x.Hold(1))
	assert.Zero(t, account.held.Load())
	assert.Zero(t, q.Stats().Stored)
}
