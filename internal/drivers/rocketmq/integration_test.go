//go:build unix

package rocketmq

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestFilterByTag(t *testing.T) {
	url := shared.get(t).URL()
	dest := queueNamed(unique("tags"))
	spec := consumerSpec(dest)
	spec.Selector = "tag:A || B"
	in := receive(t, openDriver(t, url), spec)
	for _, tag := range []string{"A", "C", "B", "AaAa", "BBBB"} {
		send(t, openDriver(t, url, "tag="+tag), producerSpec(dest, 0), 5)
	}
	in.wait(t, 10)
	// AaAa and BBBB have the same hash. The broker compares only hashes.
	spec.Selector = "tag:AaAa"
	in = receive(t, openDriver(t, url), spec)
	in.wait(t, 5)
	require.Eventually(t, func() bool { return counter(t, in.c, "filtered") == 5 }, patience, 5*time.Millisecond)

	spec.Selector = "color ="
	_, err := openDriver(t, url).Consumer(t.Context(), spec)
	require.Error(t, err)
	require.NotEmpty(t, driver.HintOf(err))
}

func TestGroupsShareAndNewMembersTakeOver(t *testing.T) {
	broker := shared.get(t)
	dest := queueNamed(unique("share"))
	d := openDriver(t, broker.URL())
	first := receive(t, d, consumerSpec(dest))
	o := &outcomes{}
	p := musttest.Get(d.Producer(t.Context(), producerSpec(dest, 4000), o))(t)
	var others []*got
	for i := range 4000 {
		require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: driver.Slot(i), Time: int64(i + 1)}))
		if i%1000 == 500 { // while messages flow
			others = append(others, receive(t, openDriver(t, broker.URL()), consumerSpec(dest)))
		}
		if i == 3200 {
			others[0].stop(t)
		}
	}
	require.NoError(t, p.Close(t.Context()))
	seen := map[int64]int{}
	require.Eventually(t, func() bool {
		n := first.count()
		for _, g := range others {
			n += g.count()
		}
		return n >= 4000
	}, patience, 10*time.Millisecond)
	for _, g := range append(others, first) {
		g.mu.Lock()
		for _, stamp := range g.times {
			seen[stamp]++
		}
		g.mu.Unlock()
	}
	require.Len(t, seen, 4000)
	for stamp, n := range seen {
		require.Equal(t, 1, n, "message %d", stamp)
	}
}

// TestNothingIsLeftBehind: a broker looks at a pull that it holds once more, seconds after its client has gone, and by
// that would create the group again.
func TestNothingIsLeftBehind(t *testing.T) {
	broker := shared.get(t)
	left(t, broker, "") // whatever goroutines the library needs for that
	before := goleak.IgnoreCurrent()
	name := unique("gone")
	path := brokertest.NewRocketMQPath(t, broker.NameServer(), broker.Broker())
	open := func(url string) driver.Driver {
		d, err := Factory().Open(t.Context(), driver.OpenOptions{
			URL: url, ConnectTimeout: patience,
			Options: defaultOptions(),
		})
		require.NoError(t, err)
		return d
	}
	d := open(broker.URL())
	specs := map[string]driver.ConsumerSpec{"topic": consumerSpec(topicNamed(name))}
	spec := consumerSpec(topicNamed(name))
	spec.Selector = "tag:none"
	specs["filtered"] = spec
	spec = consumerSpec(topicNamed(name))
	spec.Durable, spec.Subscription, spec.Connection.ClientID = true, "durable", "me"
	specs["durable"] = spec
	spec.Subscription, spec.Connection.ClientID = "durable-2", "me" // with --reconnect, another connection removes it
	spec.KeepSubscription = true
	specs["again"] = spec
	spec = consumerSpec(topicNamed(name))
	spec.Shared, spec.Subscription = true, "shared"
	specs["shared 1"], specs["shared 2"] = spec, spec
	consumers := map[string]*got{}
	for kind, spec := range specs {
		consumers[kind] = receive(t, d, spec)
	}
	send(t, d, producerSpec(queueNamed(name), 0), 10)
	for _, kind := range []string{"topic", "durable", "again"} {
		consumers[kind].wait(t, 10)
	}
	cut := open(path.URL())
	lost := musttest.Get(cut.Consumer(t.Context(), consumerSpec(topicNamed(name))))(t)
	running := make(chan error, 1)
	go func() {
		running <- lost.Run(context.Background(), func(*driver.Delivery) driver.Verdict { return driver.Accept })
	}()
	require.Eventually(t, func() bool {
		c := lost.(*consumer)
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.asked > 0
	}, patience, time.Millisecond)
	path.Cut()
	require.Error(t, <-running)
	path.Restore()
	require.NoError(t, lost.Close(t.Context()))
	require.NoError(t, cut.Close(t.Context()))
	var closing sync.WaitGroup
	for _, g := range consumers {
		closing.Go(func() { g.stop(t) })
	}
	closing.Wait()
	spec = specs["again"]
	spec.KeepSubscription = false
	last := musttest.Get(d.Consumer(t.Context(), spec))(t)
	require.NoError(t, last.Close(t.Context()))
	require.NoError(t, d.Close(t.Context()))
	path.Cut()
	require.NoError(t, leaktest.Find(before))
	<-time.After(holdTime + 4*lookTime) // the broker's own time
	require.NoError(t, broker.DeleteTopic(t.Context(), name))
	require.Empty(t, left(t, broker, name))
}

