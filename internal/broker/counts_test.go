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
)

// sends sends n messages over a connection of its own and does not wait for answers; wait does, and returns how many
// there were before the connection ended.
type sends func(t *testing.T, b *Broker, n int) (wait func() int)

func overProtocols() map[string]sends {
	return map[string]sends{AMQP: sendAMQP, STOMP: sendSTOMP, RocketMQ: sendRocketMQ}
}

func sendAMQP(t *testing.T, b *Broker, n int) func() int {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	conn, err := amqp.Dial(ctx, "amqp://"+b.Addr(AMQP), nil)
	require.NoError(t, err)
	session, err := conn.NewSession(ctx, nil)
	require.NoError(t, err)
	sender, err := session.NewSender(ctx, "Q", nil)
	require.NoError(t, err)
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
		_, err := conn.Write(sendRemoting(t, i, "T", "x"))
		require.NoError(t, err)
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

// TestFullIsCounted: each message that was refused or kept waiting, over each protocol, and once. Over AMQP what waits
// does so at the sender, and each sender counts as one.
func TestFullIsCounted(t *testing.T) {
	const n = 150
	full := store.Faults{Full: true}
	for _, c := range []struct {
		protocol string
		policy   store.Policy
		counted  uint64
	}{
		{AMQP, store.Block, 1},
		{AMQP, store.Reject, n},
		{STOMP, store.Block, n},
		{STOMP, store.Reject, 1}, // and the connection ends
		{RocketMQ, store.Block, n},
		{RocketMQ, store.Reject, n},
	} {
		policy := map[store.Policy]string{store.Block: "block", store.Reject: "reject"}[c.policy]
		t.Run(c.protocol+" "+policy, func(t *testing.T) {
			b := start(t, Config{Limits: store.Config{Full: c.policy}})
			send := overProtocols()[c.protocol]
			if c.protocol == RocketMQ { // that there is a topic
				require.Equal(t, 1, send(t, b, 1)())
			}
			b.Store().SetFaults(full)
			wait := send(t, b, n)
			require.Eventually(t, func() bool { return b.Stats().Done.Full == c.counted }, patience, time.Millisecond, "%+v", b.Stats().Done)
			if c.policy == store.Block {
				b.Store().SetFaults(store.Faults{})
				assert.Equal(t, n, wait())
			} else {
				wait()
			}
			assert.Equal(t, store.FaultCounts{Full: c.counted}, b.Stats().Done)
			b.Store().SetFaults(store.Faults{})
			assert.Equal(t, 1, send(t, b, 1)())
			assert.Equal(t, store.FaultCounts{Full: c.counted}, b.Stats().Done)
		})
	}
}
