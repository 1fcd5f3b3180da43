package stomp

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// TestCommitIsAllOrNothing: where a full queue refuses messages, a transaction is stored as a whole or not at all, even
// if it is larger than the room there was.
func TestCommitIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, store.Config{Limit: 3, Full: store.Reject}, Options{})
	c := connected(t, s.addr, "1.2")
	begin := func() {
		c.ask("BEGIN", "", "transaction:t")
		for i := range 5 {
			c.ask("SEND", strconv.Itoa(i), "destination:/queue/x", "transaction:t")
		}
	}
	begin()
	c.ask("COMMIT", "", "transaction:t")
	assert.EqualValues(t, 5, queueStats(s.store, "x").Stored)
	begin()
	c.put("COMMIT", "", "transaction:t", "receipt:r")
	assert.Equal(t, "r", c.refused("queue://x is full").headers["receipt-id"])
	assert.EqualValues(t, 5, queueStats(s.store, "x").Stored)
	assert.EqualValues(t, 5, s.store.Stats()[0].Refused, "all messages of the second transaction")
}

// TestCommitToADeletedQueue: what is confirmed is there.
func TestCommitToADeletedQueue(t *testing.T) {
	t.Parallel()
	s := serve(t, store.Config{}, Options{})
	c := connected(t, s.addr, "1.2")
	c.ask("BEGIN", "", "transaction:t")
	c.ask("SEND", "x", "destination:/queue/x", "transaction:t")
	require.True(t, s.store.Delete(store.Address{Kind: store.KindQueue, Name: "x"}))
	c.ask("COMMIT", "", "transaction:t")
	assert.EqualValues(t, 1, queueStats(s.store, "x").Depth)
}

// TestAFullWindowKeepsNothingFromOthers: consumers with small windows, of which some never acknowledge, come and go;
// whatever they were told of, one that is free gets all the rest.
func TestAFullWindowKeepsNothingFromOthers(t *testing.T) {
	t.Parallel()
	s := serve(t, store.Config{}, Options{})
	free := connected(t, s.addr, "1.2")
	free.ask("SUBSCRIBE", "", "id:1", "destination:/queue/x", "ack:client-individual", "prefetch-count:2")
	const stuck = 4
	var held int
	hold := make(chan string, 100)
	for i := range stuck { // each holds what it gets, for ever
		k := connected(t, s.addr, "1.2")
		k.ask("SUBSCRIBE", "", "id:1", "destination:/queue/x", "ack:client-individual", fmt.Sprint("prefetch-count:", 1+i%2))
		held += 1 + i%2
		go func() {
			for {
				a, err := k.next(patience)
				if err != nil || a.command != "MESSAGE" {
					return
				}
				hold <- a.body
			}
		}()
	}
	c := connected(t, s.addr, "1.2")
	random := rand.New(rand.NewPCG(1, 2))
	const n = 400
	seen := map[string]bool{}
	sent, taken := 0, 0
	for taken < n-held {
		for range 1 + random.IntN(3) {
			if sent < n {
				c.put("SEND", strconv.Itoa(sent), "destination:/queue/x")
				sent++
			}
		}
		for taken < sent-held { // so many at least are not with the others
			a, err := free.next(patience)
			require.NoError(t, err, "%d of %d, %+v", taken, sent, queueStats(s.store, "x"))
			require.Equal(t, "MESSAGE", a.command)
			seen[a.body] = true
			taken++
			free.put("ACK", "", ackOf("1.2", a))
		}
	}
	for len(hold) > 0 {
		seen[<-hold] = true
	}
	require.Eventually(t, func() bool {
		for len(hold) > 0 {
			seen[<-hold] = true
		}
		return len(seen) == n
	}, patience, time.Millisecond)
}
