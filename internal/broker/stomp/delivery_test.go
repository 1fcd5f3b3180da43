package stomp

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	driverstomp "github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/internal/drivers/stomp/stomptest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// fill sends messages with the bodies 0, 1, 2 ...
func fill(c *client, destination string, n int, headers ...string) {
	c.t.Helper()
	for i := range n {
		c.ask("SEND", strconv.Itoa(i), append(headers, "destination:"+destination)...)
	}
}

// message expects a MESSAGE with that body.
func (c *client) message(body string) answer {
	c.t.Helper()
	a := c.get()
	require.Equal(c.t, "MESSAGE", a.command, "%v", a)
	require.Equal(c.t, body, a.body)
	return a
}

// ackOf is the header of an ACK or NACK of a message.
func ackOf(a answer) string { return "id:" + a.headers["ack"] }

func TestAckModes(t *testing.T) {
	t.Parallel()
	for mode, settled := range map[string]uint64{"auto": 5, "client": 4, "client-individual": 1} {
		t.Run(mode, func(t *testing.T) {
			s, c := begin(t, store.Config{})
			fill(c, "/queue/x", 5)
			c.put("SUBSCRIBE", "", "id:1", "destination:/queue/x", "ack:"+mode)
			var got []answer
			for i := range 5 {
				got = append(got, c.message(strconv.Itoa(i)))
			}
			if mode != "auto" {
				c.ask("ACK", "", ackOf(got[3]))
			}
			c.ask("UNSUBSCRIBE", "", "id:1")
			stats := queueStats(s.store, "x")
			assert.Equal(t, settled, stats.Settled)
			assert.EqualValues(t, 5-settled, stats.Depth)
			assert.EqualValues(t, 5, stats.Delivered)
		})
	}
}

func TestNack(t *testing.T) {
	t.Parallel()
	for mode, returned := range map[string]int{"client": 3, "client-individual": 1} {
		t.Run(mode, func(t *testing.T) {
			s, c := begin(t, store.Config{})
			fill(c, "/queue/x", 4)
			c.put("SUBSCRIBE", "", "id:1", "destination:/queue/x", "ack:"+mode, "prefetch-count:4")
			var got []answer
			for i := range 4 {
				got = append(got, c.message(strconv.Itoa(i)))
				assert.NotContains(t, got[i].headers, "redelivered")
			}
			c.put("NACK", "", ackOf(got[2]))
			for range returned {
				a := c.get()
				assert.Equal(t, "true", a.headers["redelivered"])
			}
			c.quiet()
			assert.EqualValues(t, returned, queueStats(s.store, "x").Returned)
		})
	}
}

// TestNackDrops has a message dropped at its first delivery.
func TestNackDrops(t *testing.T) {
	s, c := begin(t, store.Config{})
	fill(c, "/queue/x", 2)
	c.put("SUBSCRIBE", "", "id:1", "destination:/queue/x", "ack:client-individual")
	c.put("NACK", "", ackOf(c.message("0")), "requeue:false")
	c.put("NACK", "", ackOf(c.message("1")), "requeue:true")
	c.ask("ACK", "", ackOf(c.message("1")))
	c.quiet()
	stats := queueStats(s.store, "x")
	assert.EqualValues(t, 1, stats.Rejected)
	assert.EqualValues(t, 3, stats.Delivered)
	assert.EqualValues(t, 0, stats.Depth)
}

func TestPrefetch(t *testing.T) {
	t.Parallel()
	for header, ahead := range map[string]int{"prefetch-count:3": 3, "prefetch-count:0": 1, "": 20} {
		t.Run(header, func(t *testing.T) {
			s, c := begin(t, store.Config{})
			fill(c, "/queue/x", 20)
			headers := []string{"id:1", "destination:/queue/x", "ack:client"}
			if header != "" {
				headers = append(headers, header)
			}
			c.put("SUBSCRIBE", "", headers...)
			for next := 0; next < 20; {
				until := min(20, next+ahead)
				var a answer
				for ; next < until; next++ {
					a = c.message(strconv.Itoa(next))
				}
				c.quiet()
				c.put("ACK", "", ackOf(a))
			}
			require.Eventually(t, func() bool { return queueStats(s.store, "x").Settled == 20 }, patience, time.Millisecond)
		})
	}
}

