package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestText: a text stays one over AMQP and STOMP, and bytes stay bytes. AMQP is spoken by its client library, STOMP by
// hand.
func TestText(t *testing.T) {
	b := start(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	conn := musttest.Get(amqp.Dial(ctx, "amqp://"+b.Addr(AMQP), &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()}))(t)
	t.Cleanup(func() { _ = conn.Close() })
	session := musttest.Get(conn.NewSession(ctx, nil))(t)
	send := func(queue string, m *amqp.Message) {
		s := musttest.Get(session.NewSender(ctx, queue, nil))(t)
		require.NoError(t, s.Send(ctx, m, nil))
		require.NoError(t, s.Close(ctx))
	}
	receive := func(queue string) *amqp.Message {
		r := musttest.Get(session.NewReceiver(ctx, queue, nil))(t)
		m := musttest.Get(r.Receive(ctx, nil))(t)
		require.NoError(t, r.AcceptMessage(ctx, m))
		require.NoError(t, r.Close(ctx))
		return m
	}
	p := dialSTOMP(t, b)
	subscriptions := 0
	frame := func(queue string) string {
		subscriptions++
		p.say(fmt.Sprintf("SUBSCRIBE\nid:%d\ndestination:queue://%s\nack:auto\n\n", subscriptions, queue))
		return p.frame()
	}
	const text = "grün\n"

	p.say("SEND\ndestination:queue://stomp-amqp\n\n" + text)
	require.Equal(t, text, receive("stomp-amqp").Value)
	p.say(fmt.Sprintf("SEND\ndestination:queue://stomp-amqp\ncontent-length:%d\n\n%s", len(text), text))
	require.Equal(t, []byte(text), receive("stomp-amqp").GetData())
	p.say("SEND\ndestination:queue://stomp-amqp\n\ngr\xfcn")
	require.Equal(t, []byte("gr\xfcn"), receive("stomp-amqp").GetData(), "no string: it is not UTF-8")
	p.say("SEND\ndestination:queue://stomp\n\n" + text)
	got := frame("stomp")
	require.NotContains(t, got, "content-length")
	require.True(t, strings.HasSuffix(strings.TrimSuffix(got, "\x00"), "\n\n"+text), got)
	p.say(fmt.Sprintf("SEND\ndestination:queue://stomp-2\ncontent-length:%d\n\n%s", len(text), text))
	require.Contains(t, frame("stomp-2"), "\ncontent-length:6\n")

	send("amqp-stomp", &amqp.Message{Value: text})
	got = frame("amqp-stomp")
	require.NotContains(t, got, "content-length")
	require.True(t, strings.HasSuffix(strings.TrimSuffix(got, "\x00"), "\n\n"+text), got)
	send("amqp-stomp-2", amqp.NewMessage([]byte(text)))
	require.Contains(t, frame("amqp-stomp-2"), "\ncontent-length:6\n")
	send("amqp-stomp-3", &amqp.Message{Value: "a\x00b"})
	require.Contains(t, frame("amqp-stomp-3"), "\ncontent-length:3\n", "a frame without would end at the NUL")
	_, err := p.r.ReadString(0) // the rest of that body
	require.NoError(t, err)
}
