// Package rocketmq5go is RocketMQ 5's proxy on RocketMQ's own client library
// github.com/apache/rocketmq-clients/golang/v5, used as an application uses it: a call of Send for each message, and a
// simple consumer that acknowledges each one.
//
// A queue is a topic with one consumer group, as for our own driver. The proxy creates no topics and no groups.
//
// The library sends a message up to three times by itself, as the proxy tells it to, and perhaps stores it twice. It
// reconnects, and reports no lost connection. GracefulStop leaves the connection and its goroutines behind. Ack returns
// no error for a message that the proxy no longer gives us. A consumer whose group does not exist waits for ever. There
// is no way to have it check a certificate: so there is no TLS.
package rocketmq5go

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/perfmq/perfmq/internal/drivers/library/elsewhere"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Factory describes the protocol and opens drivers for it. The first driver sets what is global to the process: no TLS,
// and a log of errors in the temporary folder, as the library always writes one.
func Factory() driver.Factory {
	quiet := sync.OnceFunc(func() {
		rmq.EnableSsl = false
		_ = os.Setenv(rmq.CLIENT_LOG_ROOT, filepath.Join(os.TempDir(), "perfmq-rocketmq-clients"))
		_ = os.Setenv(rmq.CLIENT_LOG_LEVEL, "error")
		rmq.ResetLogger()
	})
	return elsewhere.RocketMQ5(func(s transport.Settings[elsewhere.RocketMQ5Options]) driver.Driver {
		quiet()
		return &clients{factory: elsewhere.RocketMQ5(nil), cfg: s}
	})
}

// clients is a [driver.Driver]. Each producer and consumer is a client of the library, with a connection of its own.
type clients struct {
	factory driver.Factory
	cfg     transport.Settings[elsewhere.RocketMQ5Options]
}

// Close implements [driver.Driver].
func (*clients) Close(context.Context) error { return nil }

func (d *clients) config(group string) *rmq.Config {
	t := &d.cfg.Target
	var hosts []string
	for _, h := range t.Hosts {
		hosts = append(hosts, h.String())
	}
	return &rmq.Config{
		Endpoint: strings.Join(hosts, ";"), ConsumerGroup: group,
		Credentials: &credentials.SessionCredentials{AccessKey: t.User, AccessSecret: t.Password},
	}
}

// rules are those of brokers for topics, shortened so that the names of groups derived from them are legal.
func rules() library.Rules { return library.Rules{Signs: "-_", Most: 100} }

// producer is a [driver.Producer].
type producer struct {
	library rmq.Producer
	spec    driver.ProducerSpec
	kinds   []map[string]string // properties by variant
	op      string
	sends   *library.Sends
}

// Producer implements [driver.Driver].
func (d *clients) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op, dest := "open a producer on "+spec.Destination.String(), spec.Destination
	if err := rules().CheckProducer(op, &d.factory, &spec); err != nil {
		return nil, err
	}
	p := &producer{spec: spec, op: "send to " + dest.String()}
	p.sends = library.NewSends(p.op, done)
	for i := range spec.Variants {
		p.kinds = append(p.kinds, library.Properties(&spec, &spec.Variants[i]))
	}
	var err error
	// The proxy's settings take the place of ours: it has the library send a message up to three times.
	p.library, err = rmq.NewProducer(d.config(""), rmq.WithTopics(dest.Name), rmq.WithMaxAttempts(1))
	if err == nil {
		err = library.Call(ctx, p.library.Start)
	}
	if err != nil {
		return nil, opening(op, err)
	}
	return p, nil
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	variant := &p.spec.Variants[m.Variant]
	msg := &rmq.Message{Topic: p.spec.Destination.Name, Body: variant.Body}
	if m.Body != nil {
		msg.Body = append([]byte{}, m.Body...)
	}
	maps.Copy(msg.GetProperties(), library.OfMessage(p.kinds[m.Variant], variant, m))
	if p.spec.Delay > 0 {
		msg.SetDelayTimestamp(time.Now().Add(p.spec.Delay))
	}
	return p.sends.Do(ctx, m.Slot, func(h *library.Handover) {
		h.Sent()
		_, err := p.library.Send(p.sends.Answers, msg)
		h.End(p.outcome(err))
	})
}

// outcome returns the outcome of a message.
func (p *producer) outcome(err error) driver.Outcome {
	if err == nil {
		return driver.Outcome{}
	}
	state, class, hint := driver.Failed, driver.ClassOther, "" // errors of the library: it has not sent the message
	var refused *rmq.ErrRpcStatus
	switch {
	case errors.As(err, &refused):
		state = driver.Rejected
		switch v2.Code(refused.Code) {
		case v2.Code_MASTER_PERSISTENCE_TIMEOUT, v2.Code_SLAVE_PERSISTENCE_TIMEOUT, v2.Code_PROXY_TIMEOUT,
			v2.Code_HA_NOT_AVAILABLE:
			state, class = driver.Unknown, driver.ClassTimeout
		default:
			class, hint = code(refused)
		}
	case p.sends.Answers.Err() != nil, status.Code(err) == codes.DeadlineExceeded:
		state, class, hint = driver.Unknown, driver.ClassTimeout, "is the proxy overloaded or down?"
	case status.Code(err) != codes.Unknown:
		state, class, hint = driver.Unknown, driver.ClassConnectionLost, transport.HintAlive
	}
	return driver.Outcome{State: state, Class: class, Err: &driver.Error{Class: class, Op: p.op, Hint: hint, Err: err}}
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	shut := func() { _ = p.library.GracefulStop() }
	if p.sends.Close(ctx, func() {}, shut) {
		_ = library.Call(ctx, func() error { shut(); return nil })
	}
	return nil
}

