package rocketmq

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// RocketMQ's requesters name their client in a request, and a broker pushes the reply to the connection of that client
// (DefaultMQProducerImpl.request, ReplyMessageProcessor). A topic for replies is ours alone, in a property.

const (
	// clientAddress begins an address client://CLUSTER/CLIENT, of a requester's client.
	clientAddress = "client://"
	// propReplyTopic is the property with the address of a topic for replies.
	propReplyTopic = "REPLY_TO"
	// maxTargets bounds the topics that a producer of replies sends to. Their names come from requests.
	maxTargets = 1024
	// maxReplyIDs bounds the texts that a reply repeats, in bytes.
	maxReplyIDs = 16 << 10
)

// target is a topic for replies.
type target struct {
	brokers sendBrokers
	next    int // index of the next queue
}

// targetOf returns the topic of a reply, and the requester's client if a broker pushes it. refused is the end of a
// reply that cannot be sent.
func (p *producer) targetOf(ctx context.Context, m *driver.Message) (t *target, client []byte, refused error) {
	address, code := m.To, wire.ReqSendReplyMessageV2
	topic, pushed := bytes.CutPrefix(address, []byte(clientAddress))
	if pushed {
		topic, client, _ = bytes.Cut(topic, []byte("/"))
		topic = append(append(p.topicName[:0], topic...), wire.ReplySuffix...)
		if p.topicName = topic; len(client) == 0 {
			return nil, nil, driver.Errorf(driver.ClassNotFound, p.op, "", "a request without its client")
		}
	} else {
		code = wire.ReqSendMessageV2
		_, topic, _ = bytes.Cut(address, []byte("://"))
	}
	if t := p.targets[string(topic)]; t != nil {
		return t, client, nil
	}
	name := string(topic)
	if !Rules().Legal(name) || len(p.targets) == maxTargets {
		return nil, nil, driver.Errorf(driver.ClassNotFound, p.op, "", "%q is no address for replies",
			transport.Clip(string(address), maxName))
	}
	ctx, cancel := p.d.opening(ctx)
	defer cancel()
	r, err := p.d.routeOf(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	t = &target{}
	for _, b := range r.brokers {
		if b.write == 0 {
			continue
		}
		conn, err := p.client.connect(ctx, b.addr, &p.later)
		if err != nil {
			return nil, nil, err
		}
		t.brokers = append(t.brokers, p.sendBroker(conn, b.name, b.write, name, code))
	}
	if len(t.brokers) == 0 {
		return nil, nil, notWritable(p.op, name)
	}
	p.targets[name] = t
	return t, client, nil
}

// refuse ends a reply that cannot be sent.
func (p *producer) refuse(slot driver.Slot, err error) {
	p.done.Done(slot, driver.Outcome{State: driver.Rejected, Class: driver.ClassOf(err), Err: err})
}

// checkReply returns an error if a property cannot hold what a message repeats of its request.
func (p *producer) checkReply(m *driver.Message) error {
	for _, text := range [][]byte{m.Correlation, m.To} {
		if len(text) > maxReplyIDs || bytes.IndexByte(text, wire.NameEnd) >= 0 ||
			bytes.IndexByte(text, wire.PropertyEnd) >= 0 {
			return driver.Errorf(driver.ClassUnsupported, p.op, "", "RocketMQ cannot carry the request's %.40q", text)
		}
	}
	return nil
}

// appendReply appends the properties of a request or reply.
func (p *producer) appendReply(b []byte, m *driver.Message) []byte {
	b = wire.AppendProperty(b, wire.PropCorrelationID, m.Correlation)
	switch {
	case len(p.requester) > 0:
		b = wire.AppendProperty(b, wire.PropMessageType, wire.ReplyType)
		b = wire.AppendProperty(b, wire.PropReplyTo, p.requester)
	case m.ReplyTo == "":
	case strings.Contains(m.ReplyTo, "://"):
		b = wire.AppendProperty(b, propReplyTopic, m.ReplyTo)
	default:
		b = wire.AppendProperty(b, wire.PropReplyTo, m.ReplyTo)
		b = wire.AppendIntProperty(b, wire.PropReplyTTL, p.replyTTL.Milliseconds())
	}
	return b
}

// readReply sets what replies need from the properties of a message. scratch is memory for the address.
func readReply(scratch, properties []byte, d *driver.Delivery) []byte {
	var cluster, client []byte
	d.ReplyTo, d.Correlation, d.MessageID = nil, nil, nil
	for len(properties) > 0 {
		var name, value []byte
		switch name, value, properties = wire.CutProperty(properties); string(name) {
		case wire.PropCorrelationID:
			d.Correlation = value
		case wire.PropUniqueKey:
			d.MessageID = value
		case wire.PropCluster:
			cluster = value
		case wire.PropReplyTo:
			client = value
		case propReplyTopic:
			d.ReplyTo = value
		}
	}
	if len(client) > 0 && len(cluster) > 0 {
		scratch = append(append(append(append(scratch[:0], clientAddress...), cluster...), '/'), client...)
		d.ReplyTo = scratch
	}
	return scratch
}

// holdLimit bounds the bytes of replies that wait for Run. Beyond it they are refused.
const holdLimit = 8 << 20

// replyConsumer is a [driver.Consumer] of the replies that brokers push to a client.
type replyConsumer struct {
	d      *rocketDriver
	lease  *transport.Lease[*client]
	client *client
	conns  []*conn
	stages driver.Stages
	input  *driver.Meter

	mu      sync.Mutex
	err     error // why it cannot go on
	waiting pushes
	arrived chan struct{} // a reply or an error has come

	// Of Run.
	taken    pushes
	inflater wire.Inflater
	ids      driver.IDReader
	delivery driver.Delivery
	scratch  []byte
	closed   bool
}

// pushes are replies that a broker has pushed, with their properties and bodies in one block of memory.
type pushes struct {
	list []pushed
	text []byte
}

type pushed struct {
	sysFlag         uint32
	born, stored    int64 // milliseconds since the Unix epoch
	at, body, until int   // properties and body begin, and the body ends, at these offsets
}

// replies opens a consumer with [driver.ConsumerSpec.Dynamic].
func (d *rocketDriver) replies(ctx context.Context, op string, spec *driver.ConsumerSpec) (driver.Consumer, error) {
	if spec.TransactionSize > 0 || spec.Selector != "" || spec.Failing != driver.Accept {
		return nil, library.Unsupported(op, "leave out selectors, transactions and failures",
			"RocketMQ pushes replies to their requester")
	}
	if d.cfg.Options.Send == sendBatch {
		return nil, library.Unsupported(op, "leave out -o send=batch", "RocketMQ takes requests one by one")
	}
	ctx, cancel := d.opening(ctx)
	defer cancel()
	inner := spec.Connection
	var attached func()
	inner.Stages, attached = attaching(inner.Stages)
	lease, err := d.acquire(ctx, inner, clientAddress)
	if err != nil {
		return nil, err
	}
	c := &replyConsumer{
		d: d, lease: lease, client: lease.Conn, stages: spec.Connection.Stages, input: driver.NewMeter(),
		arrived: make(chan struct{}, 1),
	}
	c.client.setReplies(c)
	// A reply comes from the broker that the responder chose.
	asking := d.newConns(nil)
	defer asking.close()
	err = asking.onMasters(ctx, func(master *conn) error {
		conn, err := c.client.connect(ctx, master.addr, &inner)
		if err != nil {
			return err
		}
		c.conns = append(c.conns, conn)
		return c.client.beat(ctx, conn)
	})
	if err != nil {
		c.client.setReplies(nil)
		lease.Release(ctx)
		return nil, wrap(op, err)
	}
	attached()
	return c, nil
}

// Address implements [driver.Addressed].
func (c *replyConsumer) Address() string { return c.client.id }

// push takes a reply from the connection's reader. It returns false if there is no room for it.
func (c *replyConsumer) push(r *reply) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	properties := r.Get("properties")
	w := &c.waiting
	if len(w.text) > 0 && len(w.text)+len(properties)+len(r.Body) > holdLimit {
		return false
	}
	at := len(w.text)
	w.text = append(append(w.text, properties...), r.Body...)
	w.list = append(w.list, pushed{
		sysFlag: uint32(r.NumberOr("sysFlag", 0)), //nolint:gosec // its bits
		born:    r.NumberOr("bornTimestamp", 0), stored: r.NumberOr("storeTimestamp", 0),
		at: at, body: at + len(properties), until: len(w.text),
	})
	transport.Notify(c.arrived)
	return true
}

