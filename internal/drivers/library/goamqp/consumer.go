package goamqp

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
)

const (
	defaultCredit  = 1000     // the library's default of 1 gives a tenth of the rate
	propertiesSize = 64 << 10 // largest size of a message without its body
)

// consumer is a [driver.Consumer].
type consumer struct {
	party
	link *amqp.Receiver
	loop library.Receiver
	spec driver.ConsumerSpec

	maxBody int // the largest body to accept
}

// Consumer implements [driver.Driver].
func (d *amqpDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.Destination.String()
	joined, err := d.join(ctx, spec.Connection, spec.Destination, op, func(f *driver.Factory) error {
		return library.PlainNames().CheckConsumer(op, f, &spec)
	})
	if err != nil {
		return nil, err
	}
	c := &consumer{party: joined, spec: spec, maxBody: d.cfg.MaxBody}
	c.link, err = c.session.NewReceiver(ctx, c.address, c.options(d))
	if err == nil && spec.Selector != "" && c.link.LinkSourceFilterValue("apache.org:selector-filter:string") == nil {
		err = protocol.IgnoredSelector(op)
	}
	if err != nil {
		c.leave(ctx)
		return nil, explain(op, err)
	}
	c.op = "receive from " + spec.Destination.String()
	c.stages.Ended(driver.StageAttach, c.began)
	return c, nil
}

func (c *consumer) options(d *amqpDriver) *amqp.ReceiverOptions {
	o := &amqp.ReceiverOptions{
		Credit:             int32(cmp.Or(min(max(c.spec.Credit, 0), 1<<30), defaultCredit)), //nolint:gosec // in range
		SourceCapabilities: []string{c.spec.Destination.Kind.String()},
		MaxMessageSize:     uint64(d.cfg.MaxBody) + propertiesSize, //nolint:gosec // above zero
	}
	if c.spec.Selector != "" {
		o.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter(c.spec.Selector)}
	}
	if c.spec.Destination.Kind == driver.Topic {
		o.SourceExpiryPolicy = amqp.ExpiryPolicyLinkDetach
	}
	return o
}

// Run implements [driver.Consumer].
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	err := c.loop.Run(ctx, func(ctx context.Context) error {
		m, err := c.link.Receive(ctx, nil)
		if err != nil {
			return err
		}
		d := delivery(m)
		if len(d.Body) > c.maxBody {
			return library.TooLarge(c.op, len(d.Body), c.maxBody)
		}
		verdict := deliver(d)
		c.loop.Settle(func() { c.settle(m, verdict) })
		return nil
	}, func() { _ = c.Conn.net.Close() })
	if err != nil {
		return explain(c.op, err)
	}
	return nil
}

// Probe implements [driver.Prober]: it begins a session, which brokers answer, and ends it.
func (c *consumer) Probe(ctx context.Context) error {
	s, err := c.Conn.begin(ctx)
	if err == nil {
		err = s.Close(ctx)
	}
	if err != nil {
		return explain(c.op, err)
	}
	return nil
}

// settle ignores errors: they mean that the link has ended, which receiving also reports.
func (c *consumer) settle(m *amqp.Message, verdict driver.Verdict) {
	ctx := context.Background() // the library ignores it
	switch verdict {
	case driver.Reject:
		_ = c.link.RejectMessage(ctx, m, nil)
	case driver.Release:
		_ = c.link.ReleaseMessage(ctx, m)
	default:
		_ = c.link.AcceptMessage(ctx, m)
	}
}

// delivery returns the parts of a message that perfmq reads.
func delivery(m *amqp.Message) *driver.Delivery {
	d := &driver.Delivery{Body: bytes.Join(m.Data, nil), Redelivered: m.Header != nil && m.Header.DeliveryCount > 0}
	if m.Value != nil {
		d.Body = fmt.Append(nil, m.Value)
	}
	d.Time, d.HasTime = m.ApplicationProperties[driver.TimeProperty].(int64)
	d.ID = library.ID(m.ApplicationProperties[driver.IDProperty])
	return d
}

// Close implements [driver.Consumer].
func (c *consumer) Close(ctx context.Context) error {
	if c.closed {
		return nil
	}
	c.Leave(ctx, c.stages, func(ctx context.Context) {
		if !c.Conn.Dead() {
			_ = c.link.Close(ctx)
		}
		c.leave(ctx)
	})
	return nil
}
