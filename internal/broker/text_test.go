package broker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	ours "github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestText: a text stays one over all protocols, and bytes stay bytes. AMQP is spoken by its client library, STOMP by
// hand; RocketMQ has a property for it.
func TestText(t *testing.T) {
	b := start(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	conn, err := amqp.Dial(ctx, "amqp://"+b.Addr(AMQP), &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
	require.NoError(t, err)
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
	_, err = p.r.ReadString(0) // the rest of that body
	require.NoError(t, err)

	send("rocket", &amqp.Message{Value: text})
	p.say("SEND\ndestination:queue://rocket\n\n" + text)
	require.Equal(t, []string{"text/plain", "text/plain"}, contentTypes(ctx, t, b, "rocket", 2))
}

// contentTypes returns the RocketMQ property CONTENT_TYPE of n messages: selectors see properties.
func contentTypes(ctx context.Context, t *testing.T, b *Broker, queue string, n int) (list []string) {
	t.Helper()
	f := ours.Factory()
	d, err := f.Open(ctx, driver.OpenOptions{URL: "rocketmq://" + b.Addr(RocketMQ), ConnectTimeout: patience, Options: f.NewOptions()})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(context.WithoutCancel(ctx))) }()
	const value = "text/plain"
	c, err := d.Consumer(ctx, driver.ConsumerSpec{
		Connection: driver.Connection{Key: "c", Name: "c"}, Destination: driver.Destination{Name: queue}, Name: "consumer-1",
		Selector: "CONTENT_TYPE = '" + value + "'",
	})
	require.NoError(t, err)
	running, stop := context.WithCancel(ctx)
	require.NoError(t, c.Run(running, func(*driver.Delivery) driver.Verdict {
		if list = append(list, value); len(list) == n {
			stop()
		}
		return driver.Accept
	}))
	stop()
	require.NoError(t, c.Close(ctx))
	return list
}
