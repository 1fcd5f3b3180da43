//go:build unix

package amqp

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestQueueRoundTrip(t *testing.T) {
	a := sharedBroker.Artemis(t)
	big := strings.Repeat("0123456789", 1<<20)
	for _, c := range []struct {
		name       string
		persistent bool
		body       string
		url        string
		options    []string
	}{
		{name: "plain", body: "hello"},
		{name: "persistent", persistent: true, body: "hello"},
		{name: "empty"},
		{name: "many frames", body: big},
		{name: "at most once", body: "hello", options: []string{"settle=at-most-once"}},
		{name: "at most once, many frames", body: big, options: []string{"settle=at-most-once"}},
		{name: "acceptor for all protocols", body: "hello", url: a.CoreURL()},
		{name: "localhost", body: "hello", url: strings.Replace(a.AMQPURL(), "127.0.0.1", "localhost", 1)},
		{name: "the second host answers", body: "hello", url: strings.Replace(a.AMQPURL(), "//", "//127.0.0.1:1,", 1)},
		{name: "small frames", body: strings.Repeat("x", 5000), options: []string{"max-frame-size=512"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.url == "" {
				c.url = a.AMQPURL()
			}
			r := newRig(t, c.url, c.options...)
			q := unused(queue(t))
			p := r.producer(driver.ProducerSpec{
				Destination: q, Persistent: c.persistent,
				Variants: []driver.Variant{{Body: []byte(c.body), Priority: -1, Properties: []driver.Property{{Key: "color", Value: "red"}}}},
			})
			p.send("a", "b")
			p.settleAccepted(2)
			stats, err := a.WaitQueue(soon(t), q.Name, func(s brokertest.QueueStats) bool { return s.MessageCount == 2 })
			require.NoError(t, err)
			durable := int64(0)
			if c.persistent {
				durable = 2
			}
			require.Equal(t, durable, stats.DurableMessageCount)
			require.Equal(t, "ANYCAST", stats.RoutingType)

			consumer := r.consumer(driver.ConsumerSpec{Destination: q, Selector: "color = 'red'"})
			for range 2 {
				d := consumer.next()
				require.True(t, bytes.Equal([]byte(c.body), d.Body), "the body has changed")
				require.True(t, d.HasTime)
				require.False(t, d.Redelivered)
			}
			consumer.close()
			_, err = a.WaitQueue(soon(t), q.Name, func(s brokertest.QueueStats) bool {
				return s.MessageCount == 0 && s.MessagesAcked == 2 && s.ConsumerCount == 0
			})
			require.NoError(t, err)
		})
	}
}

func TestPipelinedSends(t *testing.T) {
	a := sharedBroker.Artemis(t)
	for _, settle := range []string{"settle=at-least-once", "settle=at-most-once"} {
		t.Run(settle, func(t *testing.T) {
			r := newRig(t, a.AMQPURL(), settle)
			q := unused(queue(t))
			consumer := r.consumer(driver.ConsumerSpec{Destination: q})
			p := r.producer(driver.ProducerSpec{Destination: q, MaxPending: 50})
			want := numbered(5000)
			p.send(want...)
			p.settleAccepted(len(want))
			require.Equal(t, want, consumer.texts(len(want)), "one producer's messages come in order")
			consumer.nothing()
			consumer.close()
			stats, err := a.WaitQueue(soon(t), q.Name, func(s brokertest.QueueStats) bool { return s.MessagesAcked == 5000 })
			require.NoError(t, err)
			require.Equal(t, int64(5000), stats.MessagesAdded)
		})
	}
}

func TestTopicGoesToAll(t *testing.T) {
	a := sharedBroker.Artemis(t)
	r := newRig(t, a.AMQPURL())
	dest := topic(t)
	first := r.consumer(driver.ConsumerSpec{Destination: dest, Name: "consumer-0"})
	second := r.consumer(driver.ConsumerSpec{Destination: dest, Name: "consumer-1", Connection: conn("other")})
	third := r.consumer(driver.ConsumerSpec{Destination: dest, Name: "consumer-2"})
	p := r.producer(driver.ProducerSpec{Destination: dest})
	p.send("a", "b")
	p.settleAccepted(2)
	for _, c := range []*testConsumer{first, second, third} {
		require.Equal(t, []string{"a", "b"}, c.texts(2))
		c.close()
	}
	// The broker removes them by itself, a moment after their consumers have gone.
	require.Eventually(t, func() bool { return len(subscriptions(t, a, dest)) == 0 }, patience, 20*time.Millisecond)
}