// fail makes Run return an error once it has delivered the replies that have arrived.
func (c *replyConsumer) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	transport.Notify(c.arrived)
}

// Run implements [driver.Consumer].
func (c *replyConsumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	for ctx.Err() == nil {
		c.mu.Lock()
		kept := pushes{c.taken.list[:0], c.taken.text[:0]}
		if cap(kept.text) > keptBuffer {
			kept.text = nil
		}
		c.taken, c.waiting = c.waiting, kept
		failed := c.err
		c.mu.Unlock()
		for i := range c.taken.list {
			if ctx.Err() != nil {
				break
			}
			if err := c.deliver(&c.taken.list[i], deliver); err != nil {
				return lost(repliesOp, err)
			}
		}
		switch {
		case len(c.taken.list) > 0:
		case failed != nil:
			return lost(repliesOp, failed)
		default:
			c.input.Begin()
			select {
			case <-c.arrived:
			case <-ctx.Done():
			}
			c.input.End()
		}
	}
	return nil
}

const repliesOp = "receive replies"

func (c *replyConsumer) deliver(p *pushed, deliver func(*driver.Delivery) driver.Verdict) error {
	properties, d := c.taken.text[p.at:p.body], &c.delivery
	m := wire.Message{MessageHead: wire.MessageHead{SysFlag: p.sysFlag}, Body: c.taken.text[p.body:p.until]}
	var err error
	if d.Body, err = bodyOf(&m, &c.inflater, c.d.cfg.MaxBody); err != nil {
		return err
	}
	readProperties(properties, &c.ids, d)
	c.scratch = readReply(c.scratch, properties, d)
	d.Born, d.Stored = p.born*1000, p.stored*1000
	deliver(d)
	return nil
}

