package gostomp

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	defaultCredit = 1000    // how many messages the broker may send ahead
	maxCredit     = 1 << 20 // the maximum of this number
)

// consumer is a [driver.Consumer].
type consumer struct {
	*transport.Lease[*connection]
	op      string
	spec    driver.ConsumerSpec
	sub     *stomp.Subscription
	inbox   chan *stomp.Message
	maxBody int
	loop    library.Receiver
	closed  bool
}

// Consumer implements [driver.Driver].
func (d *stompDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.Destination.String()
	lease, err := library.Join(ctx, &d.pool, spec.Connection,
		func(c *connection) error { return library.PlainNames().CheckConsumer(op, &c.factory, &spec) })
	if err != nil {
		return nil, err
	}
	spec.Credit = cmp.Or(min(max(spec.Credit, 0), maxCredit), defaultCredit)
	c := &consumer{
		Lease: lease, op: "receive from " + spec.Destination.String(), spec: spec, maxBody: d.cfg.MaxBody,
		inbox: make(chan *stomp.Message, spec.Credit),
	}
	c.loop.Over, c.loop.Why = lease.Conn.net.Ended, c.gone
	began := time.Now()
	if err := c.subscribe(ctx); err != nil {
		lease.Release(ctx)
		if e := lease.Conn.said(op, err); e != nil {
			return nil, e
		}
		return nil, driver.Errorf(driver.ClassOf(err), op, transport.HintLog, "%w", err)
	}
	spec.Connection.Stages.Ended(driver.StageAttach, began)
	return c, nil
}

// subscribe asks the broker for an answer other than a receipt, because the library takes a receipt for the end of a
// subscription.
func (c *consumer) subscribe(ctx context.Context) error {
	headers := append(c.Conn.kind("subscription-type", c.spec.Destination.Kind), c.Conn.credit,
		strconv.Itoa((c.spec.Credit-1)*c.Conn.size+1))
	if c.spec.Selector != "" {
		headers = append(headers, "selector", c.spec.Selector)
	}
	err := library.Call(ctx, func() (err error) {
		c.sub, err = c.Conn.stomp.Subscribe(c.Conn.address(c.spec.Destination), stomp.AckClientIndividual,
			func(f *frame.Frame) error { add(f, headers); return nil })
		if err == nil {
			go c.pump()
			err = c.ask()
		}
		return err
	})
	if err != nil && ctx.Err() != nil {
		_ = c.Conn.net.Close() // the call ends, too
	}
	return err
}

// ask waits for an answer of the broker to an empty transaction.
func (c *consumer) ask() error {
	tx, err := c.Conn.stomp.BeginWithError()
	if err == nil {
		err = tx.AbortWithReceipt()
	}
	return err
}

// Probe implements [driver.Prober].
func (c *consumer) Probe(ctx context.Context) error {
	err := library.Call(ctx, c.ask)
	if err != nil && ctx.Err() == nil {
		return lost(c.op, err)
	}
	return err
}

// pump takes messages from the library, which blocks its whole connection if no goroutine does. The inbox has room for
// as many as the broker sends ahead.
func (c *consumer) pump() {
	defer close(c.inbox)
	for m := range c.sub.C {
		c.inbox <- m
	}
}

// Host implements [driver.Located].
func (c *consumer) Host() string { return c.Conn.host }

// Run implements [driver.Consumer]. When the connection has ended, it waits for the library to report why. The library
// may never do so: it stops at the first goroutine that does not listen.
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	return c.loop.Run(ctx, func(ctx context.Context) error {
		var m *stomp.Message
		select {
		case m = <-c.inbox:
		case <-c.Conn.net.Overdue:
			if len(c.inbox) == 0 {
				return c.gone()
			}
			return nil // the reason may be in the inbox, behind messages
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case m == nil:
			return lost(c.op, errors.New("the subscription has ended"))
		case m.Err != nil:
			return c.Conn.explain(c.op, m.Err)
		case c.Conn.net.HasEnded(): // it belongs to the broker again, and the library may wait ten seconds to acknowledge it
			return nil
		case len(m.Body) > c.maxBody:
			return library.TooLarge(c.op, len(m.Body), c.maxBody)
		}
		deliver(delivery(m))
		// An error means that the connection has ended, which the subscription also reports.
		c.loop.Settle(func() { _ = c.Conn.stomp.Ack(m) })
		return nil
	}, func() { _ = c.Conn.net.Close() })
}

// gone is the error if the library does not report a reason. An acknowledgement may hang in the library for half a
// minute: it waits for a send that waits for the answer of a broker that has gone.
func (c *consumer) gone() error { return lost(c.op, errEnded()) }

// delivery returns the parts of a message that perfmq reads.
func delivery(m *stomp.Message) *driver.Delivery {
	d := &driver.Delivery{Body: m.Body, Redelivered: m.Header.Get("redelivered") == "true"}
	library.ReadText(d, m.Header.Get(driver.TimeProperty), m.Header.Get(driver.IDProperty))
	return d
}

// Close implements [driver.Consumer]. Messages in the inbox go back to the broker.
func (c *consumer) Close(ctx context.Context) error {
	if c.closed {
		return nil
	}
	c.closed = true
	var err error
	c.Leave(ctx, c.spec.Connection.Stages, func(ctx context.Context) { err = c.leave(ctx) })
	return err
}

// leave ends the subscription and releases the connection.
func (c *consumer) leave(ctx context.Context) error {
	defer c.Release(ctx)
	go func() { _ = c.sub.Unsubscribe() }()
	for {
		select {
		case m := <-c.inbox:
			if m == nil {
				return nil
			}
		case <-ctx.Done():
			_ = c.Conn.net.Close()
			return ctx.Err()
		}
	}
}
