package mqtt

import (
	"cmp"
	"context"
	"math"
	"net/url"
	"slices"
	"strconv"
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
	transport.Notice
	conn    *connection
	op      string
	spec    driver.ProducerSpec
	qos     byte
	sends   *transport.InFlight
	user    [][]packets.User // properties, by variant
	varying [][]string       // keys of the properties that vary, by variant
	packet  []byte           // of Send
	credit  *driver.Meter    // waits for the broker's answers to earlier messages
	socket  *driver.Meter    // waits for the connection to take more
}

// Producer implements [driver.Driver].
func (d *mqttDriver) Producer(
	ctx context.Context, spec driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	op := "open a producer on " + spec.To()
	if err := names().CheckProducer(op, &d.factory, &spec); err != nil {
		return nil, err
	}
	p := &producer{
		op: "send to " + spec.To(), spec: spec, qos: byte(d.cfg.Options.QoS), credit: driver.NewMeter(),
		socket: driver.NewMeter(), sends: transport.NewInFlight(spec.MaxPending, done),
	}
	for i := range spec.Variants {
		v := &spec.Variants[i]
		var user []packets.User
		for _, property := range v.Properties {
			text := property.Key + property.Value
			if len(text) > math.MaxUint16 || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
				return nil, library.Unsupported(op, "leave it out", "MQTT cannot carry the property "+property.Key)
			}
			if !property.Varies {
				user = append(user, packets.User{Key: property.Key, Value: property.Value})
			}
		}
		if spec.Origin != (driver.ID{}) {
			user = append(user, packets.User{Key: driver.IDProperty, Value: string(spec.Origin.Append(nil))})
		}
		p.user, p.varying = append(p.user, user), append(p.varying, v.Varying())
	}
	var err error
	if p.conn, err = d.dial(ctx, spec.Connection, &packets.Connect{CleanStart: true}, nil); err != nil {
		return nil, err
	}
	p.conn.OnEnd(func(why error) {
		p.sends.EndAll(unknown(transport.Explain(p.op, why)))
		if !p.conn.closed.Load() {
			p.End(transport.Explain(p.op, why))
		}
	})
	return p, nil
}

func unknown(why error) driver.Outcome {
	return driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(why), Err: why}
}

// Host implements [driver.Located].
func (p *producer) Host() string { return p.conn.Host() }

// Waits implements [driver.Waiter].
func (p *producer) Waits() driver.Waits {
	return driver.Waits{Credit: p.credit.Wait(), Socket: p.socket.Wait(), Reader: p.conn.Raw.Reading()}
}

// Send implements [driver.Producer].
func (p *producer) Send(ctx context.Context, m *driver.Message) error {
	if err := p.await(ctx); err != nil {
		return transport.SendError(ctx, p.op, err)
	}
	p.sends.Begin(m.Slot)
	id := uint16(0)
	if p.qos > 0 {
		slot := m.Slot
		id = p.conn.expect(func(err error) { p.answer(slot, err) })
	}
	p.packet = appending(p.publish(m, id))(p.packet[:0])
	b, err := p.conn.Out.Lock(ctx, p.socket)
	if err != nil {
		if !p.sends.Undo(m.Slot) {
			return nil // the end of the connection has reported it
		}
		p.conn.answered(id, 0, "") // it waits no longer
		return transport.SendError(ctx, p.op, err)
	}
	if p.qos == 0 {
		p.conn.Out.Confirm(p, m.Slot)
	}
	p.conn.Out.Unlock(append(b, p.packet...), m.More)
	return nil
}