func TestFullyQualifiedQueueNames(t *testing.T) {
	a := sharedBroker.Artemis(t)
	r := newRig(t, a.AMQPURL())
	all := unused(driver.Destination{Kind: driver.Topic, Name: "fqqn"})
	one, two := all.Name+".one", all.Name+".two"
	require.NoError(t, a.CreateQueue(soon(t), all.Name, one, "MULTICAST"))
	require.NoError(t, a.CreateQueue(soon(t), all.Name, two, "MULTICAST"))
	toOne := driver.Destination{Kind: driver.Topic, Name: all.Name + "::" + one}

	p := r.producer(driver.ProducerSpec{Destination: all})
	p.send("to both")
	p.settleAccepted(1)
	p = r.producer(driver.ProducerSpec{Destination: toOne})
	p.send("to one")
	p.settleAccepted(1)

	c := r.consumer(driver.ConsumerSpec{Destination: toOne})
	require.Equal(t, []string{"to both", "to one"}, c.texts(2))
	c.close()
	_, err := a.WaitQueue(soon(t), two, func(s brokertest.QueueStats) bool { return s.MessageCount == 1 })
	require.NoError(t, err)

	queue := all.Name + ".q"
	require.NoError(t, a.CreateQueue(soon(t), all.Name+".any", queue, "ANYCAST"))
	anycast := driver.Destination{Name: all.Name + ".any::" + queue}
	p = r.producer(driver.ProducerSpec{Destination: anycast})
	p.send("x")
	p.settleAccepted(1)
	c = r.consumer(driver.ConsumerSpec{Destination: anycast})
	require.Equal(t, []string{"x"}, c.texts(1))
}

func TestSelector(t *testing.T) {
	r := newRig(t, sharedBroker.Artemis(t).AMQPURL())
	q := queue(t)
	for _, color := range []string{"red", "blue"} {
		p := r.producer(driver.ProducerSpec{
			Destination: q, Name: color,
			Variants: []driver.Variant{{Priority: -1, Properties: []driver.Property{{Key: "color", Value: color}}}},
		})
		p.send(color)
		p.settleAccepted(1)
	}
	c := r.consumer(driver.ConsumerSpec{Destination: q, Selector: "color = 'blue'"})
	require.Equal(t, []string{"blue"}, c.texts(1))
	c.nothing()
	_, err := r.tryConsumer(driver.ConsumerSpec{Destination: q, Selector: "color = = 1", Connection: conn("bad")})
	require.Error(t, err)
	require.Contains(t, err.Error(), "open a consumer on queue://")
}

func TestExpiry(t *testing.T) {
	a := sharedBroker.Artemis(t)
	r := newRig(t, a.AMQPURL())
	q := unused(queue(t))
	p := r.producer(driver.ProducerSpec{Destination: q, TTL: 50 * time.Millisecond})
	p.send("a", "b")
	p.settleAccepted(2)
	_, err := a.WaitQueue(soon(t), q.Name, func(s brokertest.QueueStats) bool { return s.MessagesAdded == 2 })
	require.NoError(t, err)
	<-time.After(60 * time.Millisecond) // the messages' own time
	c := r.consumer(driver.ConsumerSpec{Destination: q})
	_, err = a.WaitQueue(soon(t), q.Name, func(s brokertest.QueueStats) bool { return s.MessagesExpired == 2 })
	require.NoError(t, err)
	c.nothing()
}

func TestPriority(t *testing.T) {
	r := newRig(t, sharedBroker.Artemis(t).AMQPURL())
	q := queue(t)
	for _, priority := range []int{0, 9, -1, 3, 5} {
		p := r.producer(driver.ProducerSpec{Destination: q, Variants: []driver.Variant{{Priority: priority}}})
		p.send(string(rune('a' + priority)))
		p.settleAccepted(1)
	}
	c := r.consumer(driver.ConsumerSpec{Destination: q})
	// -1 is the default, 4: between 3 and 5.
	require.Equal(t, []string{"j", "f", "`", "d", "a"}, c.texts(5))
}

func TestGroupStaysTogether(t *testing.T) {
	r := newRig(t, sharedBroker.Artemis(t).AMQPURL())
	q := queue(t)
	first := r.consumer(driver.ConsumerSpec{Destination: q, Name: "consumer-0"})
	second := r.consumer(driver.ConsumerSpec{Destination: q, Name: "consumer-1"})
	p := r.producer(driver.ProducerSpec{Destination: q, MaxPending: 10, Variants: []driver.Variant{{Priority: -1, Group: "g"}}})
	p.send(numbered(40)...)
	p.settleAccepted(40)
	var chosen, other *testConsumer
	select {
	case <-first.got:
		chosen, other = first, second
	case <-second.got:
		chosen, other = second, first
	}
	require.Equal(t, numbered(40)[1:], chosen.texts(39))
	other.nothing()
}

