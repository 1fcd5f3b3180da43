package amqp

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"sync"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// manager asks RabbitMQ 4 over its management node: requests and answers of HTTP as AMQP messages over a pair of
// links (HTTP over AMQP, working draft 06, sections 4 and 5; RabbitMQ's documentation of AMQP 1.0, "Management"). It
// is safe for concurrent use.
type manager struct {
	mu   sync.Mutex
	pair *pair  // nil when there is none
	last uint64 // number of the last request
}

// manageTries bounds the requests when the broker ends the session because it has not yet seen our credit for its
// answer.
const manageTries = 5

// ask sends a request, with a body unless that is nil, and waits for the broker's HTTP status and its encoded value.
func (c *connection) ask(
	ctx context.Context, method, path string, body []byte,
) (status string, value []byte, err error) {
	m := &c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	for try := 1; ; try++ {
		if status, value, err = c.askOnce(ctx, method, path, body); err == nil {
			return status, value, nil
		}
		if m.pair != nil {
			m.pair.s.close(ctx)
			m.pair = nil
		}
		if try == manageTries || conditionOf(err) != wire.CondPrecondition {
			return "", nil, err
		}
	}
}

func (c *connection) askOnce(
	ctx context.Context, method, path string, body []byte,
) (status string, value []byte, err error) {
	m := &c.manager
	if m.pair == nil {
		paired := wire.BeginMap(nil)
		paired = wire.AppendBool(wire.AppendSymbol(paired, "paired"), true)
		wire.EndCompound(paired, 0, 2)
		node := wire.Attach{
			Source:     wire.Terminus{Kind: wire.DescSource, Address: wire.Some("/management")},
			Target:     wire.Terminus{Kind: wire.DescTarget, Address: wire.Some("/management")},
			Properties: paired, SenderSettleMode: wire.SenderSettled,
		}
		if m.pair, err = c.openPair(ctx, node, node); err != nil {
			return "", nil, err
		}
	}
	if body == nil {
		body = wire.AppendNull(nil)
	}
	m.last++
	properties := wire.Properties{
		MessageID: wire.AppendUlong(nil, m.last), To: []byte(path), Subject: []byte(method), ReplyTo: []byte("$me"),
	}
	request := append(wire.AppendDescriptor(properties.AppendSection(nil), wire.DescValue), body...)
	answer, err := m.pair.ask(ctx, request, true)
	if err != nil {
		return "", nil, err
	}
	if err := properties.Decode(answer.Properties); err != nil {
		return "", nil, unreadable("an answer", err)
	}
	id := wire.NewDecoder(properties.CorrelationID)
	if number, _ := id.Integer(); number != int64(m.last) { //nolint:gosec // counted from 1
		return "", nil, unexpected("answer to request", number)
	}
	return string(properties.Subject), answer.Body, nil
}

// declaration returns the body of a request that declares a queue.
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

// queue declares a queue by the options, or asks for its kind. It reports whether the queue has priorities.
func (c *connection) queue(ctx context.Context, name string, o *Options) (prioritized bool, err error) {
	path := "/queues/" + url.PathEscape(name)
	method, body := "GET", []byte(nil)
	if o.Declare != declareNo {
		method, body = "PUT", o.declaration()
	}
	status, value, err := c.ask(ctx, method, path, body)
	if err != nil {
		return false, err
	}
	class, hint, what := driver.ClassOther, lookAtBroker, "the broker refuses the queue"
	switch status {
	case "200", "201":
		class = driver.ClassNone
	case "404":
		class, hint, what = driver.ClassNotFound, hintDeclare, "it does not exist"
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
	kind := wire.Lookup(value, "type")
	text, _ := kind.Text()
	arguments := wire.Lookup(value, "arguments")
	highest := wire.Lookup(arguments.Raw(), "x-max-priority")
	n, _ := highest.Integer()
	return string(text) != "classic" || n > 0, c.refuse(string(text) == "stream", "use a classic or quorum queue",
		"each consumer of a stream gets all messages")
}

// managed reports whether to ask RabbitMQ 4 about a destination: a queue by its name.
func (d dialect) managed(dest driver.Destination) bool {
	return d == rabbitmq && dest.Kind == driver.Queue && !strings.HasPrefix(dest.Name, "/")
}

// prepareSend declares the queue, if the user wants that, and refuses settings that it would ignore.
func (c *connection) prepareSend(ctx context.Context, spec *driver.ProducerSpec, o *Options) error {
	err := c.refuse(spec.Delay > 0 && !c.delays, protocol.HintNoDelay,
		"it does not offer the capability "+capDelayed+", and would deliver at once")
	if err != nil || !c.managed(spec.Destination) || o.Declare == declareNo && !hasPriority(spec) {
		return err
	}
	ordered, err := c.queue(ctx, spec.Destination.Name, o)
	return cmp.Or(err, c.refuse(hasPriority(spec) && !ordered,
		"declare it with x-max-priority: -o declare=classic -o max-priority=9, or use a quorum queue",
		"the queue has no priorities"))
}

// hintDeclare is the hint for queues that RabbitMQ 4 does not have.
const hintDeclare = "declare it on the broker, or let us do it by -o declare=classic (or quorum)"
