package rocketmq

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// threads plays a broker that handles requests in the worst order: the latest request first.
type threads struct {
	t    *testing.T
	conn *conn    // ours
	net  net.Conn // theirs

	mu       sync.Mutex
	held     []*reply // requests that no thread has come to
	noted    map[int64]int64
	unlocked map[int64]int64 // the offset noted for the queue when it was unlocked
	silent   bool            // nothing is answered
	refuses  int             // so many requests to come about offsets
	requests int             // about offsets
}

// newThreads is to be called in a bubble of synctest.
func newThreads(t *testing.T) *threads {
	ours, theirs := piped()
	b := &threads{t: t, conn: ours, net: theirs, noted: map[int64]int64{}, unlocked: map[int64]int64{}}
	go b.read()
	synctest.Wait() // until our reader, which flushes when it has nothing to do, is at rest
	t.Cleanup(func() {
		_ = theirs.Close()
		b.conn.close()
	})
	return b
}

func (b *threads) read() {
	var size [4]byte
	for {
		if _, err := io.ReadFull(b.net, size[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(b.net, frame); err != nil {
			return
		}
		r := &reply{}
		if err := r.Parse(frame); err != nil {
			return
		}
		b.mu.Lock()
		b.held = append(b.held, r)
		b.mu.Unlock()
	}
}

// work handles all that has come, until nothing more comes.
func (b *threads) work() {
	for {
		synctest.Wait()
		b.mu.Lock()
		held := b.held
		b.held = nil
		b.mu.Unlock()
		if len(held) == 0 {
			return
		}
		for _, r := range slices.Backward(held) {
			b.handle(r)
		}
	}
}

func (b *threads) handle(r *reply) {
	queue, _ := r.Number("queueId")
	offset, _ := r.Number("commitOffset")
	code := int(wire.ResSuccess)
	switch r.Code {
	case wire.ReqPullMessage:
		if flags, _ := r.Number("sysFlag"); flags&1 != 0 {
			b.noted[queue] = offset
		}
		return // there is no message
	case wire.ReqUpdateConsumerOffset:
		if b.requests++; b.refuses > 0 {
			b.refuses--
			code = wire.ResSystemError
			break
		}
		b.noted[queue] = offset
	case wire.ReqUnlockBatchMQ:
		for id, n := range b.noted {
			b.unlocked[id] = n
		}
	}
	if b.silent || r.Flag&wire.FlagOneWay != 0 {
		return
	}
	frame := wire.BeginFrame(nil, code, wire.FlagAnswer, 0, "")
	wire.EndFrame(frame, 0)
	binary.BigEndian.PutUint32(frame[wire.OpaqueAt:], r.Opaque)
	_, err := b.net.Write(frame)
	require.NoError(b.t, err)
}

func (b *threads) consumer(o *Options) *consumer {
	c := &consumer{
		membership: membership{group: "G"}, opts: o, client: &client{id: "me"},
		owned: map[queueID]*queue{}, arrived: make(chan struct{}, 1),
	}
	c.conns = []*conn{b.conn}
	return c
}

// own gives the consumer a queue in which it stands there, and the broker knows.
func (b *threads) own(c *consumer, number int, at int64) *queue {
	q := &queue{queueID: queueID{"T", "broker-a", number}, conn: b.conn, next: at}
	q.consumed.Store(at)
	q.told = at
	c.owned[q.queueID] = q
	return q
}

// TestNextOwnerBeginsWhereWeStopped, whichever thread of the broker is slow.
func TestNextOwnerBeginsWhereWeStopped(t *testing.T) {
	for name, before := range map[string]func(*testing.T, *threads, *consumer, []*queue){
		"nothing under way": func(*testing.T, *threads, *consumer, []*queue) {},
		"pulls under way": func(t *testing.T, _ *threads, c *consumer, queues []*queue) {
			for _, q := range queues {
				require.NoError(t, c.pull(q, 0))
			}
		},
		"the periodical save under way": func(_ *testing.T, _ *threads, c *consumer, queues []*queue) {
			for _, q := range queues {
				q.consumed.Add(1)
			}
			c.noteAll()
		},
		"a save of all that was consumed under way": func(_ *testing.T, _ *threads, c *consumer, queues []*queue) {
			for i, q := range queues {
				q.consumed.Store(int64(20 + i))
			}
			c.noteAll()
		},
		"much was consumed": func(_ *testing.T, _ *threads, c *consumer, queues []*queue) {
			for _, q := range queues {
				q.consumed.Add(keepUpAfter)
				c.keepUp(q)
			}
		},
		"a save was refused": func(_ *testing.T, b *threads, c *consumer, queues []*queue) {
			b.refuses = 1
			queues[0].consumed.Add(1)
			c.note(queues[0])
			queues[0].conn.Out.Flush()
			b.work()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newThreads(t)
				c := b.consumer(&Options{PullBatch: 32})
				queues := []*queue{b.own(c, 0, 7), b.own(c, 1, 8)}
				before(t, b, c, queues)
				for i, q := range queues {
					q.consumed.Store(int64(20 + i))
				}
				gave := make(chan error, 1)
				go func() { gave <- c.giveBack(t.Context(), queues) }()
				b.work()
				require.NoError(t, <-gave)
				want := map[int64]int64{0: 20, 1: 21}
				require.Equal(t, want, b.unlocked, "when others may have the queues")
				require.Equal(t, want, b.noted, "in the end")
			})
		})
	}
}

// TestSavesAreFew: none while another is in flight, or without news, but at once after many messages.
func TestSavesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newThreads(t)
		c := b.consumer(&Options{})
		q := b.own(c, 0, 7)
		for range 3 {
			c.noteAll()
		}
		b.work()
		require.Zero(t, b.requests)
		for range 3 {
			q.consumed.Add(keepUpAfter - 1)
			c.noteAll()
		}
		b.work()
		require.Equal(t, 1, b.requests)
		q.consumed.Store(7 + keepUpAfter - 1 + keepUpAfter - 1)
		c.keepUp(q)
		b.work()
		require.Equal(t, 1, b.requests)
		q.consumed.Add(1)
		c.keepUp(q)
		b.work()
		require.Equal(t, 2, b.requests)
		require.NoError(t, c.save(t.Context(), q))
		require.Equal(t, 2, b.requests)
	})
}

// TestSaveEnds although the broker does not answer, or refuses.
func TestSaveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newThreads(t)
		c := b.consumer(&Options{})
		q := b.own(c, 0, 7)
		save := func() error {
			q.consumed.Add(1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			failed := make(chan error, 1)
			go func() { failed <- c.save(ctx, q) }()
			b.work()
			return <-failed
		}
		b.refuses = 2
		require.Equal(t, driver.ClassOther, driver.ClassOf(save()))
		require.NoError(t, func() error { b.refuses = 0; return save() }())
		b.silent = true
		require.Equal(t, driver.ClassTimeout, driver.ClassOf(save()))
		require.NoError(t, b.net.Close())
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(save()))
	})
}
