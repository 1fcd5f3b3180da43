// Package goamqp is AMQP 1.0 on the client library github.com/Azure/go-amqp, used as an application uses it. It shares
// no protocol code with the native driver, see internal/drivers/amqp.
//
// It refuses features that the library lacks: transactions. It also refuses features for which the native driver knows
// details of a broker: durable and shared subscriptions, names with special characters, RabbitMQ before 4, and the
// declaration of queues.
package goamqp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Factory describes the protocol and opens drivers for it.
func Factory() driver.Factory {
	p := protocol.AMQP()
	kind := protocol.LibraryFeatures()
	f := driver.Factory{
		Name: "amqp", Title: "AMQP 1.0", Client: "go-amqp", Hosts: p.Hosts,
		Capabilities: driver.Capabilities{TLS: true, Queue: kind, Topic: kind},
	}
	return transport.Factory(f, p, func() *struct{} { return &struct{}{} }, nil,
		func(s transport.Settings[struct{}]) driver.Driver {
			d := &amqpDriver{factory: f, cfg: s}
			d.pool.Open = d.dial
			return d
		})
}

// amqpDriver is a [driver.Driver]: a set of connections by key.
type amqpDriver struct {
	transport.Identity
	pool    transport.Pool[*connection] // no [driver.Connector]: the library does not report an idle connection's end
	factory driver.Factory
	cfg     transport.Settings[struct{}]
}

// Close implements [driver.Driver].
func (d *amqpDriver) Close(ctx context.Context) error { return d.pool.Close(ctx) }

// connection is an AMQP connection. Each producer and consumer has a session of its own on it.
type connection struct {
	amqp    *amqp.Conn
	net     net.Conn
	host    string
	prefix  map[driver.Kind]string // of names in its addresses
	factory driver.Factory         // with the features of the broker
}

// dial opens a connection. Artemis shows the container ID as client ID.
func (d *amqpDriver) dial(ctx context.Context, spec driver.Connection) (*connection, error) {
	return transport.Dial(ctx, protocol.AMQP(), &d.cfg, &spec, func(
		ctx context.Context, host transport.Endpoint, conn net.Conn, _ *transport.Metered,
	) (*connection, error) {
		o := &amqp.ConnOptions{
			ContainerID: cmp.Or(spec.ClientID, spec.Name), HostName: host.Host, SASLType: amqp.SASLTypeAnonymous(),
		}
		if user := d.cfg.Target.User; user != "" {
			o.SASLType = amqp.SASLTypePlain(user, d.cfg.Target.Password)
		}
		opened, err := amqp.NewConn(ctx, conn, o)
		if err != nil {
			return nil, refused(err)
		}
		c := &connection{amqp: opened, net: conn, host: host.String()}
		product, _ := opened.Properties()["product"].(string)
		version, _ := opened.Properties()["version"].(string)
		d.Tell(product, version)
		return c, c.adapt(protocol.Broker(product, version), d.factory)
	})
}

// Dead implements [transport.Shared].
func (c *connection) Dead() bool { return c.amqp.Err() != nil }

// End implements [transport.Shared].
func (c *connection) End(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = c.net.Close() }) // otherwise the library waits for a hung write
	defer stop()
	_ = c.amqp.Close()
}

// classes are the classes of error conditions (AMQP 1.0, Transport, section 2.8) that name a cause.
func classes() map[amqp.ErrCond]driver.Class {
	return map[amqp.ErrCond]driver.Class{
		amqp.ErrCondNotFound: driver.ClassNotFound, amqp.ErrCondResourceDeleted: driver.ClassNotFound,
		amqp.ErrCondUnauthorizedAccess: driver.ClassAuth, amqp.ErrCondResourceLimitExceeded: driver.ClassFull,
		amqp.ErrCondMessageSizeExceeded: driver.ClassTooLarge, amqp.ErrCondNotAllowed: driver.ClassUnsupported,
		amqp.ErrCondNotImplemented: driver.ClassUnsupported,
	}
}

