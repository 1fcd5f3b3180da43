package store

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// body returns a message of n bytes, counted.
func body(n int) *Message { return message(strings.Repeat("x", n)) }

// TestOneMemoryForAll: the memory of the broker is full, but no queue is. An acknowledgement in one queue makes room in
// all.
func TestOneMemoryForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Memory: 1 << 20})
		var queues []*Queue
		var told [10]int
		for i := range told {
			d, q := queue(s, fmt.Sprintf("Q%d", i))
			queues = append(queues, q)
			for range 10 {
				if d.Room() {
					require.Equal(t, Stored, d.Send(body(20_000)))
				}
			}
		}
		used, limit := s.Memory()
		assert.True(t, s.Tight())
		assert.Equal(t, "the broker's memory is full: --max-memory", queues[0].dest.WhyFull())
		assert.InDelta(t, limit, used, 21_000)
		for i, q := range queues {
			require.False(t, q.Room(), "queue %d", i)
			g := Gate{Write: func([]byte) { told[i]++ }}
			g.Withhold(q.dest, []byte("x"), 1)
		}
		c := consume(t, queues[3], nil)
		_, list := take(c, 10)
		require.NotEmpty(t, list)
		<-time.After(time.Second)
		synctest.Wait()
		assert.Equal(t, [10]int{}, told, "nothing was settled")
		c.SettleRange(0, list[len(list)-1].ID, Accepted)
		<-time.After(time.Second)
		synctest.Wait()
		assert.Equal(t, [10]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, told)
		assert.True(t, queues[0].Room())
		c.Close(false)
		<-time.After(time.Hour) // nothing goes on for ever
	})
}

// TestEndOfMemory: senders that were given leave for more than there is are refused in the end, by a broker that
// otherwise blocks.
func TestEndOfMemory(t *testing.T) {
	s := New(Config{Memory: 1 << 20})
	d, _ := queue(s, "Q")
	stored := 0
	for range 100 {
		if d.Send(body(100_000)) == Stored {
			stored++
		}
	}
	used, limit := s.Memory()
	assert.Less(t, used, limit+limit/8+101_000)
	assert.Equal(t, 12, stored)
	assert.EqualValues(t, 100-12, s.Stats()[0].Refused)
	_, err := s.Open(driver.Destination{Kind: driver.Queue, Name: "other"})
	require.ErrorIs(t, err, ErrNoMemory)
	_, err = s.ConsumeQueue("other", nil, func() {})
	require.ErrorIs(t, err, ErrNoMemory)
	same := musttest.Get(s.Open(d.Address()))(t)
	assert.Same(t, d, same)
	_, err = s.Subscribe("T", Subscription{}, func() {})
	require.ErrorIs(t, err, ErrNoMemory)
	consume(t, s.Queue("Q"), nil).Close(false) // there is memory for those who make room
	account := s.NewAccount()
	for account.Take(1000) {
	}
	used, _ = s.Memory()
	assert.InDelta(t, limit+limit/4, used, 1000)
	c := consume(t, s.Queue("Q"), nil)
	_, err = s.Queue("Q").Consume(nil, func() {})
	require.ErrorIs(t, err, ErrNoMemory, "but there is an end to that, too")
	c.Close(false)
	account.End()
	s.Queue("Q").purge()
	used, _ = s.Memory()
	assert.Equal(t, d.ownSize(), used)
}

// TestConsumersMakeRoom: a broker that has no room takes consumers all the same.
func TestConsumersMakeRoom(t *testing.T) {
	s := New(Config{Memory: 1 << 20})
	d, q := queue(s, "Q")
	for d.Room() {
		d.Send(body(10_000))
	}
	account := s.NewAccount()
	require.True(t, account.Take(ConnectionSize))
	c := consume(t, q, nil)
	for bodies, list := take(c, 10); len(bodies) > 0; bodies, list = take(c, 10) {
		c.SettleRange(0, list[len(list)-1].ID, Accepted)
	}
	assert.True(t, d.Room())
	c.Close(false)
	account.End()
	used, _ := s.Memory()
	assert.Equal(t, d.ownSize(), used)
}

