package amqp

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// manager asks RabbitMQ 4 over its management node: requests and answers of HTTP as AMQP messages over a pair of
// links (HTTP over AMQP, working draft 06, sections 4 and 5; RabbitMQ's documentation of AMQP 1.0, "Management"). It
// is safe for concurrent use; one request is under way at a time.
type manager struct {
	mu   sync.Mutex
	pair *managementPair // nil when there is none, or it is of no use any more
	last uint64          // number of the last request
}

const managementNode = "/management"

// replies is how many answers the broker may send ahead.
const replies = 10

// managementPair is a link each way, in a session of its own.
type managementPair struct {
	requester
	in      link
	ids     uint32
	answers chan reply
	lost    chan struct{} // closed when nothing more comes
	once    sync.Once
}

// reply is an answer with the number of its request.
type reply struct {
	number int64
	answer
}

// answer is the broker's, with the status of HTTP.
type answer struct {
	status int
	body   []byte // an encoded value
}

// words returns the broker's words about a failed request.
func (a answer) words() string {
	const longest = 300
	d := wire.NewDecoder(a.body)
	if text, ok := d.Text(); ok && len(text) > 0 {
		return string(text[:min(len(text), longest)])
	}
	return "status " + strconv.Itoa(a.status)
}

// settle implements control: requests are settled when they are sent.
func (m *managementPair) settle(uint32, uint32, wire.State) {}

// abandon implements control.
func (m *managementPair) abandon(why error) {
	m.end(why)
	m.once.Do(func() { close(m.lost) })
}

// manageTries is how often to ask when the broker ends the session because it does not know yet of our credit for its
// answer.
const manageTries = 5

// ask sends a request and waits for its answer. A body of nil is none.
func (c *connection) ask(ctx context.Context, method, path string, body []byte) (answer, error) {
	m := &c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	for try := 1; ; try++ {
		a, err := c.askOnce(ctx, method, path, body)
		if err == nil {
			return a, nil
		}
		if m.pair != nil {
			m.pair.s.close(ctx)
			m.pair = nil
		}
		if try == manageTries || conditionOf(err) != wire.CondPrecondition {
			return a, err
		}
	}
}

func (c *connection) askOnce(ctx context.Context, method, path string, body []byte) (answer, error) {
	m := &c.manager
	if m.pair == nil {
		pair, err := c.openManagement(ctx)
		if err != nil {
			return answer{}, err
		}
		m.pair = pair
	}
	m.last++
	return m.pair.ask(ctx, m.last, method, path, body)
}

