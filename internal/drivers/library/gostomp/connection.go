// Package gostomp is STOMP on the client library github.com/go-stomp/stomp/v3, used as an application uses it. It
// shares no protocol code with the native driver, see internal/drivers/stomp, except the meaning of brokers' names and
// error texts.
//
// The library has one receipt in flight per connection: a send holds the connection until the broker has confirmed it,
// even if --max-pending is larger. It reads bodies of any size: --max-message-size ends a consumer only once such a
// body is in memory. When a broker dies, the library may leak a goroutine, with the data that it has read. It may also
// leak one when a subscription ends, because the goroutine that signals the end does not hold the lock under which
// another decides to wait for the signal.
package gostomp

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Options are the settings of this driver.
type Options struct {
	VirtualHost string `opt:"virtual-host" help:"virtual host; / suits RabbitMQ, and others ignore it"`
}

// Factory describes the protocol and opens drivers for it.
func Factory() driver.Factory {
	p := protocol.STOMP()
	kind := protocol.LibraryFeatures()
	kind.Reject, kind.Release = false, false
	f := driver.Factory{
		Name: "stomp", Title: "STOMP 1.2", Client: "go-stomp", Hosts: p.Hosts,
		Capabilities: driver.Capabilities{TLS: true, Unattached: true, Queue: kind, Topic: kind},
		InFlight: func(any, *driver.ProducerSpec) driver.InFlight { // Send holds the connection until the receipt
			return driver.InFlight{Messages: 1, PerConnection: true, Hint: "try --client native, or more connections"}
		},
	}
	return transport.Factory(f, p, func() *Options { return &Options{VirtualHost: "/"} }, nil,
		func(s transport.Settings[Options]) driver.Driver {
			d := &stompDriver{factory: f, cfg: s}
			d.pool.Open = d.dial
			return d
		})
}

// stompDriver is a [driver.Driver]: a set of connections by key.
type stompDriver struct {
	transport.Identity
	pool    transport.Pool[*connection] // no [driver.Connector]: the library does not report an idle connection's end
	factory driver.Factory
	cfg     transport.Settings[Options]
	took    sync.Map // the destinations to which the broker has confirmed a message
}

// Close implements [driver.Driver].
func (d *stompDriver) Close(ctx context.Context) error { return d.pool.Close(ctx) }

// connection is a STOMP connection.
type connection struct {
	stomp *stomp.Conn
	net   *library.Conn
	host  string
	dialect
	ids        atomic.Int64 // of receipts; they differ from the library's names, which are numbers
	unanswered atomic.Bool  // we closed it while the broker owed an answer
}

func (d *stompDriver) dial(ctx context.Context, spec driver.Connection) (*connection, error) {
	return transport.Dial(ctx, protocol.STOMP(), &d.cfg, &spec, func(
		ctx context.Context, host transport.Endpoint, conn net.Conn, _ *transport.Metered,
	) (*connection, error) {
		c := &connection{net: library.NewConn(conn), host: host.String()}
		options := []func(*stomp.Conn) error{
			stomp.ConnOpt.Host(d.cfg.Options.VirtualHost), stomp.ConnOpt.AcceptVersion(stomp.V12),
			stomp.ConnOpt.Logger(library.Silence{}), stomp.ConnOpt.UnsubscribeReceiptTimeout(0),
		}
		if t := &d.cfg.Target; t.User != "" {
			options = append(options, stomp.ConnOpt.Login(t.User, t.Password))
		}
		if spec.ClientID != "" {
			options = append(options, stomp.ConnOpt.Header("client-id", spec.ClientID))
		}
		defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
		var err error
		if c.stomp, err = stomp.ConnectWithContext(ctx, c.net, options...); err != nil {
			if e := c.said("", err); e != nil {
				if e.Class == driver.ClassOther {
					e.Class = driver.ClassConnect
				}
				return nil, e
			}
			return nil, err
		}
		d.Tell(protocol.STOMPServer(c.stomp.Server()))
		c.dialect = dialectOf(c.stomp.Server(), d.factory)
		return c, nil
	})
}

