package amqp_test

import (
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
)

// destinations returns the number of destinations of the store.
func (r *rig) destinations() int {
	_, total, _ := r.store.Page(0)
	return total.Destinations
}

// TestRequestAndReply: a request with a dynamic address for its reply, a responder over the anonymous terminus.
func TestRequestAndReply(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{})
	s := r.session()
	replies := r.receiver(s, "", &client.ReceiverOptions{DynamicAddress: true})
	requests, responder := r.receiver(s, "SERVICE", nil), r.sender(s, "", nil)
	out := r.sender(s, "SERVICE", nil)
	for _, id := range []any{"text", client.UUID{1, 2}, uint64(7), []byte{0, 1}} {
		m := client.NewMessage([]byte("ping"))
		m.Properties = &client.MessageProperties{MessageID: id, ReplyTo: new(replies.Address())}
		require.NoError(t, out.Send(soon(t), m, nil))
		got := r.receive(requests)
		require.NoError(t, requests.AcceptMessage(soon(t), got))
		require.Equal(t, replies.Address(), *got.Properties.ReplyTo)
		answer := client.NewMessage([]byte("pong"))
		answer.Properties = &client.MessageProperties{To: got.Properties.ReplyTo, CorrelationID: got.Properties.MessageID}
		require.NoError(t, responder.Send(soon(t), answer, nil))
		reply := r.receive(replies)
		require.NoError(t, replies.AcceptMessage(soon(t), reply))
		assert.Equal(t, id, reply.Properties.CorrelationID)
		assert.Equal(t, "pong", string(reply.GetData()))
	}
	require.Equal(t, 2, r.destinations())
	address := replies.Address()
	require.NoError(t, replies.Close(soon(t)))
	require.Equal(t, 1, r.destinations())
	late := client.NewMessage([]byte("late"))
	late.Properties = &client.MessageProperties{To: &address}
	require.Equal(t, client.ErrCondNotFound, condition(responder.Send(soon(t), late, nil)))
	require.Equal(t, client.ErrCondPreconditionFailed, condition(responder.Send(soon(t), client.NewMessage([]byte("x")), nil)))
	r.send(out, "the link is as it was")
}

// TestTemporaries: they end with link, session or connection, and are bounded by the memory of the broker.
func TestTemporaries(t *testing.T) {
	r := start(t, store.Config{}, amqp.Server{})
	conn := r.dial(nil)
	s := musttest.Get(conn.NewSession(soon(t), nil))(t)
	second := musttest.Get(conn.NewSession(soon(t), nil))(t)
	in := r.sender(s, "", &client.SenderOptions{DynamicAddress: true})
	r.receiver(second, "", &client.ReceiverOptions{DynamicAddress: true})
	_, err := s.NewReceiver(soon(t), "", &client.ReceiverOptions{DynamicAddress: true, SourceCapabilities: []string{"temporary-topic"}})
	require.Equal(t, client.ErrCondNotImplemented, condition(err), "%v", err)
	out := r.receiver(s, in.Address(), nil)
	r.send(in, "a")
	r.expect(out, "a")
	require.Equal(t, 2, r.destinations())
	require.NoError(t, second.Close(soon(t)))
	require.Equal(t, 1, r.destinations())
	require.NoError(t, in.Close(soon(t)))
	require.Zero(t, r.destinations())
	r.sender(s, "", &client.SenderOptions{DynamicAddress: true})
	_, limit := r.store.Memory()
	r.store.Charge(limit * 9 / 8)
	_, err = s.NewReceiver(soon(t), "", &client.ReceiverOptions{DynamicAddress: true})
	require.Equal(t, client.ErrCondResourceLimitExceeded, condition(err), "%v", err)
	r.store.Return(limit * 9 / 8)
	require.Equal(t, 1, r.destinations())
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return r.destinations() == 0 }, timeout, time.Millisecond)
}

// TestAnonymousFull: a full destination refuses its messages, not those to others over the same link.
func TestAnonymousFull(t *testing.T) {
	r := start(t, store.Config{Limit: 20, Reject: true}, amqp.Server{})
	s := r.session()
	out := r.sender(s, "", nil)
	to, other := "FULL", "EMPTY"
	refused := 0
	for range 30 {
		m := client.NewMessage([]byte("x"))
		m.Properties = &client.MessageProperties{To: &to}
		if err := out.Send(soon(t), m, nil); err != nil {
			require.Equal(t, client.ErrCondResourceLimitExceeded, condition(err))
			refused++
		}
	}
	require.Equal(t, 10, refused)
	m := client.NewMessage([]byte("x"))
	m.Properties = &client.MessageProperties{To: &other}
	require.NoError(t, out.Send(soon(t), m, nil))
}