func TestLogin(t *testing.T) {
	broker := brokertest.StartRocketMQ(t, brokertest.WithRocketMQLogin())
	login := broker.URL() + " " + brokertest.RocketMQUser + " "
	for _, options := range [][]string{{"send=async"}, {"send=batch"}, {"transactional=true", "unknown-percent=20"}} {
		d := openDriver(t, login+brokertest.RocketMQPassword, options...)
		dest := queueNamed(unique("acl"))
		in := receive(t, d, consumerSpec(dest))
		o, _ := send(t, d, producerSpec(dest, 0), 20)
		require.Equal(t, 20, o.count(driver.Accepted, driver.ClassNone), "%v", o.list)
		in.wait(t, 20)
		in.stop(t)
	}
	for _, url := range []string{login + "wrong", broker.URL()} {
		_, err := openDriver(t, url).Producer(t.Context(), producerSpec(queueNamed(unique("acl")), 1), nil)
		require.Equal(t, driver.ClassAuth, driver.ClassOf(err), "%v", err)
		require.NotEmpty(t, driver.HintOf(err))
	}
}

func TestTLS(t *testing.T) {
	broker := shared.get(t) // speaks both on one port, with a certificate of its own making
	f := Factory()
	open := func(tls driver.TLS) driver.Driver {
		url := strings.Replace(broker.URL(), "rocketmq:", "rocketmq+ssl:", 1)
		d, err := f.Open(t.Context(), driver.OpenOptions{URL: url, TLS: tls, ConnectTimeout: patience, Options: f.NewOptions()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
		return d
	}
	d := open(driver.TLS{InsecureSkipVerify: true})
	dest := queueNamed(unique("tls"))
	in := receive(t, d, consumerSpec(dest))
	send(t, d, producerSpec(dest, 0), 10)
	in.wait(t, 10)
	_, err := open(driver.TLS{}).Producer(t.Context(), producerSpec(dest, 1), nil)
	require.Equal(t, driver.ClassTLS, driver.ClassOf(err), "%v", err)
}

// TestForgottenSubscription: a broker may forget a member of a group when an older connection of it ends. The member
// registers again, messages continue to come, and none comes twice. (Here the client itself unregisters: the broker
// answers the next pull with code 24 or 25.)
func TestForgottenSubscription(t *testing.T) {
	url := shared.get(t).URL()
	dest := topicNamed("forgotten")
	d := openDriver(t, url, "queues=2")
	g := receive(t, d, consumerSpec(dest))
	send(t, openDriver(t, url), producerSpec(dest, 0), 10)
	g.wait(t, 10)
	c := g.c.(*consumer)
	for _, conn := range c.conns {
		require.NoError(t, c.client.unregister(t.Context(), conn, "consumerGroup", c.group))
	}
	send(t, openDriver(t, url), producerSpec(dest, 0), 10)
	g.wait(t, 20)
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Len(t, g.times, 20)
}
