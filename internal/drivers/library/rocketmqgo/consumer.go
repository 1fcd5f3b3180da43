package rocketmqgo

import (
	"context"
	"slices"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	libconsumer "github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	native "github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	joinGrace = 3 * time.Second // how long the members of a group may take to rebalance its queues
	noteGrace = time.Second     // how long the library may take to record the last accepted messages
)

// consumer is a [driver.Consumer].
type consumer struct {
	driver  *rocketDriver
	op      string
	spec    driver.ConsumerSpec
	group   string
	library interface {
		rocketmq.PushConsumer
		PersistConsumerOffset() error
		Rebalance()
	}
	topic   *native.Topic
	queues  func() map[primitive.MessageQueue]standing // the queues assigned to this consumer
	loop    library.Receiver
	inbox   chan *handover
	dropped chan struct{} // closed when the library ignores our answers
	closed  bool

	mu       sync.Mutex
	waiting  map[place]bool                   // messages taken from the library and not accepted yet
	accepted map[primitive.MessageQueue]int64 // the offset after the last accepted message
}

// standing is the library's progress in a queue.
type standing struct {
	offset int64 // the consumed offset
	pulled int64 // time of its last pull: milliseconds since the Unix epoch
	// dropped: the library gives the queue up, because the broker does not know the offset, and takes it again later
	dropped bool
}

// place is the position of a message in the broker.
type place struct {
	queue  primitive.MessageQueue
	offset int64
}

func placeOf(m *primitive.MessageExt) place { return place{*m.Queue, m.QueueOffset} }

// handover is a message passed from a goroutine of the library to Run, and its answer.
type handover struct {
	message *primitive.MessageExt
	settled chan struct{}
}

// Consumer implements [driver.Driver].
func (d *rocketDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op, dest := "open a consumer on "+spec.Destination.String(), spec.Destination
	if err := rules().CheckConsumer(op, &d.factory, &spec); err != nil {
		return nil, err
	}
	topic, err := d.topics.Topic(ctx, dest.Name)
	if err != nil {
		return nil, err
	}
	c := &consumer{
		driver: d, op: "receive from " + dest.String(), spec: spec, group: "perfmq-queue-" + dest.Name,
		topic: topic, inbox: make(chan *handover), dropped: make(chan struct{}),
		waiting: map[place]bool{}, accepted: map[primitive.MessageQueue]int64{},
	}
	p, err := libconsumer.NewPushConsumer(libconsumer.WithConsumeFromWhere(libconsumer.ConsumeFromFirstOffset),
		libconsumer.WithNameServer(primitive.NamesrvAddr{topic.NameServer}), libconsumer.WithGroupName(c.group),
		libconsumer.WithInstance(instance(&spec.Connection)), libconsumer.WithConsumeGoroutineNums(1))
	if err == nil {
		err = p.Subscribe(dest.Name, libconsumer.MessageSelector{}, c.take)
	}
	if err != nil {
		return nil, driver.Errorf(driver.ClassOther, op, hintNative, "%w", err)
	}
	c.library, c.queues = p, func() map[primitive.MessageQueue]standing {
		m := map[primitive.MessageQueue]standing{}
		for queue, info := range p.GetConsumerRunningInfo(false).MQTable {
			if queue.Topic == dest.Name {
				m[queue] = standing{info.CommitOffset, info.LastPullTimestamp, info.Dropped}
			}
		}
		return m
	}
	if err = library.Call(ctx, p.Start); err == nil {
		err = c.join(ctx)
	}
	if err != nil {
		go func() { _ = c.Close(context.WithoutCancel(ctx)) }()
		return nil, driver.Errorf(driver.ClassTimeout, op, transport.HintLog,
			"the broker did not let the consumer begin: %w", err)
	}
	return c, nil
}

// join waits until the queues are assigned evenly to the consumers, as far as these are known here. Otherwise the first
// messages would come twice.
func (c *consumer) join(ctx context.Context) error {
	d, queues := c.driver, len(c.topic.Queues)
	d.mu.Lock()
	d.groups[c.group] = append(d.groups[c.group], c)
	d.mu.Unlock()
	members := c.members()
	least, most := queues/len(members), (queues+len(members)-1)/len(members)
	for begin := time.Now(); time.Since(begin) < joinGrace; {
		owned, even := map[primitive.MessageQueue]bool{}, true
		for _, m := range members {
			share := m.queues()
			even = even && len(share) >= least && len(share) <= most
			for queue := range share {
				even = even && !owned[queue]
				owned[queue] = true
			}
		}
		if even && len(owned) >= queues {
			break
		}
		if err := library.Sleep(ctx, look); err != nil {
			return err
		}
	}
	return nil
}

// members returns the consumers, as far as known here, that share the queues.
func (c *consumer) members() []*consumer {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	return slices.Clone(c.driver.groups[c.group])
}

