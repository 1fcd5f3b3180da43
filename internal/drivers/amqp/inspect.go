package amqp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// artemisNode is the address of Artemis that takes management messages.
const artemisNode = "activemq.management"

// Inspect implements [driver.Inspector]. Among the brokers that speak AMQP, only Artemis can be asked: by management
// messages (Artemis documentation, "Using Management Message API"), requests to an address, answers to a temporary
// queue. They have a connection of their own, which is closed after a failed request.
func (d *amqpDriver) Inspect(
	ctx context.Context, destinations []driver.Destination,
) ([]driver.DestinationCount, error) {
	list, err := d.inspect(ctx, destinations)
	if err == nil {
		return list, nil
	}
	if d.asking != nil {
		d.asking.Release(ctx)
		d.asking = nil
	}
	return nil, fmt.Errorf("ask for counters: %w", err)
}

func (d *amqpDriver) inspect(
	ctx context.Context, destinations []driver.Destination,
) (_ []driver.DestinationCount, err error) {
	if d.asking == nil {
		const name = "perfmq-management"
		own := driver.Connection{
			Key: "\x00" + name, Name: name + "-" + strings.ToLower(rand.Text()[:10]), Order: d.askedHost,
		}
		if d.asking, err = d.Acquire(ctx, own); err != nil {
			return nil, err
		}
		is := func(e transport.Endpoint) bool { return e.String() == d.asking.Conn.Host() }
		d.askedHost = []int{slices.IndexFunc(d.cfg.Target.Hosts, is)}
	}
	c := d.asking.Conn
	if err = c.refuse(c.dialect != artemis, "see --management-url", "it cannot be asked for its counters"); err != nil {
		return nil, err
	}
	list := make([]driver.DestinationCount, 0, len(destinations))
	for _, dest := range destinations {
		n, err := c.count(ctx, dest)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// askArtemis calls an operation of a resource, or reads an attribute of it, as the property kind says, and returns the
// result, JSON.
func (c *connection) askArtemis(ctx context.Context, resource, kind, name string, arguments ...any) ([]byte, error) {
	if arguments == nil {
		arguments = []any{}
	}
	body, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	sections := wire.AppendDescriptor(nil, wire.DescApplicationProperties)
	sections = wire.AppendTexts(sections, false, "_AMQ_ResourceName", resource, kind, name)
	sections = wire.AppendStr(wire.AppendDescriptor(sections, wire.DescValue), body)
	answer, err := c.node.ask(ctx, c, wire.Properties{To: []byte(artemisNode)}, sections)
	switch {
	case errors.Is(err, errRefused): // Artemis 2.56 gives no reason; in a running broker it is the user
		return nil, driver.Errorf(driver.ClassAuth, "", "give the user that permission, or use --management-url",
			"it refuses: the user may lack the permission manage on the address %s", artemisNode)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil, driver.Errorf(driver.ClassTimeout, "", "", "no answer: %w", ctx.Err())
	case err != nil:
		return nil, err
	}
	value := wire.NewDecoder(answer.Body)
	text, isText := value.Text()
	if answer.BodyKind != wire.DescValue || !isText {
		text = answer.Body
	}
	succeeded := wire.Lookup(answer.ApplicationProperties, "_AMQ_OperationSucceeded")
	if !succeeded.Bool() {
		const longest = 200
		return nil, driver.Errorf(driver.ClassOther, "", lookAtBroker, "the broker says: %s", text[:min(len(text), longest)])
	}
	return text, nil
}

// count asks for the counters of a destination: of a queue the counters of all anycast queues of its address, or of the
// named queue (ADDRESS::QUEUE); of a topic the counters of all multicast queues, and the number of messages sent to the
// address.
func (c *connection) count(ctx context.Context, dest driver.Destination) (n driver.DestinationCount, err error) {
	const most = 1000
	address, queue, qualified := strings.Cut(dest.Name, "::")
	filter, err := json.Marshal(map[string]string{"field": "address", "operation": "EQUALS", "value": address})
	if err != nil {
		return n, err
	}
	body, err := c.askArtemis(ctx, "broker", "_AMQ_OperationName", "listQueues", string(filter), 1, most)
	if err != nil {
		return n, err
	}
	var result []string // of one text with JSON
	var page struct {
		Data []struct { // all of them as text (QueueView)
			Name         string `json:"name"`
			Address      string `json:"address"`
			RoutingType  string `json:"routingType"`
			Messages     string `json:"messageCount"`
			Added        string `json:"messagesAdded"`
			Acknowledged string `json:"messagesAcked"`
			Consumers    string `json:"consumerCount"`
		} `json:"data"`
		Count int `json:"count"`
	}
	if err := json.Unmarshal(body, &result); err != nil || len(result) != 1 ||
		json.Unmarshal([]byte(result[0]), &page) != nil {
		return n, unexpected("answer", body)
	}
	if page.Count > most {
		return n, driver.Errorf(driver.ClassUnsupported, "", "", "%s has %d queues; at most %d are counted", dest, page.Count,
			most)
	}
	routing := protocol.Routing(dest.Kind)
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
		n.Acknowledged = driver.Count{} // the counters of a subscription end with it
		n.Added, err = c.routed(ctx, address)
	}
	return n, err
}

// routed returns the number of messages that were sent to an address, including messages without a subscription to
// receive them.
func (c *connection) routed(ctx context.Context, address string) (n driver.Count, err error) {
	n = driver.Counted(0)
	for _, attribute := range []string{"routedMessageCount", "unRoutedMessageCount"} {
		body, err := c.askArtemis(ctx, "address."+address, "_AMQ_Attribute", attribute)
		if driver.ClassOf(err) == driver.ClassOther {
			return driver.Counted(0), nil // the address does not exist
		}
		if err != nil {
			return n, err
		}
		var result []uint64
		if json.Unmarshal(body, &result) != nil || len(result) != 1 {
			return n, unexpected("answer", body)
		}
		n.N += result[0]
	}
	return n, nil
}

func counted(text string) driver.Count {
	n, err := strconv.ParseUint(text, 10, 64)
	return driver.Count{N: n, Known: err == nil}
}

// manage asks RabbitMQ 4 over its management node: requests and answers of HTTP as AMQP messages (HTTP over AMQP,
// working draft 06, sections 4 and 5; RabbitMQ's documentation of AMQP 1.0, "Management"). It sends a request, with a
// body unless that is nil, and waits for the broker's HTTP status and its encoded value.
func (c *connection) manage(
	ctx context.Context, method, path string, body []byte,
) (status string, value []byte, err error) {
	if body == nil {
		body = wire.AppendNull(nil)
	}
	properties := wire.Properties{To: []byte(path), Subject: []byte(method)}
	answer, err := c.node.ask(ctx, c, properties, append(wire.AppendDescriptor(nil, wire.DescValue), body...))
	if err != nil {
		return "", nil, err
	}
	if err := properties.Decode(answer.Properties); err != nil {
		return "", nil, unreadable("an answer", err)
	}
	return string(properties.Subject), answer.Body, nil
}

// declaration returns the body of a request that declares a queue.
func (o *Options) declaration() []byte {
	arguments := wire.AppendStr(wire.AppendStr(wire.BeginMap(nil), "x-queue-type"), o.Declare)
	n := 2
	if o.DeliveryLimit > 0 {
		arguments, n = wire.AppendLong(wire.AppendStr(arguments, "x-delivery-limit"), int64(o.DeliveryLimit)), 4
	}
	wire.EndCompound(arguments, 0, n)
	b := wire.BeginMap(nil)
	b = wire.AppendBool(wire.AppendStr(b, "durable"), true)
	b = wire.AppendBool(wire.AppendStr(b, "exclusive"), false)
	b = wire.AppendBool(wire.AppendStr(b, "auto_delete"), false)
	b = append(wire.AppendStr(b, "arguments"), arguments...)
	wire.EndCompound(b, 0, 8)
	return b
}

// queue declares a queue or stream by the options, or asks for its kind. It reports whether it has priorities.
func (c *connection) queue(ctx context.Context, dest driver.Destination, o *Options) (prioritized bool, err error) {
	path := c.address(dest)
	method, body := "GET", []byte(nil)
	if o.Declare != declareNo {
		method, body = "PUT", o.declaration()
	}
	status, value, err := c.manage(ctx, method, path, body)
	if err != nil {
		return false, err
	}
	class, hint, what := driver.ClassOther, lookAtBroker, "the broker refuses the queue"
	switch status {
	case "200", "201":
		class = driver.ClassNone
	case "404":
		class, hint, what = driver.ClassNotFound, hintDeclare, "it does not exist"
		if dest.Kind == driver.Topic {
			hint = "declare it on the broker, or use topic://NAME with -o declare=stream"
		}
	case "409":
		hint, what = "leave out -o declare, or use another name", "the queue exists with other settings"
	case "401", "403":
		class, hint, what = driver.ClassAuth, "check the user's permissions for this queue", "not authorised"
	}
	if class != driver.ClassNone {
		reason := wire.NewDecoder(value)
		text, _ := reason.Text()
		return false, driver.Errorf(class, "", hint, "%s: %s (status %s)", what, transport.Clip(string(text), maxWords),
			transport.Clip(status, maxCondition))
	}
	kind := wire.LookupText(value, "type")
	arguments := wire.Lookup(value, "arguments")
	highest := wire.Lookup(arguments.Raw(), "x-max-priority")
	n, _ := highest.Integer()
	stream, topic := kind == declareStream, dest.Kind == driver.Topic
	return kind != "classic" || n > 0, cmp.Or(
		c.refuse(stream && !topic, "use topic://"+path+", or a classic or quorum queue", protocol.IsStream),
		c.refuse(!stream && topic, "use queue://NAME", "it is no stream: its consumers share the messages"),
	)
}

// managed reports whether to ask RabbitMQ 4 about a destination: a queue by its name, or a stream.
func (d dialect) managed(dest driver.Destination, o *Options) bool {
	return d == rabbitmq && dest.Kind == driver.Queue && !strings.HasPrefix(dest.Name, "/") || d.stream(dest, o)
}

// prepareSend declares the queue, if the user wants that, and refuses settings that it would ignore.
func (c *connection) prepareSend(ctx context.Context, spec *driver.ProducerSpec, o *Options) error {
	if spec.Anonymous {
		return c.refuse(!c.relays && c.dialect != rabbitmq, "have another broker's queues for replies",
			"without the capability "+capRelay+" it takes no replies to other addresses")
	}
	if err := c.checkProducer(spec, o); err != nil {
		return err
	}
	err := c.refuse(spec.Delay > 0 && !c.delays, protocol.HintNoDelay,
		"without the capability "+capDelayed+" it would deliver at once")
	if err != nil || !c.managed(spec.Destination, o) || o.Declare == declareNo && !hasPriority(spec) {
		return err
	}
	ordered, err := c.queue(ctx, spec.Destination, o)
	return cmp.Or(err, c.refuse(hasPriority(spec) && !ordered, "use a quorum queue, or declare it with x-max-priority",
		"the queue has no priorities"))
}

// hintDeclare is the hint for queues that RabbitMQ 4 does not have.
const hintDeclare = "declare it on the broker, or add -o declare=classic (or quorum)"
