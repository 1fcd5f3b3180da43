package amqp

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
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

// reply is the broker's reply, with an HTTP status.
type reply struct {
	status int
	body   []byte // an encoded value
}

// words returns the broker's text about a failed request.
func (r reply) words() string {
	const longest = 300
	d := wire.NewDecoder(r.body)
	if text, ok := d.Text(); ok && len(text) > 0 {
		return string(text[:min(len(text), longest)])
	}
	return "status " + strconv.Itoa(r.status)
}

// manageTries bounds the requests when the broker ends the session because it has not yet seen our credit for its
// answer.
const manageTries = 5

// ask sends a request and waits for its reply. A nil body means none.
func (c *connection) ask(ctx context.Context, method, path string, body []byte) (reply, error) {
	m := &c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	for try := 1; ; try++ {
		r, err := c.askOnce(ctx, method, path, body)
		if err == nil {
			return r, nil
		}
		if m.pair != nil {
			m.pair.s.close(ctx)
			m.pair = nil
		}
		if try == manageTries || conditionOf(err) != wire.CondPrecondition {
			return r, err
		}
	}
}

func (c *connection) askOnce(ctx context.Context, method, path string, body []byte) (r reply, err error) {
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
			return r, err
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
		return r, err
	}
	if err := properties.Decode(answer.Properties); err != nil {
		return r, unreadable("an answer", err)
	}
	id := wire.NewDecoder(properties.CorrelationID)
	if number, _ := id.Integer(); number != int64(m.last) { //nolint:gosec // counted from 1
		return r, unexpected("answer to request", number)
	}
	if r.status, err = strconv.Atoi(string(properties.Subject)); err != nil {
		return r, unexpected("status", properties.Subject)
	}
	r.body = answer.Body
	return r, nil
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
	a, err := c.ask(ctx, method, path, body)
	if err != nil {
		return false, err
	}
	class, hint, what := driver.ClassOther, lookAtBroker, "the broker refuses the queue"
	switch a.status {
	case 200, 201:
		class = driver.ClassNone
	case 404:
		class, hint, what = driver.ClassNotFound, hintDeclare, "it does not exist"
	case 409:
		hint, what = "leave out -o declare, or use another name", "the queue exists with other settings"
	case 401, 403:
		class, hint, what = driver.ClassAuth, "check the user's permissions for this queue", "not authorised"
	}
	if class != driver.ClassNone {
		return false, driver.Errorf(class, "", hint, "%s: %s", what, a.words())
	}
	kind := wire.Lookup(a.body, "type")
	text, _ := kind.Text()
	arguments := wire.Lookup(a.body, "arguments")
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
