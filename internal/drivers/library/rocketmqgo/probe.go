package rocketmqgo

import (
	"context"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/perfmq/perfmq/internal/drivers/library"
	"github.com/perfmq/perfmq/pkg/driver"
)

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