// TestMemoryIsGivenBack: whatever is done with messages, queues and subscriptions, in the end nothing is in use.
func TestMemoryIsGivenBack(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := New(Config{Memory: 1 << 30})
		type holder struct {
			c    *Consumer
			held []uint64
		}
		var holders []*holder
		address := func() driver.Destination {
			return driver.Destination{Kind: driver.Kind(random.IntN(2)), Name: fmt.Sprint(random.IntN(3))}
		}
		for range 500 {
			switch random.IntN(9) {
			case 0, 1, 2:
				m := body(random.IntN(1000))
				m.Priority = uint8(random.IntN(10))
				m.Expires = time.Now().Add(time.Duration(random.IntN(3)) * time.Hour).Add(-time.Hour).UnixMilli()
				if random.IntN(2) == 0 {
					m.Expires = 0
				}
				d := musttest.Get(s.Open(address()))(t)
				d.Send(m)
			case 3:
				c := musttest.Get(s.Queue(address().Name).Consume(nil, func() {}))(t)
				holders = append(holders, &holder{c: c})
			case 4:
				sub := Subscription{Name: fmt.Sprint(random.IntN(2)), Durable: random.IntN(2) == 0, Selector: fmt.Sprint(random.IntN(2))}
				if c, err := s.Subscribe(address().Name, sub, func() {}); err == nil {
					holders = append(holders, &holder{c: c})
				}
			case 5:
				if q := s.FindSubscription(fmt.Sprint(random.IntN(2))); q != nil {
					_ = q.Remove()
				}
			case 6:
				s.reclaimed.Store(0)
				s.reclaimMemory()
			default:
				if len(holders) == 0 {
					continue
				}
				i := random.IntN(len(holders))
				h := holders[i]
				_, list := take(h.c, 1+random.IntN(3))
				for _, d := range list {
					h.held = append(h.held, d.ID)
				}
				if len(h.held) == 0 {
					continue
				}
				switch id := h.held[random.IntN(len(h.held))]; random.IntN(5) {
				case 0:
					h.c.Settle(id, Accepted)
				case 1:
					h.c.Settle(id, Failed)
				case 2:
					h.c.Settle(id, Rejected)
				case 3:
					h.c.SettleRange(0, id, Accepted)
				default:
					h.c.Close(true)
					holders = append(holders[:i], holders[i+1:]...)
				}
			}
		}
		for _, h := range holders {
			h.c.Close(false)
		}
		destinations := int64(0)
		s.each(func(d *Destination) {
			destinations += d.ownSize()
			for _, q := range d.queues() {
				if q.purge(); d.addr.Kind == driver.Topic {
					require.NoError(t, q.Remove())
				}
			}
		})
		used, _ := s.Memory()
		require.Equal(t, destinations, used, "seed %d", seed)
	}
}

// TestDestinationsCountWhatTheyTake: the account of empty destinations is not far below the memory that they take.
func TestDestinationsCountWhatTheyTake(t *testing.T) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	s := New(Config{})
	before := heap()
	for i := range 20_000 {
		s.Destination(driver.Destination{Kind: driver.Queue, Name: fmt.Sprintf("a-queue-of-many-%d", i)})
	}
	took := heap() - before
	used, _ := s.Memory()
	assert.Less(t, took, used)
	before = heap()
	for i := range 20_000 {
		c, err := s.Subscribe(fmt.Sprintf("a-topic-of-many-%d", i), Subscription{Name: "sub", Durable: true}, func() {})
		require.NoError(t, err)
		c.Close(false)
	}
	took = heap() - before
	more, _ := s.Memory()
	assert.Less(t, took, more-used)
	runtime.KeepAlive(s)
}

// TestPages: a page has the first destinations in the order of their addresses, and the totals of all.
func TestPages(t *testing.T) {
	s := New(Config{})
	for i := range 57 {
		d := s.Destination(driver.Destination{Kind: driver.Kind(i % 2), Name: fmt.Sprintf("%c%d", 'a'+i%7, i)})
		d.Send(message("x"))
	}
	all := s.Stats()
	require.Len(t, all, 57)
	for i := range all[1:] {
		require.Less(t, all[i].Address, all[i+1].Address)
	}
	for _, limit := range []int{0, 10, 57, 58} {
		page, total, more := s.Page(limit)
		assert.Equal(t, Totals{Destinations: 57, Queues: 29, Sent: 57, Unrouted: 28, QueueStats: QueueStats{Depth: 29, Bytes: 29 * 257, Stored: 29}}, total)
		assert.Equal(t, all[:min(limit, 57)], page)
		assert.Equal(t, 57-len(page), more)
	}
	_, err := s.Open(driver.Destination{Name: strings.Repeat("x", maxName+1)})
	require.ErrorIs(t, err, ErrLongName)
}
