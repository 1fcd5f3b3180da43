//go:build unix

package rocketmq

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// patience bounds each wait for something that must happen.
const patience = time.Minute

// outcomes are the ends of sends, by slot.
type outcomes struct {
	mu   sync.Mutex
	list []driver.Outcome
	seen map[driver.Slot]int
}

// DoneAll implements [driver.Completions].
func (o *outcomes) DoneAll(slots []driver.Slot, out driver.Outcome) {
	driver.DoneFunc(o.Done).DoneAll(slots, out)
}

// Done implements [driver.Completions].
func (o *outcomes) Done(s driver.Slot, out driver.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[driver.Slot]int{}
	}
	o.seen[s]++
	o.list = append(o.list, out)
}

func (o *outcomes) count(state driver.State, class driver.Class) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, out := range o.list {
		if out.State == state && out.Class == class {
			n++
		}
	}
	return n
}

func (o *outcomes) withheld() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, out := range o.list {
		if out.Withheld {
			n++
		}
	}
	return n
}

func (o *outcomes) total() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.list)
}

func producerSpec(dest driver.Destination, pending int) driver.ProducerSpec {
	return driver.ProducerSpec{
		Connection: driver.Connection{Key: "p", Name: "test-producer"}, Destination: dest, Name: "producer-1", MaxPending: pending,
		Variants: []driver.Variant{{Body: []byte("hello"), Priority: -1}},
	}
}

func consumerSpec(dest driver.Destination) driver.ConsumerSpec {
	return driver.ConsumerSpec{Connection: driver.Connection{Key: "c", Name: "test-consumer"}, Destination: dest, Name: "consumer-1"}
}

// send sends n messages, each with a slot of its own and its number as time, and closes the producer.
func send(t testing.TB, d driver.Driver, spec driver.ProducerSpec, n int) (*outcomes, driver.Producer) {
	t.Helper()
	o := &outcomes{}
	spec.MaxPending = n
	p := musttest.Get(d.Producer(t.Context(), spec, o))(t)
	now := time.Now().UnixMicro()
	for i := range n {
		require.NoError(t, p.Send(t.Context(), &driver.Message{Slot: driver.Slot(i), Time: now + int64(i)}))
	}
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, n, o.total())
	for slot, times := range o.seen {
		require.Equal(t, 1, times, "slot %d", slot)
	}
	return o, p
}

// got collects the deliveries of a consumer.
type got struct {
	mu     sync.Mutex
	times  []int64
	when   []time.Time
	again  int
	last   driver.Delivery
	cancel context.CancelFunc
	ended  chan error
	c      driver.Consumer
}

// receive opens a consumer and lets it run until stop or the test's end.
func receive(t testing.TB, d driver.Driver, spec driver.ConsumerSpec) *got {
	t.Helper()
	c := musttest.Get(d.Consumer(t.Context(), spec))(t)
	ctx, cancel := context.WithCancel(context.Background())
	g := &got{cancel: cancel, ended: make(chan error, 1), c: c}
	go func() { g.ended <- c.Run(ctx, g.deliver) }()
	t.Cleanup(func() { g.stop(t) })
	return g
}

func (g *got) deliver(d *driver.Delivery) driver.Verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.times, g.when, g.last = append(g.times, d.Time), append(g.when, time.Now()), *d
	if d.Redelivered {
		g.again++
	}
	return driver.Accept
}

func (g *got) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.times)
}

// wait waits for n messages, all different.
func (g *got) wait(t testing.TB, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return g.count() >= n }, patience, 5*time.Millisecond, "%d of %d messages came", g.count(), n)
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Len(t, g.times, n, "delivered again: %v", doubles(g.times))
	times := slices.Clone(g.times)
	slices.Sort(times)
	require.Len(t, slices.Compact(times), n)
}

func (g *got) stop(t testing.TB) {
	if g.c == nil {
		return
	}
	g.cancel()
	require.NoError(t, <-g.ended)
	require.NoError(t, g.c.Close(context.Background()))
	g.c = nil
}

func counter(t testing.TB, from any, name string) int {
	t.Helper()
	for _, c := range from.(driver.Counting).Counters() {
		if c.Name == name {
			return int(c.Value)
		}
	}
	require.Fail(t, "no counter "+name)
	return 0
}

// left lists topics and consumer groups of the broker with the text in their names, by the library's admin.
func left(t testing.TB, broker *brokertest.RocketMQ, text string) []string {
	t.Helper()
	a, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{broker.NameServer()})))
	require.NoError(t, err)
	topics := musttest.Get(a.FetchAllTopicList(t.Context()))(t)
	groups := musttest.Get(a.GetAllSubscriptionGroup(t.Context(), broker.Broker(), patience))(t)
	list := slices.Clone(topics.TopicList)
	for name := range groups.SubscriptionGroupTable {
		list = append(list, "group "+name)
	}
	require.NotEmpty(t, list)
	return slices.DeleteFunc(list, func(name string) bool { return !strings.Contains(name, text) })
}
