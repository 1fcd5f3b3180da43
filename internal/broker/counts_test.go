package broker

import (
	"context"
	"encoding/binary"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
)

// sends sends n messages over a connection of its own and does not wait for answers. wait waits for the answers, and
// returns their number at the end of the connection.
type sends func(t *testing.T, b *Broker, n int) (wait func() int)

func overProtocols() map[string]sends {
	return map[string]sends{AMQP: sendAMQP, STOMP: sendSTOMP, RocketMQ: sendRocketMQ}
}

func sendAMQP(t *testing.T, b *Broker, n int) func() int {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	conn := musttest.Get(amqp.Dial(ctx, "amqp://"+b.Addr(AMQP), nil))(t)
	session := musttest.Get(conn.NewSession(ctx, nil))(t)
	sender := musttest.Get(session.NewSender(ctx, "Q", nil))(t)
	ended := make(chan bool, n)
	go func() {
		defer close(ended)
		var receipts []amqp.SendReceipt
		for range n {
			r, err := sender.SendWithReceipt(ctx, amqp.NewMessage([]byte("x")), nil)
			if err != nil {
				break
			}
			receipts = append(receipts, r)
		}
		for _, r := range receipts {
			_, err := r.Wait(ctx)
			ended <- err == nil
		}
	}()
	return func() (answered int) {
		for ok := range ended {
			if ok {
				answered++
			}
		}
		_ = conn.Close()
		cancel()
		return answered
	}
}

func sendSTOMP(t *testing.T, b *Broker, n int) func() int {
	p := dialSTOMP(t, b)
	for i := range n {
		p.say("SEND\ndestination:/queue/Q\nreceipt:" + strconv.Itoa(i) + "\n\nx")
	}
	return func() (answered int) {
		for ; answered < n; answered++ {
			if _, err := p.r.ReadString(0); err != nil {
				break
			}
		}
		return answered
	}
}

func sendRocketMQ(t *testing.T, b *Broker, n int) func() int {
	conn := dialRaw(t, b, RocketMQ)
	for i := range n {
		musttest.Get(conn.Write(sendRemoting(t, i, "T", "x")))(t)
	}
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	return func() (answered int) {
		var size [4]byte
		for ; answered < n; answered++ {
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				break
			}
			if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))); err != nil {
				break
			}
		}
		return answered
	}
}

// TestDelayedIsCounted: each message that was stored to be delivered later, over each protocol.
func TestDelayedIsCounted(t *testing.T) {
	const n = 20
	for protocol, send := range overProtocols() {
		for _, c := range []struct {
			faults store.Faults
			want   store.FaultCounts
		}{
			{store.Faults{Delay: 20 * time.Millisecond}, store.FaultCounts{Delayed: n}},
			{store.Faults{Delay: 20 * time.Millisecond, LoseEvery: 5}, store.FaultCounts{Delayed: n - 4, Lost: 4}},
			{store.Faults{Delay: 20 * time.Millisecond, DuplicateEvery: 5}, store.FaultCounts{Delayed: n, Duplicated: 4}},
			{store.Faults{LoseEvery: 5}, store.FaultCounts{Lost: 4}},
		} {
			t.Run(protocol+" "+FormatFaults(c.faults), func(t *testing.T) {
				b := start(t, Config{Faults: c.faults})
				require.Equal(t, n, send(t, b, n)())
				assert.Equal(t, c.want, b.Stats().Done)
			})
		}
	}
}
