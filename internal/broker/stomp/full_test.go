package stomp

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// TestFullCountsTransactions: the fault of being full counts all messages of a transaction that it refuses or keeps
// waiting, once, and not its acknowledgements.
func TestFullCountsTransactions(t *testing.T) {
	t.Parallel()
	for _, policy := range []store.Policy{store.Block, store.Reject} {
		s := serve(t, store.Config{Full: policy}, Options{})
		c := connected(t, s.addr)
		fill(c, "/queue/y", 1)
		c.ask("SUBSCRIBE", "", "id:1", "destination:/queue/y", "ack:client-individual")
		a := c.get()
		c.ask("BEGIN", "", "transaction:t")
		for i := range 5 {
			c.ask("SEND", strconv.Itoa(i), "destination:/queue/x", "transaction:t")
		}
		c.ask("ACK", "", ackOf(a), "transaction:t")
		s.store.SetFaults(store.Faults{Full: true})
		c.put("COMMIT", "", "transaction:t", "receipt:r")
		if policy == store.Reject {
			c.refused("queue://x is full")
			assert.Equal(t, store.FaultCounts{Full: 5}, s.store.FaultCounts())
			continue
		}
		for i, receipt := range []string{"s", "u"} {
			c.put("SEND", "behind it", "destination:/queue/x", "receipt:"+receipt)
			require.Eventually(t, func() bool { return s.store.FaultCounts().Full == uint64(6+i) }, patience, time.Millisecond)
		}
		c.quiet()
		s.store.SetFaults(store.Faults{})
		for _, receipt := range []string{"r", "s", "u"} {
			assert.Equal(t, receipt, c.get().headers["receipt-id"])
		}
		assert.Equal(t, store.FaultCounts{Full: 7}, s.store.FaultCounts())
		assert.EqualValues(t, 7, queueStats(s.store, "x").Stored)
	}
}
