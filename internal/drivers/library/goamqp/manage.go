package goamqp

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/pkg/driver"
)

// manager asks RabbitMQ 4 over its management node: requests and answers of HTTP as AMQP messages over a pair of links (HTTP
// over AMQP, working draft 06, sections 4 and 5; RabbitMQ's documentation of AMQP 1.0, "Management"). It is safe for concurrent
// use; one request is under way at a time.
type manager struct {
	mu      sync.Mutex
	session *amqp.Session // nil when there is none, or it is of no use any more
	out     *amqp.Sender
	in      *amqp.Receiver
	last    uint64 // number of the last request
}

const (
	managementNode = "/management"
	// manageTries is how often to ask when the broker ends the session because our credit for its answer has not reached it
	// yet: the library sends it at a time of its own.
	manageTries = 5
)

// answer is the broker's, with the status of HTTP.
type answer struct {
	status int
	body   any
}

// words are what the broker says to a failed request.
func (a answer) words() string {
	if text, ok := a.body.(string); ok {
		return text
	}
	return "status " + strconv.Itoa(a.status)
}

// ask sends a request and waits for its answer. A body of nil is none.
func (c *connection) ask(ctx context.Context, method, path string, body any) (answer, error) {
	m := &c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	for try := 1; ; try++ {
		a, err := m.ask(ctx, c, method, path, body)
		if err == nil {
			return a, nil
		}
		session := m.session
		m.session = nil
		if session != nil && !c.dead() {
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			_ = session.Close(bounded)
			cancel()
		}
		var peer *amqp.Error
		if try == manageTries || !errors.As(err, &peer) || peer.Condition != amqp.ErrCondPreconditionFailed {
			return a, err
		}
	}
}

func (m *manager) ask(ctx context.Context, c *connection, method, path string, body any) (answer, error) {
	if m.session == nil {
		if err := m.open(ctx, c); err != nil {
			return answer{}, err
		}
	}
	if body == nil {
		body = amqp.Null{}
	}
	m.last++
	replyTo := "$me"
	err := m.out.Send(ctx, &amqp.Message{
		Value:      body,
		Properties: &amqp.MessageProperties{MessageID: m.last, To: &path, Subject: &method, ReplyTo: &replyTo},
	}, nil)
	if err != nil {
		return answer{}, err
	}
	for {
		got, err := m.in.Receive(ctx, nil)
		if err != nil {
			return answer{}, err
		}
		p := got.Properties
		if p == nil || p.Subject == nil || p.CorrelationID != m.last {
			continue // the answer to a request that was given up
		}
		status, err := strconv.Atoi(*p.Subject)
		if err != nil {
			return answer{}, driver.Errorf(driver.ClassProtocol, "", "", "the management node answered with the status %.40q", *p.Subject)
		}
		return answer{status: status, body: got.Value}, nil
	}
}

// open attaches the pair of links, the one for answers first: its credit is to be there before a request is.
func (m *manager) open(ctx context.Context, c *connection) (err error) {
	if m.session, err = c.newSession(ctx); err != nil {
		return err
	}
	settled, first := amqp.SenderSettleModeSettled, amqp.ReceiverSettleModeFirst
	pair := map[string]any{"paired": true}
	m.in, err = m.session.NewReceiver(ctx, managementNode, &amqp.ReceiverOptions{
		Name: "perfmq-management", Properties: pair, Credit: 10, TargetAddress: managementNode,
		RequestedSenderSettleMode: &settled, SettlementMode: &first,
	})
	if err != nil {
		return err
	}
	m.out, err = m.session.NewSender(ctx, managementNode, &amqp.SenderOptions{
		Name: "perfmq-management", Properties: pair, SourceAddress: managementNode, SettlementMode: &settled,
	})
	return err
}

// queueKind is what kind of queue RabbitMQ has under a name.
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

// queue declares a queue as the options say, or asks what kind of queue it is.
func (c *connection) queue(ctx context.Context, op, name string, o *Options) (queueKind, error) {
	path := "/queues/" + url.PathEscape(name)
	method, body := "GET", any(nil)
	if o.Declare != declareNo {
		arguments := map[string]any{"x-queue-type": o.Declare}
		if o.MaxPriority > 0 {
			arguments["x-max-priority"] = int64(o.MaxPriority)
		}
		method, body = "PUT", map[string]any{"durable": true, "exclusive": false, "auto_delete": false, "arguments": arguments}
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
		return queueKind{}, driver.Errorf(driver.ClassOther, op, "leave out -o declare, or delete the queue, or use another name",
			"the queue exists with other settings: %s", a.words())
	case 401, 403:
		return queueKind{}, driver.Errorf(driver.ClassAuth, op, "check the user's permissions for this queue on the broker",
			"not authorised: %s", a.words())
	default:
		return queueKind{}, driver.Errorf(driver.ClassOther, op, "look into the broker's log",
			"the broker refuses to %s the queue: %s", map[string]string{"GET": "describe", "PUT": "declare"}[method], a.words())
	}
	described, _ := a.body.(map[string]any)
	arguments, _ := described["arguments"].(map[string]any)
	q := queueKind{}
	q.kind, _ = described["type"].(string)
	q.maxPriority, _ = integer(arguments["x-max-priority"])
	return q, nil
}

// checkSend refuses what a queue of that kind would ignore.
func (q queueKind) checkSend(d dialect, op string, spec *driver.ProducerSpec) error {
	switch {
	case spec.Priority >= 0 && q.kind == kindStream:
		return d.unsupported(op, "leave out --priority", "streams have no priorities")
	case spec.Priority >= 0 && q.kind == kindClassic && q.maxPriority == 0:
		return d.unsupported(op, "declare it with x-max-priority: -o declare=classic -o max-priority=9, or use a quorum queue",
			"the queue has no priorities")
	case spec.TTL > 0 && q.kind == kindStream:
		return d.unsupported(op, "leave out --ttl", "messages of a stream do not expire one by one")
	}
	return nil
}

// managed reports whether RabbitMQ 4 is to be asked about a destination: a queue by its name.
func (d dialect) managed(dest driver.Destination) bool {
	return d == rabbitmq && dest.Kind == driver.Queue && !strings.HasPrefix(dest.Name, "/")
}

// prepareSend declares the queue, if the user wants that, and refuses what it would ignore.
func (c *connection) prepareSend(ctx context.Context, op string, spec *driver.ProducerSpec, o *Options) error {
	if !c.managed(spec.Destination) || o.Declare == declareNo && spec.Priority < 0 && spec.TTL == 0 {
		return nil
	}
	q, err := c.queue(ctx, op, spec.Destination.Name, o)
	if err != nil {
		return err
	}
	return q.checkSend(c.dialect, op, spec)
}

// prepareReceive declares the queue, if the user wants that, and makes one consumer the only one of a stream: each would
// receive all messages, where those of a queue share them.
func (c *connection) prepareReceive(ctx context.Context, op string, spec *driver.ConsumerSpec, o *Options) (free func(), err error) {
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