// Dead implements [transport.Shared].
func (c *connection) Dead() bool { return c.net.HasEnded() }

// End implements [transport.Shared].
func (c *connection) End(ctx context.Context) {
	if !c.Dead() { // otherwise the library waits for an answer
		_ = library.Call(ctx, c.stomp.Disconnect)
	}
	_ = c.net.Close()
}

// giveUp ends a connection on which the broker owes an answer, once no one waits for it.
func (c *connection) giveUp() {
	c.unanswered.Store(true)
	_ = c.net.Close()
}

// dialect has the differences between brokers.
type dialect struct {
	broker       string         // one of package protocol; "" if unknown
	queue, topic string         // prefixes of names; if there are none, a header gives the kind of a destination
	credit       string         // the header for credit; brokers without it ignore it
	size         int            // bytes per message of credit
	factory      driver.Factory // with the features of the broker
}

func dialectOf(server string, f driver.Factory) dialect {
	d := dialect{
		broker: protocol.STOMPBroker(server), queue: "/queue/", topic: "/topic/", credit: "prefetch-count", size: 1,
	}
	switch d.broker {
	case protocol.Perfmq:
		d.queue, d.topic = "queue://", "topic://"
	case protocol.Artemis: // it counts bytes, and a frame has more than these
		d.queue, d.topic, d.credit, d.size = "", "", "consumer-window-size", 256
	case protocol.ActiveMQ:
		d.credit = "activemq.prefetchSize"
	default:
		kind := driver.KindCapabilities{
			Exists: true, Persistent: true, Properties: true, Credit: d.broker == protocol.RabbitMQ,
		}
		f.Capabilities.Queue, f.Capabilities.Topic = kind, kind
	}
	d.factory = f
	return d
}

func (d *dialect) address(dest driver.Destination) string {
	if dest.Kind == driver.Topic {
		return d.topic + dest.Name
	}
	return d.queue + dest.Name
}

// kind returns the header for the kind of a destination, for Artemis.
func (d *dialect) kind(header string, kind driver.Kind) []string {
	if d.queue == "" {
		return []string{header, protocol.Routing(kind)}
	}
	return nil
}

// lost returns the error about a connection that was lost.
func lost(op string, err error) *driver.Error {
	return &driver.Error{Class: driver.ClassConnectionLost, Op: op, Hint: transport.HintAlive, Err: err}
}

// errEnded says that a connection has ended without a reason of the broker.
func errEnded() error { return errors.New("the connection has ended") }

// errorFrame returns the broker's ERROR frame inside err, or nil. The library also makes such frames itself, to report
// the end of a connection: they have a nil body, while a received frame has at least an empty one.
func errorFrame(err error) *frame.Frame {
	var value stomp.Error
	var pointer *stomp.Error // of a subscription
	switch {
	case errors.As(err, &pointer):
		value = *pointer
	case !errors.As(err, &value):
		return nil
	}
	if f := value.Frame; f != nil && f.Command == frame.ERROR && f.Body != nil {
		return f
	}
	return nil
}

// said returns the broker's error, of the operation op, if err is about an ERROR frame; else nil.
func (d *dialect) said(op string, err error) *driver.Error {
	f := errorFrame(err)
	if f == nil {
		return nil
	}
	e := protocol.STOMPError(d.broker, f.Header.Get(frame.Message), f.Body)
	e.Op = op
	return e
}

// explain returns why a connection can no longer be used for op: the broker's reason, or that it was lost.
func (d *dialect) explain(op string, err error) *driver.Error {
	if e := d.said(op, err); e != nil {
		e.Class = driver.ClassClosedByBroker.LossBy(e.Class)
		return e
	}
	return lost(op, err)
}
