package mqtt

import (
	"cmp"
	"context"
	"math"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eclipse/paho.golang/packets"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// producer is a [driver.Producer].
type producer struct {
	*connection
	op     string
	spec   driver.ProducerSpec
	done   driver.Completions
	common []map[string]string // properties of all messages, by variant
}

// Producer implements [driver.Driver].
func (d *mqttDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op := "open a producer on " + spec.To()
	if err := names().CheckProducer(op, &d.factory, &spec); err != nil {
		return nil, err
	}
	var common []map[string]string
	for i := range spec.Variants {
		for _, property := range spec.Variants[i].Properties {
			text := property.Key + property.Value
			if len(text) > math.MaxUint16 || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
				return nil, library.Unsupported(op, "leave it out", "MQTT cannot carry the property "+property.Key)
			}
		}
		common = append(common, library.Properties(&spec, &spec.Variants[i]))
	}
	c, err := d.dial(ctx, spec.Connection, &packets.Connect{CleanStart: true}, 0)
	if err != nil {
		return nil, err
	}
	return &producer{connection: c, op: "send to " + spec.To(), spec: spec, done: done, common: common}, nil
}

// OnEnd implements [driver.Watched].
func (p *producer) OnEnd(call func(why error)) {
	p.connection.OnEnd(func(why error) {
		if !p.closed.Load() {
			call(transport.Explain(p.op, why))
		}
	})
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := p.await(ctx); err != nil {
		return transport.SendError(ctx, p.op, err)
	}
	b, err := p.Out.Lock(ctx, p.socket)
	if err == nil {
		slot := m.Slot
		id, gone := p.expect(func(o driver.Outcome) {
			<-p.quota // before Done, which may send the next message
			o.Err = transport.Explain(p.op, o.Err)
			o.Class = driver.ClassOf(o.Err)
			p.done.Done(slot, o)
		})
		if err = gone; err == nil {
			b = appending(p.publish(m, id))(b)
		}
		p.Out.Unlock(b, m.More)
	}
	if err != nil {
		<-p.quota
	}
	return transport.SendError(ctx, p.op, err)
}

// await waits until the broker takes another message: it has a limit of those that it has not answered.
func (p *producer) await(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(p.quota) == cap(p.quota) {
		p.Out.Flush()
		p.credit.Begin()
		defer p.credit.End()
	}
	select {
	case p.quota <- struct{}{}:
		return nil
	case <-p.Over():
		return p.Why()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publish returns the packet of a message.
func (p *producer) publish(m *driver.Message, id uint16) *packets.Publish {
	v := &p.spec.Variants[m.Variant]
	properties := &packets.Properties{}
	for key, value := range library.OfMessage(p.common[m.Variant], v, m) {
		properties.User = append(properties.User, packets.User{Key: key, Value: value})
	}
	return &packets.Publish{
		Topic: p.spec.Destination.Name, QoS: qos, PacketID: id, Payload: m.BodyOr(v.Body), Properties: properties,
	}
}

// Flush implements [driver.Flusher].
func (p *producer) Flush(context.Context) error {
	p.Out.Flush()
	return nil
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	p.Out.Flush()
	for n := 0; n < cap(p.quota) && !p.closed.Load(); n++ { // when all of it is ours, all answers have come
		select {
		case p.quota <- struct{}{}:
		case <-ctx.Done():
			p.end(transport.NoAnswer("", "-o keep-alive"))
		}
	}
	return p.connection.Close(ctx)
}

// consumer is a [driver.Consumer].
type consumer struct {
	*connection
	op string
}

// Consumer implements [driver.Driver].
func (d *mqttDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.From()
	if err := names().CheckConsumer(op, &d.factory, &spec); err != nil {
		return nil, err
	}
	c := &consumer{op: "receive from " + spec.From()}
	filter := spec.Destination.Name
	credit := uint16(min(cmp.Or(spec.Credit, defaultCredit), math.MaxUint16))
	connect := &packets.Connect{CleanStart: !spec.Durable, Properties: &packets.Properties{ReceiveMaximum: &credit}}
	switch {
	case spec.Durable && spec.Shared:
		return nil, library.Unsupported(op, "leave out --durable or --shared", "an MQTT session belongs to one client")
	case spec.Durable:
		connect.ClientID = spec.Connection.ClientID + "-" + spec.Subscription
		connect.Properties.SessionExpiryInterval = new(uint32(math.MaxUint32)) // never
	case spec.Shared:
		name := strings.ReplaceAll(url.PathEscape(spec.Subscription), "+", "%2B") // it ends at a slash
		filter = "$share/" + name + "/" + filter
	}
	var err error
	if c.connection, err = d.dial(ctx, spec.Connection, connect, inboxSize); err != nil {
		return nil, err
	}
	if c.leaves = filter; spec.Durable && spec.KeepSubscription {
		c.leaves = probed
	} else if spec.Durable {
		c.bye.SessionExpiryInterval = new(uint32) // at once
	}
	if c.resumed { // with its subscription. Its messages may leave no room for the answer to another one
		return c, nil
	}
	if spec.Shared {
		d.sharing.Lock()
		defer d.sharing.Unlock()
	}
	began := time.Now()
	err = c.request(ctx, op, func(id uint16) packets.Packet {
		return &packets.Subscribe{PacketID: id, Subscriptions: []packets.SubOptions{{
			Topic: filter, QoS: qos, RetainHandling: packets.RetainDoNotSend,
		}}}
	})
	if err != nil {
		_ = c.Close(ctx)
		return nil, err
	}
	c.stages.Ended(driver.StageAttach, began)
	return c, nil
}

// Run implements [driver.Consumer].
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	defer c.Out.Flush()
	for {
		if len(c.inbox) == 0 {
			c.Out.Flush() // acknowledgements leave when there is nothing else to do
		}
		var p *packets.Publish
		c.input.Begin()
		select {
		case p = <-c.inbox:
		case <-ctx.Done():
		}
		c.input.End()
		switch most := c.maxBody; {
		case ctx.Err() != nil:
			return nil
		case p == nil:
			return transport.Explain(c.op, c.Why())
		case len(p.Payload) > most:
			return library.TooLarge(c.op, len(p.Payload), most)
		}
		texts := map[string]string{}
		for _, u := range p.Properties.User {
			texts[u.Key] = u.Value
		}
		d := &driver.Delivery{Body: p.Payload, Redelivered: p.Duplicate}
		library.ReadText(d, texts[driver.TimeProperty], texts[driver.IDProperty])
		ack := &packets.Puback{PacketID: p.PacketID}
		if deliver(d) != driver.Accept {
			ack.ReasonCode = rejected
		}
		_ = c.Gather(appending(ack))
	}
}

// Probe implements [driver.Prober].
func (c *consumer) Probe(ctx context.Context) error { return c.unsubscribe(ctx, c.op, probed) }