func TestAcknowledgeTwice(t *testing.T) {
	s, c := begin(t, store.Config{})
	fill(c, "/queue/x", 3)
	c.put("SUBSCRIBE", "", "id:1", "destination:/queue/x", "ack:client")
	first := c.message("0")
	second := c.message("1")
	c.message("2")
	c.ask("ACK", "", ackOf(second))
	c.ask("ACK", "", ackOf(first)) // was covered: clients with several threads do that
	c.ask("UNSUBSCRIBE", "", "id:1")
	c.put("ACK", "", ackOf(second)) // may have crossed with the end
	c.put("SUBSCRIBE", "", "id:1", "destination:/queue/x", "ack:client-individual")
	third := c.message("2")
	c.ask("ACK", "", ackOf(third))
	c.put("ACK", "", ackOf(third))
	c.refused("was settled before")
	assert.EqualValues(t, 3, queueStats(s.store, "x").Settled)
}

func TestTransactions(t *testing.T) {
	s, c := begin(t, store.Config{})
	fill(c, "/queue/in", 4)
	c.put("SUBSCRIBE", "", "id:1", "destination:/queue/in", "ack:client-individual")
	var got []answer
	for i := range 4 {
		got = append(got, c.message(strconv.Itoa(i)))
	}
	for _, name := range []string{"a", "b"} {
		c.ask("BEGIN", "", "transaction:"+name)
		c.ask("SEND", name, "destination:/queue/out", "transaction:"+name)
	}
	c.ask("ACK", "", ackOf(got[0]), "transaction:a")
	c.ask("NACK", "", ackOf(got[1]), "transaction:a")
	c.ask("ACK", "", ackOf(got[2]), "transaction:b")
	assert.EqualValues(t, 0, queueStats(s.store, "out").Stored)
	c.ask("ABORT", "", "transaction:b")
	c.put("COMMIT", "", "transaction:a")
	assert.Equal(t, "true", c.message("1").headers["redelivered"])
	c.ask("BEGIN", "", "transaction:a") // the name is free again, and the COMMIT is done
	assert.EqualValues(t, 1, queueStats(s.store, "out").Stored)
	assert.EqualValues(t, 1, queueStats(s.store, "in").Settled)
	c.ask("ACK", "", ackOf(got[2])) // as if it had not been acknowledged
	c.ask("ACK", "", ackOf(got[3]), "transaction:a")
	c.ask("UNSUBSCRIBE", "", "id:1")
	c.put("COMMIT", "", "transaction:a", "receipt:7")
	assert.Equal(t, "7", c.refused("of an acknowledgement has ended").headers["receipt-id"])
}

func TestDurable(t *testing.T) {
	t.Parallel()
	const named = "durable-subscription-name:d"
	s := serve(t, store.Config{}, Server{})
	subscribe := []string{"id:1", "destination:/topic/x", "ack:auto", named}
	c := connected(t, s.addr, "client-id:me")
	c.ask("SUBSCRIBE", "", subscribe...)
	second := connected(t, s.addr, "client-id:me")
	second.put("SUBSCRIBE", "", subscribe...)
	second.refused("is in use")
	c.ask("DISCONNECT", "")
	require.Equal(t, "EOF", c.get().command)
	sender := connected(t, s.addr)
	fill(sender, "/topic/x", 2)
	c = connected(t, s.addr, "client-id:me")
	c.put("SUBSCRIBE", "", subscribe...)
	c.message("0")
	c.message("1")
	c.put("UNSUBSCRIBE", "", "id:none", named)
	c.refused("is in use")
	c = connected(t, s.addr, "client-id:me")
	c.ask("UNSUBSCRIBE", "", "id:none", named)
	assert.Empty(t, s.store.Destination(driver.Destination{Kind: driver.Topic, Name: "x"}).Stats().Queues)
	c.ask("SUBSCRIBE", "", subscribe...)
	c.ask("UNSUBSCRIBE", "", "id:1", named) // both in one
	fill(sender, "/topic/x", 1)
	c.ask("SUBSCRIBE", "", subscribe...)
	c.quiet()
}

// TestConformance runs the suite of perfmq's own driver.
func TestConformance(t *testing.T) { conformance(t) }

func conformance(t *testing.T, options ...string) {
	t.Helper()
	s := serve(t, storetest.Limits(), Server{
		Authenticate: func(user, password string) bool { return user == "u" && password == "p" },
	})
	broker := "" // of the table of features: only as the driver finds us
	if len(options) == 0 {
		broker = "the embedded broker"
	}
	cfg := drivertest.Config{
		Broker:  broker,
		Mode:    len(options) > 0,
		Factory: driverstomp.Factory(), URL: "stomp://" + s.addr, User: "u", Password: "p", WrongPassword: "wrong",
		Options: options, Allocations: 5, // the broker's own are among them
		Inspect: stomptest.Broker{URL: "stomp://" + s.addr, User: "u", Password: "p", Destination: stomptest.Whole}.Inspect,
	}
	storetest.Configure(&cfg, s.store)
	drivertest.Run(t, cfg)
}
