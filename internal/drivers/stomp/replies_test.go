//go:build unix

package stomp

import (
	"context"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestRequestAndReply plays both ends of a request by hand.
func TestRequestAndReply(t *testing.T) {
	b := newFakeBroker(t)
	d := b.open()
	k, subscribe := b.consumer(d, connectedClassic, driver.ConsumerSpec{Dynamic: true, Correlated: true})
	address := k.(driver.Addressed).Address()
	require.Regexp(t, `^/temp-queue/perfmq\.\w{26}$`, address)
	require.Equal(t, address, subscribe.Header.Get(frame.Destination))
	require.Empty(t, subscribe.Header.Get(headerType))

	open := func(spec driver.ProducerSpec) driver.Producer {
		spec.Variants, spec.MaxPending = bodies(), 1
		p := musttest.Get(d.Producer(t.Context(), spec, newOutcomes()))(t)
		t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			require.NoError(t, p.Close(ctx))
		})
		return p
	}
	send := func(p driver.Producer, m *driver.Message) *frame.Frame {
		require.NoError(t, p.Send(t.Context(), m))
		f := b.next(frame.SEND)
		b.receipt(f.Header.Get(frame.Receipt))
		return f
	}
	requests := open(driver.ProducerSpec{Destination: driver.Destination{Name: "S"}, Requests: true})
	f := send(requests, &driver.Message{ReplyTo: address, Correlation: []byte("1:2\n3")})
	assert.Equal(t, "/queue/S", f.Header.Get(frame.Destination))
	assert.Equal(t, address, f.Header.Get("reply-to"))
	assert.Equal(t, "1:2\n3", f.Header.Get("correlation-id"))
	replies := open(driver.ProducerSpec{Destination: driver.Destination{Name: "S"}, Anonymous: true})
	f = send(replies, &driver.Message{To: []byte("/remote-temp-queue/ID:1"), Correlation: []byte("c")})
	assert.Equal(t, []string{"/remote-temp-queue/ID:1"}, f.Header.GetAll(frame.Destination))
	assert.Equal(t, "c", f.Header.Get("correlation-id"))
	assert.Empty(t, f.Header.Get("reply-to"))

	got := make(chan driver.Delivery)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- k.Run(ctx, func(d *driver.Delivery) driver.Verdict {
			kept := *d
			for _, text := range []*[]byte{&kept.Body, &kept.ReplyTo, &kept.Correlation, &kept.MessageID} {
				*text = []byte(string(*text))
			}
			got <- kept
			return driver.Accept
		})
	}()
	for range 3 {
		b.write("MESSAGE\nsubscription:" + subscribe.Header.Get(frame.Id) + "\nmessage-id:ID\\c1\nack:a\ndestination:x\n" +
			"correlation-id:c\\\\\\n\nreply-to:/remote-temp-queue/ID\\c1\ncontent-length:4\n\npong\x00")
	}
	for range 3 { // they are held, as the connection is shared
		reply := <-got
		assert.Equal(t, [4]string{"pong", "/remote-temp-queue/ID:1", "c\\\n", "ID:1"},
			[4]string{string(reply.Body), string(reply.ReplyTo), string(reply.Correlation), string(reply.MessageID)})
	}
	stop()
	require.NoError(t, <-ended)

	_, err := d.Producer(t.Context(), driver.ProducerSpec{
		Requests: true, MaxPending: 1,
		Variants: []driver.Variant{{Body: []byte("x"), Properties: []driver.Property{{Key: "reply-to", Value: "x"}}}},
	}, newOutcomes())
	require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err))
}

// TestReplyQueues: what brokers call a queue for replies.
func TestReplyQueues(t *testing.T) {
	for broker, want := range map[dialect][2]string{
		artemis: {"n", "n"}, activemq: {"/temp-queue/n", "/temp-queue/n"}, perfmq: {"/temp-queue/n", "/temp-queue/n"},
		rabbitmq: {"/queue/n", "/reply-queue/n"},
	} {
		headers, address, err := broker.repliesTo("n")
		require.NoError(t, err)
		assert.Equal(t, want, [2]string{headers[1], address}, string(broker))
	}
	_, _, err := generic.repliesTo("n")
	require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err))
	require.Equal(t, "give --reply-to queue://NAME", driver.HintOf(err))
}

// TestCorrelate: nothing is allocated for a message, with escapes or without, and unknown escapes stay.
func TestCorrelate(t *testing.T) {
	m := message{id: []byte(`ID\c1`), replyTo: []byte("plain"), correlation: []byte(`a\tb`)}
	m.correlate()
	assert.Equal(t, [3]string{"plain", `a\tb`, "ID:1"}, [3]string{string(m.ReplyTo), string(m.Correlation), string(m.MessageID)})
	require.Zero(t, testing.AllocsPerRun(100, m.correlate))
}

// TestLeavesNoReplyQueue: nothing is left of a queue for replies, nor of a late reply to it.
func TestLeavesNoReplyQueue(t *testing.T) {
	a := shared.Artemis(t)
	ctx, d := deadline(t), openDriver(t, a.STOMPURL())
	spec := driver.ConsumerSpec{Connection: driver.Connection{Key: "r", Name: "r"}, Dynamic: true, Correlated: true}
	k := musttest.Get(d.Consumer(ctx, spec))(t)
	address := k.(driver.Addressed).Address()
	require.Len(t, musttest.Get(a.Queues(ctx, address))(t), 1)
	require.NoError(t, k.Close(ctx))
	gone := func() {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			queues, err := a.Queues(ctx, address)
			assert.NoError(t, err)
			assert.Empty(t, queues)
		}, patience, 20*time.Millisecond)
	}
	gone()
	o := newOutcomes()
	p := musttest.Get(d.Producer(ctx, driver.ProducerSpec{
		Connection: driver.Connection{Key: "s", Name: "s"}, Anonymous: true, MaxPending: 1, Variants: bodies(),
	}, o))(t)
	require.NoError(t, p.Send(ctx, &driver.Message{To: []byte(address), Correlation: []byte("c")}))
	o.wait(t, 1)
	require.NoError(t, p.Close(ctx))
	gone()
}
