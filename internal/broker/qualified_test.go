package broker

import (
	"context"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"
)

// TestQualifiedNames: queue://A::q is a queue of that name, and topic://T::s a shared durable subscription of T, over
// AMQP and over STOMP.
func TestQualifiedNames(t *testing.T) {
	b := start(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	conn, err := amqp.Dial(ctx, "amqp://"+b.Addr(AMQP), &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	session, err := conn.NewSession(ctx, nil)
	require.NoError(t, err)
	send := func(address string) {
		s, err := session.NewSender(ctx, address, nil)
		require.NoError(t, err)
		require.NoError(t, s.Send(ctx, &amqp.Message{Value: address}, nil))
		require.NoError(t, s.Close(ctx))
	}
	receive := func(address string) any {
		r, err := session.NewReceiver(ctx, address, nil)
		require.NoError(t, err)
		m, err := r.Receive(ctx, nil)
		require.NoError(t, err)
		require.NoError(t, r.AcceptMessage(ctx, m))
		require.NoError(t, r.Close(ctx))
		return m.Value
	}
	p := dialSTOMP(t, b)
	say := func(command, address, more string) {
		p.say(command + "\ndestination:" + address + "\nid:" + strings.Trim(address, ":/") + "\nreceipt:r\n" + more + "\n")
		require.Contains(t, p.frame(), "RECEIPT\n", address)
	}

	queues := []string{"queue://A::q", "queue://B::q", "queue://q"}
	for _, q := range queues {
		p.say("SEND\ndestination:" + q + "\n\n" + q)
	}
	for _, q := range queues {
		require.Equal(t, q, receive(q), "sent over STOMP")
		send(q)
	}
	for _, q := range queues {
		say("SUBSCRIBE", q, "ack:auto\n")
		require.True(t, strings.HasSuffix(strings.TrimSuffix(p.frame(), "\x00"), "\n\n"+q), "sent over AMQP to %s", q)
	}

	const topic, subscription = "topic://T", "topic://T::s"
	say("SUBSCRIBE", subscription, "ack:auto\n")
	say("UNSUBSCRIBE", subscription, "")
	send(topic)
	require.Equal(t, topic, receive(subscription), "the subscription outlives its STOMP consumer")
	p.say("SEND\ndestination:" + topic + "\n\nagain")
	require.Equal(t, "again", receive(subscription), "and its AMQP consumer")
	_, err = session.NewSender(ctx, subscription, nil)
	require.ErrorContains(t, err, "send to its topic")
	p.say("SEND\ndestination:" + subscription + "\n\nx")
	require.Contains(t, p.frame(), "send to its topic")
}
