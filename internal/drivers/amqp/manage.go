package amqp

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

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
	wire.EndCompound(arguments, 0, 2)
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
	return kind != "classic" || n > 0, c.refuse(kind == "stream", "use a classic or quorum queue",
		"each consumer of a stream gets all messages")
}

// managed reports whether to ask RabbitMQ 4 about a destination: a queue by its name.
func (d dialect) managed(dest driver.Destination) bool {
	return d == rabbitmq && dest.Kind == driver.Queue && !strings.HasPrefix(dest.Name, "/")
}

// prepareSend declares the queue, if the user wants that, and refuses settings that it would ignore.
func (c *connection) prepareSend(ctx context.Context, spec *driver.ProducerSpec, o *Options) error {
	err := c.refuse(spec.Delay > 0 && !c.delays, protocol.HintNoDelay,
		"without the capability "+capDelayed+" it would deliver at once")
	if err != nil || !c.managed(spec.Destination) || o.Declare == declareNo && !hasPriority(spec) {
		return err
	}
	ordered, err := c.queue(ctx, spec.Destination.Name, o)
	return cmp.Or(err, c.refuse(hasPriority(spec) && !ordered, "use a quorum queue, or declare it with x-max-priority",
		"the queue has no priorities"))
}

// hintDeclare is the hint for queues that RabbitMQ 4 does not have.
const hintDeclare = "declare it on the broker, or add -o declare=classic (or quorum)"