func (m *managementPair) ask(ctx context.Context, number uint64, method, path string, body []byte) (answer, error) {
	if body == nil {
		body = wire.AppendNull(nil)
	}
	properties := wire.Properties{
		MessageID: wire.AppendUlong(nil, number), To: []byte(path), Subject: []byte(method), ReplyTo: []byte("$me"),
	}
	message := append(wire.AppendDescriptor(properties.AppendSection(nil), wire.DescValue), body...)
	if err := m.send(ctx, driver.NewMeter(), message, true, false, func(uint32) {}); err != nil {
		return answer{}, err
	}
	for {
		select {
		case r := <-m.answers:
			if r.number == int64(number) { //nolint:gosec // counted from 1
				return r.answer, nil
			}
		case <-m.lost:
			m.s.mu.Lock()
			defer m.s.mu.Unlock()
			return answer{}, m.err
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

// openManagement attaches the pair of links, the one for answers first: its credit is to be there before a request is.
func (c *connection) openManagement(ctx context.Context) (*managementPair, error) {
	s, err := c.beginSession(ctx, true)
	if err != nil {
		return nil, err
	}
	m := &managementPair{answers: make(chan reply, replies), lost: make(chan struct{})}
	m.requester = requester{s: s, granted: make(chan struct{}, 1), next: func() uint32 { m.ids++; return m.ids - 1 }}
	m.link.control = m
	m.in.handle, m.in.reply = 1, m.take
	node := wire.Terminus{Kind: wire.DescSource, Address: wire.Some(managementNode)}
	target := wire.Terminus{Kind: wire.DescTarget, Address: wire.Some(managementNode)}
	paired := wire.BeginMap(nil)
	paired = wire.AppendBool(wire.AppendSymbol(paired, "paired"), true)
	wire.EndCompound(paired, 0, 2)
	attach := wire.Attach{
		Name: "perfmq-management", Role: wire.RoleReceiver, SenderSettleMode: wire.SenderSettled, Source: node,
		Target:     target,
		Properties: paired,
	}
	if err = s.attach(ctx, &m.in, &attach); err == nil {
		flow := wire.Flow{
			NextIncomingID: wire.Some(s.nextIn.Load()), IncomingWindow: incomingWindow, OutgoingWindow: outgoingWindow,
			Handle: wire.Some(m.in.handle), DeliveryCount: wire.Some[uint32](0), LinkCredit: wire.Some[uint32](1 << 20),
		}
		err = c.put(func(b []byte) []byte { return flow.AppendFrame(b, s.channel) })
	}
	if err == nil {
		attach.Role, attach.InitialDeliveryCount = wire.RoleSender, wire.Some[uint32](0)
		err = s.attach(ctx, &m.link, &attach)
	}
	if err != nil {
		s.close(ctx)
		return nil, err
	}
	return m, nil
}

// take takes an answer. It is called by the reader.
func (m *managementPair) take(payload []byte) error {
	var message wire.Message
	var properties wire.Properties
	if err := errors.Join(message.Decode(payload), properties.Decode(message.Properties)); err != nil {
		return protocolError("an answer that cannot be read: %w", err)
	}
	status, err := strconv.Atoi(string(properties.Subject))
	if err != nil {
		return protocolError("an answer with the status %.40q", properties.Subject)
	}
	id := wire.NewDecoder(properties.CorrelationID)
	number, _ := id.Integer()
	r := reply{number, answer{status: status, body: append([]byte(nil), message.Body...)}}
	select {
	case m.answers <- r:
	default: // no caller waits for so many
	}
	return nil
}

// queueKind is the kind of a queue of RabbitMQ, with its priorities.
type queueKind struct {
	kind        string // classic, quorum, stream; empty if it was not asked for
	maxPriority int64  // 0: the queue has no priorities
}

// Kinds of queues.
const (
	kindClassic = "classic"
	kindQuorum  = "quorum"
	kindStream  = "stream"
)

// declaration is the body of a request that declares a queue.
func (o *Options) declaration() []byte {
	arguments, entries := wire.BeginMap(nil), 2
	arguments = wire.AppendStr(wire.AppendStr(arguments, "x-queue-type"), o.Declare)
	if o.MaxPriority > 0 {
		arguments, entries = wire.AppendLong(wire.AppendStr(arguments, "x-max-priority"), int64(o.MaxPriority)), 4
	}
	wire.EndCompound(arguments, 0, entries)
	b := wire.BeginMap(nil)
	b = wire.AppendBool(wire.AppendStr(b, "durable"), true)
	b = wire.AppendBool(wire.AppendStr(b, "exclusive"), false)
	b = wire.AppendBool(wire.AppendStr(b, "auto_delete"), false)
	b = append(wire.AppendStr(b, "arguments"), arguments...)
	wire.EndCompound(b, 0, 8)
	return b
}

// queue declares a queue by the options, or asks for its kind.
func (c *connection) queue(ctx context.Context, op, name string, o *Options) (queueKind, error) {
	path := "/queues/" + url.PathEscape(name)
	method, verb, body := "GET", "describe", []byte(nil)
	if o.Declare != declareNo {
		method, verb, body = "PUT", "declare", o.declaration()
	}
	a, err := c.ask(ctx, method, path, body)
	if err != nil {
		return queueKind{}, c.explain(op, err)
	}
	switch a.status {
	case 200, 201:
	case 404:
		return queueKind{}, driver.Errorf(driver.ClassNotFound, op, hintDeclare, "it does not exist: %s", a.words())
	case 409:
		return queueKind{}, driver.Errorf(driver.ClassOther, op,
			"leave out -o declare, or delete the queue, or use another name",
			"the queue exists with other settings: %s", a.words())
	case 401, 403:
		return queueKind{}, driver.Errorf(driver.ClassAuth, op, "check the user's permissions for this queue on the broker",
			"not authorised: %s", a.words())
	default:
		return queueKind{}, driver.Errorf(driver.ClassOther, op, "look into the broker's log",
			"the broker refuses to %s the queue: %s", verb, a.words())
	}
	kind := wire.Lookup(a.body, "type")
	text, _ := kind.Text()
	arguments := wire.Lookup(a.body, "arguments")
	priorities := wire.Lookup(arguments.Raw(), "x-max-priority")
	q := queueKind{kind: string(text)}
	q.maxPriority, _ = priorities.Integer()
	return q, nil
}

// checkSend refuses settings that a queue of that kind would ignore.
func (q queueKind) checkSend(d dialect, op string, spec *driver.ProducerSpec) error {
	for i := range spec.Variants {
		switch priority := spec.Variants[i].Priority >= 0; {
		case priority && q.kind == kindStream:
			return d.unsupported(op, "leave out --priority", "streams have no priorities")
		case priority && q.kind == kindClassic && q.maxPriority == 0:
			return d.unsupported(op,
				"declare it with x-max-priority: -o declare=classic -o max-priority=9, or use a quorum queue",
				"the queue has no priorities")
		}
	}
	if spec.TTL > 0 && q.kind == kindStream {
		return d.unsupported(op, "leave out --ttl", "messages of a stream do not expire one by one")
	}
	return nil
}

// managed reports whether RabbitMQ 4 is to be asked about a destination: a queue by its name.
func (d dialect) managed(dest driver.Destination) bool {
	return d == rabbitmq && dest.Kind == driver.Queue && !strings.HasPrefix(dest.Name, "/")
}

// prepareSend declares the queue, if the user wants that, and refuses settings that it would ignore.
func (c *connection) prepareSend(ctx context.Context, op string, spec *driver.ProducerSpec, o *Options) error {
	if spec.Delay > 0 && !c.delays {
		return c.unsupported(op, "leave out --delivery-delay",
			"it does not offer the capability "+capDelayed+", and would deliver at once")
	}
	asks := o.Declare != declareNo || spec.TTL > 0
	for i := range spec.Variants {
		asks = asks || spec.Variants[i].Priority >= 0
	}
	if !c.managed(spec.Destination) || !asks {
		return nil
	}
	q, err := c.queue(ctx, op, spec.Destination.Name, o)
	if err != nil {
		return err
	}
	return q.checkSend(c.dialect, op, spec)
}

// prepareReceive declares the queue, if the user wants that, and makes one consumer the only one of a stream: each
// would receive all messages; consumers of a queue share them.
func (c *connection) prepareReceive(
	ctx context.Context, op string, spec *driver.ConsumerSpec, o *Options,
) (free func(), err error) {
	free = func() {}
	if !c.managed(spec.Destination) {
		return free, nil
	}
	q, err := c.queue(ctx, op, spec.Destination.Name, o)
	if err != nil || q.kind != kindStream {
		return free, err
	}
	d, name := c.driver, spec.Destination.Name
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.streams[name] {
		return free, c.unsupported(op, "use --consumers 1", "each consumer of a stream gets all messages")
	}
	d.streams[name] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.streams, name)
	}, nil
}

// hintDeclare is said of queues that RabbitMQ 4 does not have.
const hintDeclare = "declare it on the broker, or let us do it by -o declare=classic (or quorum, or stream)"

// streamFilter tells RabbitMQ where in a stream to begin.
func streamFilter(from string) wire.Filter {
	const name = "rabbitmq:stream-offset-spec"
	value := append(wire.AppendSymbol([]byte{wire.CodeDescribed}, name), wire.AppendStr(nil, from)...)
	return wire.Filter{Name: name, Value: value}
}