// explain converts an error of the library into one with a class.
func explain(op string, err error) *driver.Error {
	var known *driver.Error
	var link *amqp.LinkError
	var peer *amqp.Error
	class, hint := driver.ClassOf(err), transport.HintLog+"; --client native says more about many failures"
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, new(*amqp.ConnError)):
		class = driver.ClassConnectionLost
	case errors.As(err, &link) && link.RemoteErr == nil && *link != (amqp.LinkError{}):
		class, hint = driver.ClassProtocol, "the library ended the link: was a message larger than perfmq takes?"
	case ended(err):
		class = driver.ClassClosedByBroker
	case errors.Is(err, context.Canceled):
		class, hint = driver.ClassTimeout, transport.Silent("")
	}
	if errors.As(err, &peer) && classes()[peer.Condition] != driver.ClassNone {
		reason := classes()[peer.Condition]
		if ended(err) {
			reason = class.LossBy(reason)
		}
		class = reason
	}
	return &driver.Error{Class: class, Op: op, Hint: hint, Err: err}
}

// refused adds a class to the error of [amqp.NewConn]: the library has types for all failures except a refused login.
func refused(err error) error {
	if driver.ClassOf(err) != driver.ClassOther || errors.As(err, new(*amqp.ConnError)) ||
		errors.Is(err, context.Canceled) {
		return err
	}
	return driver.Errorf(driver.ClassAuth, "", "check --user, --password and the port",
		"the broker refused the login: %w", err)
}

// ended reports whether a send failed because link, session or connection have ended: the message may have left.
// Otherwise the library has not written it, or not completely.
func ended(err error) bool {
	return errors.As(err, new(*amqp.ConnError)) || errors.As(err, new(*amqp.SessionError)) ||
		errors.As(err, new(*amqp.LinkError))
}

// party is a producer or consumer.
type party struct {
	*transport.Lease[*connection]
	session *amqp.Session
	address string
	op      string // its usual operation, for errors
	closed  bool
	stages  driver.Stages
	began   time.Time // to attach
}

// join begins a session for a producer or consumer of dest, unless check refuses the features of the broker.
func (d *amqpDriver) join(
	ctx context.Context, spec driver.Connection, dest driver.Destination, op string, check func(*driver.Factory) error,
) (p party, err error) {
	p.Lease, err = library.Join(ctx, &d.pool, spec, func(c *connection) error { return check(&c.factory) })
	if err != nil {
		return p, err
	}
	p.stages, p.began = spec.Stages, time.Now()
	if p.session, err = p.Conn.begin(ctx); err != nil {
		p.Release(ctx)
		return p, explain(op, err)
	}
	p.address = p.Conn.prefix[dest.Kind] + dest.Name
	return p, nil
}

// begin begins a session. If a context ends meanwhile, the library ends the session at its next call, even if the
// broker does not know it yet, which closes the connection. So it gets a context without an end.
func (c *connection) begin(ctx context.Context) (*amqp.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return library.Bounded(ctx, func() (*amqp.Session, error) {
		s, err := c.amqp.NewSession(context.WithoutCancel(ctx), nil)
		if err == nil && ctx.Err() != nil {
			_ = s.Close(context.WithoutCancel(ctx)) // nobody waits for it any more
		}
		return s, err
	})
}

// Host implements [driver.Located].
func (p *party) Host() string { return p.Conn.host }

// leave reverses join, once.
func (p *party) leave(ctx context.Context) {
	if !p.closed {
		_ = p.session.Close(ctx)
		p.Release(ctx)
	}
	p.closed = true
}

// adapt sets the differences between brokers.
func (c *connection) adapt(broker string, f driver.Factory) error {
	topic, queue := &f.Capabilities.Topic, &f.Capabilities.Queue
	switch broker {
	case protocol.ActiveMQ:
		c.prefix = map[driver.Kind]string{driver.Queue: "queue://", driver.Topic: "topic://"}
	case protocol.BrokerJ:
		c.prefix, topic.Group = map[driver.Kind]string{driver.Topic: "amq.topic/"}, false
		queue.Reject, topic.Reject = false, false // rejected messages come again
	case protocol.RabbitMQ3:
		// the library does not work around its faults
		return library.Unsupported("", "use --client native", "RabbitMQ before 4 is not supported over go-amqp")
	case protocol.RabbitMQ: // it has no consumers of topics, and priorities in only some of its queues
		c.prefix = map[driver.Kind]string{driver.Queue: "/queues/"}
		topic.Exists, queue.Group, queue.Selector, queue.Priority = false, false, false, false
	}
	c.factory = f
	return nil
}
