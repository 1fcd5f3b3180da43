package rocketmqgo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	liberrors "github.com/apache/rocketmq-client-go/v2/errors"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	libproducer "github.com/apache/rocketmq-client-go/v2/producer"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// pause is the duration of a send without a broker, so that further ones do not use up the processor.
const pause = 100 * time.Millisecond

// producer is a [driver.Producer].
type producer struct {
	library   rocketmq.Producer
	op, topic string
	spec      driver.ProducerSpec
	kinds     []map[string]string // properties by variant
	sends     *library.Sends
}

// selector sends all messages of a group to one queue, and the others to any; none before ready is set.
type selector struct {
	libproducer.QueueSelector
	ready atomic.Bool
}

// Select implements the library's QueueSelector.
func (s *selector) Select(m *primitive.Message, queues []*primitive.MessageQueue, last string) *primitive.MessageQueue {
	if !s.ready.Load() {
		return nil
	}
	return s.QueueSelector.Select(m, queues, last)
}

// Producer implements [driver.Driver].
func (d *rocketDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op := "open a producer on " + spec.Destination.String()
	err := rules().CheckProducer(op, &d.factory, &spec)
	p := &producer{op: "send to " + spec.Destination.String(), topic: spec.Destination.Name, spec: spec}
	p.sends = library.NewSends(p.op, done)
	for i := range spec.Variants {
		if err == nil {
			err = p.prepare(op, &spec.Variants[i])
		}
	}
	if err != nil {
		return nil, err
	}
	topic, err := d.topics.Topic(ctx, p.topic)
	if err != nil {
		return nil, err
	}
	queues := &selector{QueueSelector: libproducer.NewHashQueueSelector()}
	p.library, err = rocketmq.NewProducer(libproducer.WithNameServer(primitive.NamesrvAddr{topic.NameServer}),
		libproducer.WithGroupName("perfmq-producer"),
		libproducer.WithInstanceName(instance(&spec.Connection)), libproducer.WithRetry(0),
		libproducer.WithCompressMsgBodyOverHowmuch(math.MaxInt), libproducer.WithQueueSelector(queues))
	if err == nil {
		err = p.library.Start()
	}
	if err != nil {
		return nil, driver.Errorf(driver.ClassOther, op, hintNative, "%w", err)
	}
	// This finds the brokers, and sends nothing. When the library finds them for several sends at once, some of these
	// fail.
	_, _ = library.Bounded(ctx, func() (*primitive.SendResult, error) {
		return p.library.SendSync(ctx, primitive.NewMessage(p.topic, nil))
	})
	queues.ready.Store(true)
	return p, nil
}

// prepare sets the properties of a variant.
func (p *producer) prepare(op string, v *driver.Variant) error {
	m := library.Properties(&p.spec, v)
	if v.Group != "" {
		// the library's name of the property, and the name that all other clients use
		m[primitive.PropertyShardingKey], m["__SHARDINGKEY"] = v.Group, v.Group
	}
	for _, property := range v.Properties {
		if key, value := property.Key, property.Value; strings.ContainsAny(key+value, "\x01\x02") {
			return library.Unsupported(op, "choose another text",
				"RocketMQ has no properties with the characters 1 and 2: "+strconv.Quote(key+"="+value))
		}
	}
	p.kinds = append(p.kinds, m)
	return nil
}

// Send implements [driver.Producer]. The library does not separate the hand-over of a message from its end.
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	properties := library.OfMessage(p.kinds[m.Variant], &p.spec.Variants[m.Variant], m)
	if m.Group != "" {
		properties[primitive.PropertyShardingKey], properties["__SHARDINGKEY"] = m.Group, m.Group
	}
	body := p.spec.Variants[m.Variant].Body
	if m.Body != nil {
		body = bytes.Clone(m.Body)
	}
	msg := primitive.NewMessage(p.topic, body)
	msg.WithProperties(properties)
	return p.sends.Do(ctx, m.Slot, func(h *library.Handover) {
		h.Sent()
		result, err := p.library.SendSync(p.sends.Answers, msg)
		o := p.outcome(result, err)
		if o.State == driver.Failed && o.Class == driver.ClassConnect {
			_ = library.Sleep(p.sends.Answers, pause)
		}
		h.End(o)
	})
}

// outcome returns the outcome of a message.
func (p *producer) outcome(result *primitive.SendResult, err error) driver.Outcome {
	var network *net.OpError
	switch {
	case err == nil && result.Status == primitive.SendOK:
		return driver.Outcome{}
	case err == nil:
		return p.end(driver.Unknown, driver.ClassTimeout, protocol.HintReplica,
			fmt.Errorf("status %d of the send", result.Status))
	case errors.Is(err, liberrors.ErrRequestTimeout), p.sends.Answers.Err() != nil:
		return p.end(driver.Unknown, driver.ClassTimeout,
			"is the broker overloaded or down?", err)
	case errors.As(err, &network) && network.Op == "dial":
		return p.end(driver.Failed, driver.ClassConnect, "is the broker running?", err)
	case errors.As(err, &network):
		return p.end(driver.Unknown, driver.ClassConnectionLost, transport.HintAlive, err)
	}
	state, class, hint := refusal(err)
	return p.end(state, class, hint, err)
}

func (p *producer) end(state driver.State, class driver.Class, hint string, err error) driver.Outcome {
	return driver.Outcome{State: state, Class: class, Err: &driver.Error{Class: class, Op: p.op, Hint: hint, Err: err}}
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	shut := func() { _ = p.library.Shutdown() }
	if p.sends.Close(ctx, func() {}, shut) {
		shut()
	}
	return nil
}
