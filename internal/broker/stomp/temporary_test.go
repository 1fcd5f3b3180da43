package stomp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// destinations returns the number of destinations of the store.
func (r *running) destinations() int {
	_, total, _ := r.store.Page(0)
	return total.Destinations
}

// TestTemporaryQueues: requests and replies as ActiveMQ's clients make them, who subscribe to the queue.
func TestTemporaryQueues(t *testing.T) {
	s, c := begin(t, store.Config{})
	c.ask("SUBSCRIBE", "", `destination:/temp-queue/re\cply`, "id:1", "ack:auto")
	responder := connected(t, s.addr)
	responder.ask("SUBSCRIBE", "", "destination:/queue/S", "id:1")
	for range 2 {
		c.ask("SEND", "ping", "destination:/queue/S", `reply-to:/temp-queue/re\cply`, "correlation-id:c-1")
		got := responder.get()
		address := got.headers["reply-to"]
		require.NotEmpty(t, address)
		require.NotContains(t, address, "temp-queue")
		require.Equal(t, "c-1", got.headers["correlation-id"])
		responder.ask("SEND", "pong", "destination:"+address, "correlation-id:c-1")
		reply := c.get()
		assert.Equal(t, "pong", reply.body)
		assert.Equal(t, `/temp-queue/re\cply`, reply.headers["destination"])
		assert.Equal(t, "1", reply.headers["subscription"])
		assert.Equal(t, "c-1", reply.headers["correlation-id"])
		require.Equal(t, 2, s.destinations())
	}
	c.ask("SEND", "ping", "destination:/queue/S", `reply-to:/temp-queue/re\cply`)
	address := responder.get().headers["reply-to"]
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return s.destinations() == 1 }, patience, time.Millisecond)
	for range 2 { // known to this connection, and not
		responder.ask("SEND", "late", "destination:"+address)
		responder = connected(t, s.addr)
	}
	responder.put("SUBSCRIBE", "", "destination:"+address, "id:1")
	responder.refused("is no more")
}

// TestTemporaryQueueEnds: without a subscription its messages wait for the next one.
func TestTemporaryQueueEnds(t *testing.T) {
	s, c := begin(t, store.Config{})
	c.ask("SUBSCRIBE", "", "destination:/temp-queue/x", "id:1")
	c.ask("UNSUBSCRIBE", "", "id:1")
	c.ask("SEND", "a", "destination:/temp-queue/x", "reply-to:/temp-queue/x")
	c.quiet()
	c.ask("SUBSCRIBE", "", "destination:/temp-queue/x", "id:2")
	assert.Equal(t, "a", c.get().body)
	require.Equal(t, 1, s.destinations())
	c.ask("DISCONNECT", "")
	require.Eventually(t, func() bool { return s.destinations() == 0 }, patience, time.Millisecond)
}

func TestTooManyTemporaryQueues(t *testing.T) {
	s, c := begin(t, store.Config{})
	var text strings.Builder
	for i := range maxTemporary {
		fmt.Fprintf(&text, "SEND\ndestination:/temp-queue/%d\n\nx\x00", i)
	}
	c.raw(text.String())
	c.ask("SEND", "x", "destination:/temp-queue/1")
	require.Equal(t, maxTemporary, s.destinations())
	c.put("SEND", "x", "destination:/queue/x", "reply-to:/temp-queue/more")
	c.refused("limit reached: 10000 temporary queues")
	require.Eventually(t, func() bool {
		used, _ := s.store.Memory()
		return s.destinations() == 0 && used < store.ConnectionSize*2
	}, patience, time.Millisecond)
	c = connected(t, s.addr)
	c.put("SEND", "x", "destination:/temp-queue/")
	c.refused("no header destination")
}

// TestForeignID: a message keeps the ID that the client of another protocol gave it, and is acknowledged by ours.
func TestForeignID(t *testing.T) {
	s, c := begin(t, store.Config{})
	c.ask("SUBSCRIBE", "", "destination:/queue/q", "id:1", "ack:client-individual")
	q := s.store.Queue("q")
	require.Equal(t, store.Stored, s.store.Find(driver.Destination{Kind: driver.Queue, Name: "q"}).Send(&store.Message{
		Content: storetest.Content{Data: "x", Address: store.Addressing{MessageID: "ID:1"}},
	}))
	got := c.get()
	assert.Equal(t, `ID\c1`, got.headers["message-id"])
	c.ask("ACK", "", "id:"+got.headers["ack"])
	assert.EqualValues(t, 1, q.Stats().Settled)
}
