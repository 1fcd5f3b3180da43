package amqp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// inspector asks Artemis for its counters by management messages (Artemis documentation, "Using Management Message
// API"): requests to the address activemq.management, answers to a temporary queue. It has a connection of its own. One
// request is under way at a time, and a request that does not end well ends the connection, so that an answer is never
// taken for the answer to a later request.
type inspector struct {
	mu    sync.Mutex
	lease *transport.Lease[*connection] // nil if there is none
	order []int                         // the host that was asked first, and so always: others count other messages
	pair  *artemisPair
}

// artemisNode is the address of Artemis that takes management messages.
const artemisNode = "activemq.management"

// artemisPair is a link each way, in a session of its own.
type artemisPair struct {
	requester
	in      link
	ids     uint32
	answers chan artemisAnswer
	refused chan error    // a request that the broker did not accept
	lost    chan struct{} // closed when nothing more comes
	once    sync.Once
}

type artemisAnswer struct {
	succeeded bool
	body      []byte // JSON
}

// settle implements control: to an accepted request there is an answer. Why a request is refused Artemis does not say
// (2.56 tells of a null pointer); in a running broker it is the user.
func (m *artemisPair) settle(_, _ uint32, state wire.State) {
	if m.s.c.outcome("", &state).State == driver.Accepted {
		return
	}
	err := driver.Errorf(driver.ClassAuth, "", "give the user that permission, or use --management-url",
		"it refuses to tell them: the user may lack the permission manage on the address %s", artemisNode)
	select {
	case m.refused <- err:
	default: // it is told once
	}
}

// abandon implements control.
func (m *artemisPair) abandon(why error) {
	m.end(why)
	m.once.Do(func() { close(m.lost) })
}

// Inspect implements [driver.Inspector]. Of the brokers that speak AMQP, Artemis alone can be asked over it.
func (d *amqpDriver) Inspect(
	ctx context.Context, destinations []driver.Destination,
) ([]driver.DestinationCount, error) {
	i := &d.inspector
	i.mu.Lock()
	defer i.mu.Unlock()
	list, err := d.inspect(ctx, destinations)
	if err != nil && i.lease != nil {
		i.lease.Release(ctx)
		i.lease, i.pair = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask the broker for its counters: %w", err)
	}
	return list, nil
}

