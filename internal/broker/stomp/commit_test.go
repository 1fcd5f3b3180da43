package stomp

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// TestCommitIsAllOrNothing: where a full queue refuses messages, a transaction is stored as a whole or not at all, even
// if it is larger than the room there was.
func TestCommitIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, store.Config{Limit: 3, Full: store.Reject}, Options{})
	c := connected(t, s.addr)
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