// code returns the class of a refusal, and a hint.
func code(refused *rmq.ErrRpcStatus) (driver.Class, string) {
	switch v2.Code(refused.Code) {
	case v2.Code_TOPIC_NOT_FOUND, v2.Code_CONSUMER_GROUP_NOT_FOUND:
		return driver.ClassNotFound, "the proxy creates no topics: mqadmin updateTopic"
	case v2.Code_UNAUTHORIZED, v2.Code_FORBIDDEN:
		return driver.ClassAuth, "check user and password"
	case v2.Code_MESSAGE_BODY_TOO_LARGE, v2.Code_PAYLOAD_TOO_LARGE:
		return driver.ClassTooLarge, ""
	case v2.Code_TOO_MANY_REQUESTS:
		return driver.ClassFull, ""
	default:
		return driver.ClassOther, ""
	}
}

// opening returns the error about a client that did not start.
func opening(op string, err error) error {
	class, hint := driver.ClassConnect, "is the proxy running?"
	var refused *rmq.ErrRpcStatus
	if errors.As(err, &refused) {
		class, hint = code(refused)
	}
	return &driver.Error{Class: class, Op: op, Hint: hint, Err: err}
}

// consumer is a [driver.Consumer].
type consumer struct {
	library rmq.SimpleConsumer
	cfg     *transport.Settings[elsewhere.RocketMQ5Options]
	op      string
	loop    library.Receiver
	acks    chan struct{} // one for each call of Ack that runs
	closed  bool
}

const (
	// await is the time for which the proxy holds a request for messages.
	await = 5 * time.Second
	// acksAtOnce are the calls of Ack at a time: each waits for its answer.
	acksAtOnce = 64
)

// Consumer implements [driver.Driver].
func (d *clients) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op, dest := "open a consumer on "+spec.Destination.String(), spec.Destination
	if err := rules().CheckConsumer(op, &d.factory, &spec); err != nil {
		return nil, err
	}
	group := d.cfg.Options.Group
	if group == "" {
		group = "perfmq-queue-" + dest.Name
	}
	c := &consumer{cfg: &d.cfg, op: "receive from " + dest.String(), acks: make(chan struct{}, acksAtOnce)}
	var err error
	c.library, err = rmq.NewSimpleConsumer(d.config(group), rmq.WithSimpleAwaitDuration(await),
		rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{dest.Name: rmq.SUB_ALL}))
	if err == nil {
		err = library.Call(ctx, c.library.Start)
	}
	switch {
	case err != nil && ctx.Err() != nil: // the proxy has not sent the settings of the group
		hint := "does the group " + group + " exist? The proxy creates none: mqadmin updateSubGroup"
		return nil, driver.Errorf(driver.ClassTimeout, op, hint, "%w", err)
	case err != nil:
		return nil, opening(op, err)
	}
	return c, nil
}

// Run implements [driver.Consumer].
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	err := c.loop.Run(ctx, func(ctx context.Context) error {
		list, err := c.library.Receive(ctx, int32(c.cfg.Options.PullBatch), c.cfg.Options.Invisible)
		var refused *rmq.ErrRpcStatus
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // messages of a request that was given up come again when they are visible again
		case errors.As(err, &refused) && v2.Code(refused.Code) == v2.Code_MESSAGE_NOT_FOUND:
			return nil
		case errors.As(err, &refused) && v2.Code(refused.Code) != v2.Code_TOO_MANY_REQUESTS:
			class, hint := code(refused)
			return &driver.Error{Class: driver.ClassClosedByBroker.LossBy(class), Op: c.op, Hint: hint, Err: err}
		case err != nil: // the library connects again
			return library.Sleep(ctx, 100*time.Millisecond)
		}
		for _, m := range list {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // Run ends
			}
			if n := len(m.GetBody()); n > c.cfg.MaxBody {
				return library.TooLarge(c.op, n, c.cfg.MaxBody)
			}
			d := &driver.Delivery{Body: m.GetBody(), Redelivered: m.GetDeliveryAttempt() > 1}
			if born := m.GetBornTimestamp(); born != nil {
				d.Born = born.UnixMicro()
			}
			library.ReadText(d, m.GetProperties()[driver.TimeProperty], m.GetProperties()[driver.IDProperty])
			deliver(d)
			c.acks <- struct{}{}
			go func() { // the library's Ack waits for an answer, and does not return a refusal
				_ = c.library.Ack(context.WithoutCancel(ctx), m)
				<-c.acks
			}()
		}
		return nil
	}, func() {})
	for range acksAtOnce { // until all have ended: each ends by the library's time limit of 3 s
		c.acks <- struct{}{}
	}
	return err
}

// Close implements [driver.Consumer].
func (c *consumer) Close(ctx context.Context) error {
	if c.closed {
		return nil
	}
	c.closed = true
	return library.Call(ctx, c.library.GracefulStop)
}
