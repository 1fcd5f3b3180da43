package stomp

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// TestBackPressure fills a queue of 10 beyond its limit, and has the same connection make the room.
func TestBackPressure(t *testing.T) {
	s, c := begin(t, store.Config{Limit: 10})
	fill(c, "/queue/x", 10)
	for i := range 5 {
		c.put("SEND", strconv.Itoa(10+i), "destination:/queue/x", fmt.Sprint("receipt:", i))
	}
	c.put("BEGIN", "", "transaction:t")
	c.put("SEND", "15", "destination:/queue/x", "transaction:t")
	c.put("COMMIT", "", "transaction:t", "receipt:5")
	c.quiet()
	c.ask("SEND", "other", "destination:/queue/y")                                  // has room
	c.put("SUBSCRIBE", "", "id:1", "destination:/queue/x", "ack:client-individual") // is read nevertheless
	var receipts []string
	for next := 0; next < 16 || len(receipts) < 6; {
		switch a := c.get(); a.command {
		case "MESSAGE":
			require.Equal(t, strconv.Itoa(next), a.body)
			next++
			c.put("ACK", "", ackOf(a))
		case "RECEIPT":
			receipts = append(receipts, a.headers["receipt-id"])
		default:
			t.Fatalf("unexpected: %v", a)
		}
	}
	assert.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, receipts)
	require.Eventually(t, func() bool { return queueStats(s.store, "x").Depth == 0 }, patience, time.Millisecond)
}

// TestBackPressureBound sends without an end to a full queue: the connection is not read until there is room.
func TestBackPressureBound(t *testing.T) {
	s, c := begin(t, store.Config{Limit: 10})
	body := strings.Repeat("x", 64<<10)
	sent := 0
	for ; sent < 10; sent++ {
		c.ask("SEND", body, "destination:/queue/x")
	}
	var err error
	rest := ""
	for err == nil && sent < 10_000 {
		frame := "SEND\ndestination:/queue/x\n\n" + body + "\x00"
		var n int
		_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)) // of each frame: nothing is read any more
		if n, err = c.Write([]byte(frame)); err == nil {
			sent++
		} else {
			rest = frame[n:]
		}
	}
	require.Error(t, err, "600 MB were taken")
	assert.LessOrEqual(t, queueStats(s.store, "x").Stored, uint64(10+17), "a megabyte more than the limit")
	k := connected(t, s.addr)
	k.put("SUBSCRIBE", "", "id:1", "destination:/queue/x")
	go c.raw(rest)
	for range sent + 1 {
		k.message(body)
	}
	c.ask("DISCONNECT", "")
}

// TestDisconnectConfirms: messages stored in a full queue are confirmed at DISCONNECT.
func TestDisconnectConfirms(t *testing.T) {
	s, c := begin(t, store.Config{Limit: 1})
	fill(c, "/queue/x", 1)
	c.put("SEND", "1", "destination:/queue/x", "receipt:r")
	c.quiet()
	c.put("DISCONNECT", "", "receipt:bye")
	assert.Equal(t, "r", c.get().headers["receipt-id"])
	assert.Equal(t, "bye", c.get().headers["receipt-id"])
	assert.EqualValues(t, 2, queueStats(s.store, "x").Depth)
}

func TestWithheld(t *testing.T) {
	t.Parallel()
	s := serve(t, store.Config{}, Server{})
	s.store.SetFaults(store.Faults{WithholdEvery: 2})
	c := connected(t, s.addr)
	for i := range 4 {
		c.put("SEND", "x", "destination:/queue/x", fmt.Sprint("receipt:", i))
	}
	assert.Equal(t, "0", c.get().headers["receipt-id"])
	assert.Equal(t, "2", c.get().headers["receipt-id"])
	c.ask("BEGIN", "", "transaction:t") // the broker has read all
	c.quiet()
	assert.EqualValues(t, 4, queueStats(s.store, "x").Stored)
	assert.EqualValues(t, 2, s.store.FaultCounts().Withheld)
}