// take receives one message from the library. It waits until Run takes it, or the queue has gone.
func (c *consumer) take(_ context.Context, list ...*primitive.MessageExt) (libconsumer.ConsumeResult, error) {
	h := &handover{list[0], make(chan struct{})}
	c.mu.Lock()
	c.waiting[placeOf(h.message)] = true
	c.mu.Unlock()
	select {
	case c.inbox <- h:
		select {
		case <-h.settled:
		case <-c.dropped:
		}
	case <-c.dropped: // then the library ignores later messages
	}
	return libconsumer.ConsumeSuccess, nil
}

// Run implements [driver.Consumer].
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	return c.loop.Run(ctx, func(ctx context.Context) error {
		select {
		case h := <-c.inbox:
			if n := len(h.message.Body); n > c.driver.cfg.MaxBody {
				return library.TooLarge(c.op, n, c.driver.cfg.MaxBody)
			}
			m := h.message
			d := &driver.Delivery{Body: m.Body, Born: 1000 * m.BornTimestamp, Stored: 1000 * m.StoreTimestamp}
			library.ReadText(d, m.GetProperty(driver.TimeProperty), m.GetProperty(driver.IDProperty))
			deliver(d)
			c.accept(m)
			close(h.settled)
		case <-ctx.Done():
		}
		return nil
	}, func() {})
}

// accept records an accepted message.
func (c *consumer) accept(m *primitive.MessageExt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, placeOf(m))
	c.accepted[*m.Queue] = max(c.accepted[*m.Queue], m.QueueOffset+1)
}

// noted reports whether the library has recorded all accepted messages: in each queue its offset is after them, or at a
// message that still waits. On a busy machine, one of its goroutines may record a message long after later ones were
// recorded.
func (c *consumer) noted() bool {
	queues := c.queues() // may ask the broker
	c.mu.Lock()
	defer c.mu.Unlock()
	for queue, end := range c.accepted {
		at, ok := queues[queue] // below 0: no offset is recorded
		if ok && at.offset < end && !c.waiting[place{queue, at.offset}] {
			return false
		}
	}
	return true
}

// Close implements [driver.Consumer].
func (c *consumer) Close(ctx context.Context) error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.driver.mu.Lock()
	c.driver.groups[c.group] = slices.DeleteFunc(c.driver.groups[c.group], func(m *consumer) bool { return m == c })
	c.driver.mu.Unlock()
	err := library.Call(ctx, c.leave)
	// otherwise it waits for a connection that does not move
	shutting, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteGrace)
	defer cancel()
	if err == nil {
		close(c.dropped)
	} else {
		defer close(c.dropped) // Shutdown drops the queues first
	}
	_ = library.Call(shutting, c.library.Shutdown)
	return err
}

// leave gives the queues back. A shutdown with queues can crash the process: the library closes channels that are
// written to.
func (c *consumer) leave() error {
	for begin := time.Now(); !c.noted() && time.Since(begin) < noteGrace; {
		<-time.After(look)
	}
	_ = c.library.PersistConsumerOffset()
	c.library.Rebalance() // asks the broker, and the answer proves that it has read the earlier data
	err := c.library.Unsubscribe(c.spec.Destination.Name)
	c.library.Rebalance()
	return err
}

const (
	probeEvery = 100 * time.Millisecond // interval of checks for a new pull of the library
	probePause = time.Second            // pause after a failed probe
)

// Probe implements [driver.Prober]. The library does not report a lost connection, and waits half a minute for the
// answer to a pull that was lost with it. So the broker's answer is not enough: after it, the library must pull each
// queue again. While connected it does so at least every twenty seconds, because brokers hold a pull without messages
// that long. A queue of a consumer in another process cannot be checked, and counts as not pulled.
func (c *consumer) Probe(ctx context.Context) error {
	err := c.topic.Ask(ctx)
	for since := time.Now().UnixMilli(); err == nil; {
		var pulled bool
		if pulled, err = c.pulledSince(ctx, since); pulled || err != nil {
			break
		}
		err = library.Sleep(ctx, probeEvery)
	}
	if err == nil { // otherwise the pulls found no broker
		err = c.topic.Ask(ctx)
	}
	if err != nil {
		_ = library.Sleep(ctx, probePause)
		return driver.Errorf(driver.ClassTimeout, c.op, "", "no answer: %w", err)
	}
	return nil
}

// pulledSince reports whether all queues were pulled after that time in milliseconds since the Unix epoch.
func (c *consumer) pulledSince(ctx context.Context, since int64) (bool, error) {
	asked := map[primitive.MessageQueue]bool{}
	for _, m := range c.members() {
		queues, err := library.Bounded(ctx, func() (map[primitive.MessageQueue]standing, error) { return m.queues(), nil })
		if err != nil {
			return false, err
		}
		for queue, at := range queues {
			asked[queue] = asked[queue] || at.pulled > since && !at.dropped
		}
	}
	for _, q := range c.topic.Queues {
		if !asked[primitive.MessageQueue{Topic: c.spec.Destination.Name, BrokerName: q.Broker, QueueId: q.Number}] {
			return false, nil
		}
	}
	return true, nil
}
