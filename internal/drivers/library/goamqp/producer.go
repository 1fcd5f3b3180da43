package goamqp

import (
	"context"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// producer is a [driver.Producer].
type producer struct {
	party
	transport.Notice
	link    *amqp.Sender
	kinds   []amqp.Message // by variant
	sizes   []int          // of their bodies
	varying [][]string     // keys of the properties that vary
	sends   *library.Sends
}

// Producer implements [driver.Driver].
func (d *amqpDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op := "open a producer on " + spec.Destination.String()
	for i := range spec.Variants {
		if v := &spec.Variants[i]; v.Text && !utf8.Valid(v.Body) {
			return nil, protocol.AMQPTextNotUTF8(op)
		}
	}
	joined, err := d.join(ctx, spec.Connection, spec.Destination, op, func(f *driver.Factory) error {
		return library.PlainNames().CheckProducer(op, f, &spec)
	})
	if err != nil {
		return nil, err
	}
	p := &producer{party: joined}
	for i := range spec.Variants {
		p.kinds = append(p.kinds, message(&spec, &spec.Variants[i]))
		p.sizes = append(p.sizes, len(spec.Variants[i].Body))
		p.varying = append(p.varying, spec.Variants[i].Varying())
	}
	p.link, err = p.session.NewSender(ctx, p.address, &amqp.SenderOptions{
		Name: spec.Name, TargetCapabilities: []string{spec.Destination.Kind.String()},
	})
	if err != nil {
		p.leave(ctx)
		return nil, explain(op, err)
	}
	p.op = "send to " + spec.Destination.String()
	p.stages.Ended(driver.StageAttach, p.began)
	p.sends = library.NewSends(p.op, done)
	// The library does not report the end of a link or session before the next send.
	p.sends.Watch(p.Conn.amqp.Done(), func() { p.End(explain(p.op, p.Conn.amqp.Err())) })
	return p, nil
}

// message returns the common part of all messages of a variant.
func message(spec *driver.ProducerSpec, v *driver.Variant) amqp.Message {
	m := amqp.Message{
		Header: &amqp.MessageHeader{Durable: spec.Persistent, Priority: 4, TTL: spec.TTL},
		Data:   [][]byte{v.Body}, ApplicationProperties: map[string]any{},
	}
	for key, value := range library.Properties(spec, v) {
		m.ApplicationProperties[key] = value
	}
	if v.Text {
		m.Data, m.Value = nil, string(v.Body)
	}
	if v.Priority >= 0 {
		m.Header.Priority = uint8(min(v.Priority, 9)) //nolint:gosec // 0 to 9
	}
	if v.Group != "" {
		m.Properties = &amqp.MessageProperties{GroupID: &v.Group}
	}
	return m
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := p.Conn.amqp.Err(); err != nil && p.sends.Lost() == nil {
		return explain(p.op, err)
	}
	msg, size := p.kinds[m.Variant], p.sizes[m.Variant]
	if m.Body != nil && msg.Data == nil {
		msg.Value = string(m.Body)
	} else if m.Body != nil {
		msg.Data = [][]byte{slices.Clone(m.Body)}
	}
	msg.ApplicationProperties = maps.Clone(msg.ApplicationProperties)
	msg.ApplicationProperties[driver.TimeProperty] = m.Time
	for i, value := range m.Values {
		msg.ApplicationProperties[p.varying[m.Variant][i]] = string(value)
	}
	if m.ID != (driver.ID{}) {
		msg.ApplicationProperties[driver.IDProperty] = string(m.ID.Append(nil))
	}
	if group := m.Group; group != "" {
		msg.Properties = &amqp.MessageProperties{GroupID: &group}
	}
	return p.sends.Do(ctx, m.Slot, func(h *library.Handover) {
		receipt, err := p.link.SendWithReceipt(ctx, &msg, nil)
		if err != nil && !ended(err) && h.NotSent(p.notSent(ctx, size, err)) {
			return
		}
		h.Sent()
		var state amqp.DeliveryState
		if err == nil {
			state, err = receipt.Wait(p.sends.Answers)
		}
		h.End(p.outcome(state, err))
	})
}

// notSent returns why a message was not sent. The library may give up between two frames of a message: then no further
// message can be sent.
func (p *producer) notSent(ctx context.Context, size int, err error) error {
	if ctx.Err() == nil {
		return explain(p.op, err)
	}
	e := transport.HeldBack(p.op, ctx.Err())
	if size > 512/2 { // frames can be that small: Transport, section 2.7.1
		p.sends.Lose(e)
	}
	return e
}

// outcome converts the broker's answer (AMQP 1.0, Messaging, section 3.4).
func (p *producer) outcome(state amqp.DeliveryState, err error) driver.Outcome {
	if err != nil {
		e := explain(p.op, err)
		if ended(err) {
			p.sends.Lose(e)
		}
		return driver.Outcome{State: driver.Unknown, Class: e.Class, Err: e}
	}
	switch state := state.(type) {
	case *amqp.StateAccepted:
		return driver.Outcome{}
	case *amqp.StateRejected:
		if state.Error == nil {
			return driver.Outcome{State: driver.Rejected, Class: driver.ClassOther}
		}
		e := explain(p.op, state.Error)
		return driver.Outcome{State: driver.Rejected, Class: e.Class, Err: e}
	case *amqp.StateReleased:
		return driver.Outcome{State: driver.Released, Class: driver.ClassOther}
	case *amqp.StateModified:
		return driver.Outcome{State: driver.Modified, Class: driver.ClassOther}
	}
	return driver.Outcome{State: driver.Unknown, Class: driver.ClassProtocol}
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	p.sends.Close(ctx, func() {}, func() { _ = p.Conn.net.Close() })
	if !p.closed {
		p.Leave(ctx, p.stages, p.leave)
	}
	return nil
}