// await waits until the broker takes another message: with a confirmation it has a limit of them.
func (p *producer) await(ctx context.Context) error {
	if err := ctx.Err(); err != nil || p.qos == 0 {
		return err
	}
	if quota := p.conn.quota; len(quota) == cap(quota) {
		p.conn.Out.Flush()
		p.credit.Begin()
		defer p.credit.End()
	}
	select {
	case p.conn.quota <- struct{}{}:
		return nil
	case <-p.conn.Over():
		return p.conn.Why()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer reports the broker's answer to a message: err is a refusal.
func (p *producer) answer(slot driver.Slot, err error) {
	<-p.conn.quota
	o := driver.Outcome{}
	if err != nil {
		o = driver.Outcome{State: driver.Rejected, Class: driver.ClassOf(err), Err: transport.Explain(p.op, err)}
	}
	if p.sends.Claim(slot) {
		p.sends.Report([]driver.Slot{slot}, o)
	} else {
		p.sends.Late(slot, o)
	}
}

// Written implements [transport.Writer]: at most once, a message ends when it is passed to the operating system.
func (p *producer) Written(slots []driver.Slot) { p.sends.End(slots, driver.Outcome{}) }

// publish returns the packet of a message.
func (p *producer) publish(m *driver.Message, id uint16) *packets.Publish {
	user := append(slices.Clip(p.user[m.Variant]),
		packets.User{Key: driver.TimeProperty, Value: strconv.FormatInt(m.Time, 10)})
	for i, value := range m.Values {
		user = append(user, packets.User{Key: p.varying[m.Variant][i], Value: string(value)})
	}
	if m.ID != (driver.ID{}) {
		user = append(user, packets.User{Key: driver.IDProperty, Value: string(m.ID.Append(nil))})
	}
	publish := &packets.Publish{
		Topic: p.spec.Destination.Name, QoS: p.qos, PacketID: id, Payload: m.BodyOr(p.spec.Variants[m.Variant].Body),
		Properties: &packets.Properties{User: user, ResponseTopic: m.ReplyTo, CorrelationData: m.Correlation},
	}
	if p.spec.Anonymous {
		publish.Topic = string(m.To)
	}
	return publish
}

// Flush implements [driver.Flusher].
func (p *producer) Flush(context.Context) error {
	p.conn.Out.Flush()
	return nil
}

// Close implements [driver.Producer].
func (p *producer) Close(ctx context.Context) error {
	p.conn.Out.Flush()
	if !p.sends.Await(ctx) {
		p.sends.EndAll(unknown(transport.NoAnswer(p.op, "-o keep-alive")))
		p.sends.Await(context.Background()) // ends that other goroutines are reporting
	}
	return p.conn.Close(ctx)
}

// consumer is a [driver.Consumer].
type consumer struct {
	*connection
	op     string
	topic  string // of the messages
	filter string // of the subscription
	spec   driver.ConsumerSpec
	input  *driver.Meter // waits for messages
}

// Consumer implements [driver.Driver].
func (d *mqttDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.From()
	if err := names().CheckConsumer(op, &d.factory, &spec); err != nil {
		return nil, err
	}
	c := &consumer{
		op: "receive from " + spec.From(), topic: spec.Destination.Name, spec: spec, input: driver.NewMeter(),
	}
	qos, credit := byte(d.cfg.Options.QoS), uint16(min(cmp.Or(spec.Credit, defaultCredit), math.MaxUint16))
	connect := &packets.Connect{CleanStart: !spec.Durable, Properties: &packets.Properties{ReceiveMaximum: &credit}}
	switch {
	case qos == 0 && (spec.Credit > 0 || spec.Failing != driver.Accept):
		return nil, library.Unsupported(op, "leave out --credit and --consumer-fail, or -o qos=0",
			"at most once there is no credit, and no message can be rejected")
	case spec.Durable && spec.Shared:
		return nil, library.Unsupported(op, "leave out --durable or --shared", "an MQTT session belongs to one client")
	case spec.Dynamic:
		c.topic = identity("perfmq/replies/")
	case spec.Durable:
		connect.ClientID = spec.Connection.ClientID + "-" + spec.Subscription
		connect.Properties.SessionExpiryInterval = new(uint32(math.MaxUint32)) // never
	}
	if c.filter = c.topic; spec.Shared {
		name := strings.ReplaceAll(url.PathEscape(spec.Subscription), "+", "%2B") // it ends at a slash
		c.filter = "$share/" + name + "/" + c.topic
	}
	var err error
	if c.connection, err = d.dial(ctx, spec.Connection, connect, make(chan *packets.Publish, inboxSize)); err != nil {
		return nil, err
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
			Topic: c.filter, QoS: qos, RetainHandling: packets.RetainDoNotSend,
		}}}
	})
	if err != nil {
		_ = c.connection.Close(ctx)
		return nil, err
	}
	c.stages.Ended(driver.StageAttach, began)
	return c, nil
}

// Address implements [driver.Addressed].
func (c *consumer) Address() string { return c.topic }

// Waits implements [driver.Waiter].
func (c *consumer) Waits() driver.Waits {
	return driver.Waits{Input: c.input.Idle(), Reader: c.Raw.Reading()}
}

// Run implements [driver.Consumer].
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	defer c.Out.Flush()
	for {
		var p *packets.Publish
		select {
		case p = <-c.inbox:
		default:
			c.Out.Flush() // acknowledgements leave when there is nothing else to do
			c.input.Begin()
			select {
			case p = <-c.inbox:
			case <-c.Over():
			case <-ctx.Done():
			}
			c.input.End()
		}
		switch most := c.maxBody; {
		case ctx.Err() != nil:
			return nil
		case p == nil:
			return transport.Explain(c.op, c.Why())
		case len(p.Payload) > most:
			return library.TooLarge(c.op, len(p.Payload), most)
		}
		ack := &packets.Puback{PacketID: p.PacketID}
		if deliver(c.delivery(p)) != driver.Accept {
			ack.ReasonCode = rejected
		}
		if p.QoS > 0 {
			_ = c.Gather(appending(ack))
		}
	}
}

// delivery returns the parts of a message that perfmq reads.
func (c *consumer) delivery(p *packets.Publish) *driver.Delivery {
	d := &driver.Delivery{Body: p.Payload, Redelivered: p.Duplicate}
	property := func(key string) string {
		i := slices.IndexFunc(p.Properties.User, func(u packets.User) bool { return u.Key == key })
		if i < 0 {
			return ""
		}
		return p.Properties.User[i].Value
	}
	library.ReadText(d, property(driver.TimeProperty), property(driver.IDProperty))
	if c.spec.Correlated {
		d.ReplyTo, d.Correlation = []byte(p.Properties.ResponseTopic), p.Properties.CorrelationData
	}
	return d
}

// unsubscribe ends a subscription. The broker's answer shows that it has read all acknowledgements before.
func (c *consumer) unsubscribe(ctx context.Context, filter string) error {
	return c.request(ctx, c.op, func(id uint16) packets.Packet {
		return &packets.Unsubscribe{PacketID: id, Topics: []string{filter}}
	})
}

// Probe implements [driver.Prober].
func (c *consumer) Probe(ctx context.Context) error { return c.unsubscribe(ctx, probed) }

// Close implements [driver.Consumer].
func (c *consumer) Close(ctx context.Context) error {
	filter, properties := c.filter, &packets.Properties{}
	if c.spec.Durable && c.spec.KeepSubscription {
		filter = probed
	} else if c.spec.Durable {
		properties.SessionExpiryInterval = new(uint32)
	}
	c.close(ctx, properties, func(ctx context.Context) { _ = c.unsubscribe(ctx, filter) })
	return nil
}
