package rocketmq

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// sender sends to a topic as a producer does that waits whenever there is no room.
func sender(topic *topic, from, n int) (sent *atomic.Int64) {
	sent = &atomic.Int64{}
	go func() {
		room := make(chan struct{}, 1)
		for i := range n {
			sendN(topic, from+i, 1)
			sent.Add(1)
			for !topic.dest.Room(func() {
				select {
				case room <- struct{}{}:
				default:
				}
			}) {
				<-room
			}
		}
	}()
	return sent
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // a fake clock
	synctest.Wait()
}

// TestNoGroupNoWait: a topic without groups accepts all messages, also of a sender that sends one at a time.
func TestNoGroupNoWait(t *testing.T) {
	for _, limit := range []int64{1, 8, 100} {
		synctest.Test(t, func(t *testing.T) {
			s := New(store.New(store.Config{Limit: limit}), Options{})
			defer s.Close()
			sent := sender(s.makeTopic("T", 2), 0, 300)
			synctest.Wait()
			assert.EqualValues(t, 300, sent.Load())
			assert.GreaterOrEqual(t, s.Stats().Dropped, uint64(300-limit))
		})
	}
}

// TestGroupsThatHaveGone: the claim of a group ends some time after its last member, and its unread messages are
// counted. A group that returns in time misses none.
func TestGroupsThatHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.Config{Limit: 80}), Options{})
		defer s.Close()
		topic := s.makeTopic("T", 1)
		g := s.makeGroup("g")
		topic.commit(topic.queue(0), "g", 0)
		sent := sender(topic, 0, 100)
		pass(time.Minute)
		require.EqualValues(t, 80, sent.Load())
		g.touch() // it pulled, or committed
		pass(goneAfter - time.Second)
		require.EqualValues(t, 80, sent.Load(), "it has its claim")
		require.Zero(t, s.Stats().Dropped)
		pass(3 * time.Second)
		require.EqualValues(t, 100, sent.Load())
		require.EqualValues(t, 100-topic.size.Load(), s.Stats().Dropped)

		g.touch() // and so it has again
		first, next := topic.queue(0).limits()
		topic.commit(topic.queue(0), "g", first)
		sent = sender(topic, 100, 100)
		pass(time.Minute)
		require.EqualValues(t, 80-(next-first), sent.Load())
		dropped := s.Stats().Dropped
		topic.commit(topic.queue(0), "g", first+40)
		pass(0)
		require.Greater(t, sent.Load(), int64(20))
		require.Equal(t, dropped, s.Stats().Dropped, "it was done with these")
	})
}

// TestARejectingTopicForgetsGroups: a topic that refuses messages for a group accepts them after the end of its claim.
func TestARejectingTopicForgetsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.Config{Limit: 8, Reject: true}), Options{})
		defer s.Close()
		topic := s.makeTopic("T", 1)
		require.NotNil(t, s.makeGroup("g"))
		topic.commit(topic.queue(0), "g", 0)
		sendN(topic, 0, 8)
		require.Equal(t, store.Full, topic.dest.Send(other("x")))
		pass(goneAfter + time.Second)
		require.Equal(t, store.Stored, topic.dest.Send(other("x")))
	})
}