func (d *amqpDriver) inspect(
	ctx context.Context, destinations []driver.Destination,
) ([]driver.DestinationCount, error) {
	i := &d.inspector
	if i.lease == nil {
		const name = "perfmq-management"
		lease, err := d.pool.Acquire(ctx,
			driver.Connection{Key: "\x00" + name, Name: name + "-" + strings.ToLower(rand.Text()[:10]), Order: i.order})
		if err != nil {
			return nil, err
		}
		i.lease = lease
		if at := slices.IndexFunc(d.cfg.Target.Hosts, func(e transport.Endpoint) bool {
			return e.String() == lease.Conn.host
		}); at >= 0 {
			i.order = []int{at}
		}
	}
	c := i.lease.Conn
	if c.speaks != artemis {
		return nil, c.unsupported("", "see --management-url", "the broker cannot be asked for its counters")
	}
	if i.pair == nil {
		pair, err := c.openArtemis(ctx)
		if err != nil {
			return nil, err
		}
		i.pair = pair
	}
	list := make([]driver.DestinationCount, 0, len(destinations))
	for _, dest := range destinations {
		n, err := i.pair.count(ctx, dest)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// openArtemis attaches the pair of links, that for answers first: its address is in the requests.
func (c *connection) openArtemis(ctx context.Context) (*artemisPair, error) {
	s, err := c.beginSession(ctx, true)
	if err != nil {
		return nil, err
	}
	m := &artemisPair{answers: make(chan artemisAnswer, 1), refused: make(chan error, 1), lost: make(chan struct{})}
	m.requester = requester{s: s, granted: make(chan struct{}, 1), next: func() uint32 { m.ids++; return m.ids - 1 }}
	m.link.control = m
	m.in.handle, m.in.reply = 1, m.take
	attach := wire.Attach{
		Name: "perfmq-management", Role: wire.RoleReceiver, SenderSettleMode: wire.SenderSettled,
		Source: wire.Terminus{Kind: wire.DescSource, Dynamic: true}, Target: wire.Terminus{Kind: wire.DescTarget},
	}
	if err = s.attach(ctx, &m.in, &attach); err == nil {
		flow := wire.Flow{
			NextIncomingID: wire.Some(s.nextIn.Load()), IncomingWindow: incomingWindow, OutgoingWindow: outgoingWindow,
			Handle: wire.Some(m.in.handle), DeliveryCount: wire.Some[uint32](0), LinkCredit: wire.Some[uint32](1 << 30),
		}
		err = c.put(func(b []byte) []byte { return flow.AppendFrame(b, s.channel) })
	}
	if err == nil {
		attach.Role, attach.InitialDeliveryCount = wire.RoleSender, wire.Some[uint32](0)
		attach.SenderSettleMode = wire.SenderUnsettled
		attach.Source = wire.Terminus{Kind: wire.DescSource}
		attach.Target = wire.Terminus{Kind: wire.DescTarget, Address: wire.Some(artemisNode)}
		err = s.attach(ctx, &m.link, &attach)
	}
	if err != nil {
		s.close(ctx)
		return nil, err
	}
	return m, nil
}

// call calls an operation of a resource and returns its result, JSON.
func (m *artemisPair) call(ctx context.Context, resource, operation string, arguments ...any) ([]byte, error) {
	return m.ask(ctx, resource, "_AMQ_OperationName", operation, arguments)
}

// attribute returns an attribute of a resource, JSON.
func (m *artemisPair) attribute(ctx context.Context, resource, name string) ([]byte, error) {
	return m.ask(ctx, resource, "_AMQ_Attribute", name, []any{})
}

func (m *artemisPair) ask(ctx context.Context, resource, kind, name string, arguments []any) ([]byte, error) {
	body, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	m.s.mu.Lock()
	replyTo := m.in.peer.address
	m.s.mu.Unlock()
	properties := wire.Properties{
		MessageID: wire.AppendUlong(nil, uint64(m.ids)), To: []byte(artemisNode),
		ReplyTo: []byte(replyTo),
	}
	message := wire.AppendDescriptor(properties.AppendSection(nil), wire.DescApplicationProperties)
	at := len(message)
	message = wire.BeginMap(message)
	for _, property := range [][2]string{{"_AMQ_ResourceName", resource}, {kind, name}} {
		message = wire.AppendStr(wire.AppendStr(message, property[0]), property[1])
	}
	wire.EndCompound(message, at, 4)
	message = wire.AppendStr(wire.AppendDescriptor(message, wire.DescValue), body)
	if err := m.send(ctx, driver.NewMeter(), message, false, false, func(uint32) {}); err != nil {
		return nil, err
	}
	select {
	case a := <-m.answers:
		if !a.succeeded {
			const longest = 200
			text := string(a.body[:min(len(a.body), longest)])
			return nil, driver.Errorf(driver.ClassOther, "", lookAtBroker, "the broker says: %s", text)
		}
		return a.body, nil
	case err := <-m.refused:
		return nil, err
	case <-m.lost:
		m.s.mu.Lock()
		defer m.s.mu.Unlock()
		return nil, m.err
	case <-ctx.Done():
		return nil, driver.Errorf(driver.ClassTimeout, "", "", "no answer: %w", ctx.Err())
	}
}

// take takes an answer. It is called by the reader.
func (m *artemisPair) take(payload []byte) error {
	var message wire.Message
	if err := message.Decode(payload); err != nil {
		return protocolError("an answer that cannot be read: %w", err)
	}
	value := wire.NewDecoder(message.Body)
	text, isText := value.Text()
	if message.BodyKind != wire.DescValue || !isText {
		text = message.Body
	}
	succeeded := wire.Lookup(message.ApplicationProperties, "_AMQ_OperationSucceeded")
	a := artemisAnswer{succeeded: succeeded.Bool(), body: append([]byte(nil), text...)}
	select {
	case m.answers <- a:
		return nil
	default:
		return protocolError("an answer to no request")
	}
}

// artemisQueue holds the counters of a queue in the answer of listQueues, texts all of them (QueueView).
type artemisQueue struct {
	Name         string `json:"name"`
	Address      string `json:"address"`
	RoutingType  string `json:"routingType"`
	Messages     string `json:"messageCount"`
	Added        string `json:"messagesAdded"`
	Acknowledged string `json:"messagesAcked"`
	Consumers    string `json:"consumerCount"`
}

// count asks for the counters of a destination: of a queue the counters of all anycast queues of its address, or of the
// named queue (ADDRESS::QUEUE); of a topic the counters of all multicast queues, and the number of messages sent to the
// address.
func (m *artemisPair) count(ctx context.Context, dest driver.Destination) (n driver.DestinationCount, err error) {
	const most = 1000
	address, queue, qualified := strings.Cut(dest.Name, "::")
	filter, err := json.Marshal(map[string]string{"field": "address", "operation": "EQUALS", "value": address})
	if err != nil {
		return n, err
	}
	body, err := m.call(ctx, "broker", "listQueues", string(filter), 1, most)
	if err != nil {
		return n, err
	}
	var result []string // of one text, which is JSON
	var page struct {
		Data  []artemisQueue `json:"data"`
		Count int            `json:"count"`
	}
	if err := json.Unmarshal(body, &result); err != nil || len(result) != 1 ||
		json.Unmarshal([]byte(result[0]), &page) != nil {
		return n, protocolError("an answer with other counters than were asked for: %.100q", body)
	}
	if page.Count > most {
		return n, driver.Errorf(driver.ClassUnsupported, "", "", "%s has %d queues; at most %d are counted", dest, page.Count,
			most)
	}
	routing := "ANYCAST"
	if dest.Kind == driver.Topic {
		routing = "MULTICAST"
	}
	n = driver.NoDestination()
	for _, q := range page.Data {
		if q.Address != address || q.RoutingType != routing && !qualified || qualified && q.Name != queue {
			continue
		}
		n.Depth = n.Depth.Plus(counted(q.Messages))
		n.Added = n.Added.Plus(counted(q.Added))
		n.Acknowledged = n.Acknowledged.Plus(counted(q.Acknowledged))
		n.Consumers = n.Consumers.Plus(counted(q.Consumers))
	}
	if dest.Kind == driver.Topic && !qualified {
		n.Acknowledged = driver.Count{} // subscriptions take their counters with them
		n.Added, err = m.routed(ctx, address)
	}
	return n, err
}

// routed returns how many messages were sent to an address, including messages that had no subscription to go to.
func (m *artemisPair) routed(ctx context.Context, address string) (n driver.Count, err error) {
	n = driver.Counted(0)
	for _, attribute := range []string{"routedMessageCount", "unRoutedMessageCount"} {
		body, err := m.attribute(ctx, "address."+address, attribute)
		if driver.ClassOf(err) == driver.ClassOther {
			return driver.Counted(0), nil // it does not exist
		}
		if err != nil {
			return n, err
		}
		var result []uint64
		if json.Unmarshal(body, &result) != nil || len(result) != 1 {
			return n, protocolError("an answer with another counter than was asked for: %.100q", body)
		}
		n.N += result[0]
	}
	return n, nil
}

func counted(text string) driver.Count {
	n, err := strconv.ParseUint(text, 10, 64)
	return driver.Count{N: n, Known: err == nil}
}