func TestCreditIsRespected(t *testing.T) {
	a := sharedBroker.Artemis(t)
	r := newRig(t, a.AMQPURL())
	q := queue(t)
	p := r.producer(driver.ProducerSpec{Destination: q, MaxPending: 50})
	p.send(numbered(100)...)
	p.settleAccepted(100)
	c, err := r.tryConsumer(driver.ConsumerSpec{Destination: q, Credit: 7})
	require.NoError(t, err)
	c.hold = make(chan struct{})
	c.run()
	_, err = a.WaitQueue(soon(t), q.Name, func(s brokertest.QueueStats) bool { return s.DeliveringCount == 7 })
	require.NoError(t, err, "the broker sends as many as there is credit")
	require.Never(t, func() bool {
		stats, err := a.Queue(soon(t), q.Name)
		return err != nil || stats.DeliveringCount != 7
	}, 300*time.Millisecond, 50*time.Millisecond, "nor does it send more")
	close(c.hold)
	require.Equal(t, numbered(100), c.texts(100))
	c.close()
}

func TestFullAddress(t *testing.T) {
	a := sharedBroker.Artemis(t)
	fails := func(t *testing.T, queue string, commitInterval int) {
		t.Helper()
		r := newRig(t, a.AMQPURL())
		q := unused(driver.Destination{Name: queue})
		p := r.producer(driver.ProducerSpec{
			Destination: q, MaxPending: 100, CommitInterval: commitInterval, Variants: body(strings.Repeat("x", 5000)),
		})
		refused, ended := context.WithCancel(soon(t))
		defer ended()
		go func() { // the broker rejects those under way, and drains the credit for more
			defer ended()
			for p.rejected() == 0 && refused.Err() == nil {
				<-time.After(time.Millisecond)
			}
		}()
		sent := 0
		for ; sent < 100; sent++ {
			if p.trySend(refused, "x") != nil {
				break
			}
		}
		all := p.settle()
		require.Len(t, all, sent)
		states := map[driver.State]int{}
		for _, o := range all {
			if states[o.State]++; o.State != driver.Accepted {
				require.Equal(t, driver.Rejected, o.State, "%+v", o)
				require.Equal(t, driver.ClassFull, o.Class, "%v", o.Err)
				require.NotEmpty(t, driver.HintOf(o.Err))
			}
		}
		require.NotZero(t, states[driver.Accepted])
		require.NotZero(t, states[driver.Rejected])
	}
	t.Run("that fails", func(t *testing.T) { fails(t, "full.fail.q", 0) })
	// It refuses some messages, and then the commit, with the condition "failed" and the same code.
	t.Run("that fails, in transactions", func(t *testing.T) { fails(t, "full.fail.tx", 3) })
	t.Run("that blocks", func(t *testing.T) {
		r := newRig(t, a.AMQPURL())
		q := unused(driver.Destination{Name: "full.block.q"})
		p := r.producer(driver.ProducerSpec{Destination: q, MaxPending: 5000, Variants: body(strings.Repeat("x", 5000))})
		sent := 0
		var err error
		for ; err == nil; sent++ { // the last one waits
			err = p.trySend(within(t, 2*time.Second), "x")
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, driver.ClassTimeout, driver.ClassOf(err))
		require.NotEmpty(t, driver.HintOf(err))
		require.Less(t, sent, 3000)
		p.settleAccepted(sent - 1)
		_, err = a.WaitQueue(soon(t), q.Name, func(s brokertest.QueueStats) bool { return s.MessagesAdded >= int64(sent-1) })
		require.NoError(t, err)
		stats, err := a.Queue(soon(t), q.Name)
		require.NoError(t, err)
		require.Equal(t, int64(sent-1), stats.MessagesAdded, "the send that failed did not arrive")
	})
}

// rejected returns how many sends have been rejected so far.
func (p *testProducer) rejected() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.all {
		if o.State == driver.Rejected {
			n++
		}
	}
	return n
}

func TestConnectionsAreShared(t *testing.T) {
	a := sharedBroker.Artemis(t)
	r := newRig(t, a.AMQPURL())
	named := func(name string) int {
		list, err := a.Connections(soon(t))
		require.NoError(t, err)
		n := 0
		for _, c := range list {
			if c.ClientID == name {
				n++
			}
		}
		return n
	}
	shared := driver.Connection{Key: "s", Name: "perfmq-shared"}
	p1 := r.producer(driver.ProducerSpec{Destination: queue(t), Connection: shared, Name: "p1"})
	p2 := r.producer(driver.ProducerSpec{Destination: queue(t), Connection: shared, Name: "p2"})
	c := r.consumer(driver.ConsumerSpec{Destination: queue(t), Connection: shared})
	id := driver.Connection{Key: "i", Name: "unseen", ClientID: "perfmq-client-7"}
	p3 := r.producer(driver.ProducerSpec{Destination: queue(t), Connection: id, Name: "p3"})
	require.Equal(t, 1, named("perfmq-shared"))
	require.Equal(t, 1, named("perfmq-client-7"))
	require.Equal(t, 0, named("unseen"))
	p1.settle()
	c.close()
	p2.send("still open")
	p2.settleAccepted(1)
	p3.settle()
	require.Eventually(t, func() bool { return named("perfmq-shared")+named("perfmq-client-7") == 0 },
		patience, 50*time.Millisecond)
}