// Close implements [driver.Consumer].
func (c *replyConsumer) Close(ctx context.Context) error {
	if !c.closed {
		c.closed = true
		c.client.setReplies(nil)
		c.lease.Leave(ctx, c.stages, func(ctx context.Context) { c.lease.Release(ctx) })
	}
	return nil
}

// Waits implements [driver.Waiter].
func (c *replyConsumer) Waits() driver.Waits {
	w := c.conns[0].waits()
	w.Input = c.input.Idle()
	return w
}

// Probe implements [driver.Prober].
func (c *replyConsumer) Probe(ctx context.Context) error {
	for _, conn := range c.conns {
		if err := c.client.beat(ctx, conn); err != nil {
			return wrap(repliesOp, err)
		}
	}
	return nil
}

// setReplies sets the consumer of the client's replies, or ends it by nil.
func (c *client) setReplies(to *replyConsumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replies = to; to == nil {
		delete(c.consumers, clientAddress)
	}
}

// takeReply takes a reply, and answers the broker, which tells the responder.
func (c *client) takeReply(r *reply) {
	c.mu.Lock()
	to := c.replies
	c.mu.Unlock()
	code, remark := wire.ResSuccess, ""
	if to == nil || !to.push(r) {
		code, remark = wire.ResSystemError, "the requester takes no reply"
	}
	if r.Flag&wire.FlagOneWay != 0 {
		return
	}
	_ = r.from.Gather(func(b []byte) []byte { // the connection's end is reported elsewhere
		at := len(b)
		b = wire.BeginFrame(b, code, wire.FlagAnswer, r.Opaque, remark)
		wire.EndFrame(b[at:], 0)
		return b
	})
}

// losesReplies ends the consumer of replies if it has lost one of its brokers.
func (c *client) losesReplies(conn *conn) {
	c.mu.Lock()
	to := c.replies
	c.mu.Unlock()
	if to != nil && slices.Contains(to.conns, conn) {
		to.fail(conn.Why())
	}
}
