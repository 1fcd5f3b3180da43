package goamqp

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// amqpDriver is a [driver.Driver]: a set of connections by key.
type amqpDriver struct {
	cfg config

	mu      sync.Mutex
	conns   map[string]*connection
	streams map[string]bool // of RabbitMQ: those with a consumer
	closed  bool
}

// connection is an AMQP connection and its users.
type connection struct {
	driver *amqpDriver
	key    string
	settle string
	idle   time.Duration
	users  int // guarded by driver.mu

	ready chan struct{} // closed when what follows is set
	err   error
	opened
	dialect
	speaks  dialect // what the broker says it is, whatever the user says
	manager manager

	namesMu sync.Mutex
	names   map[string]bool // link names of subscriptions in use

	admitted atomic.Bool // the broker has begun a session: it does not mind the connection as such

	endOnce sync.Once
	ended   chan struct{} // closed when all of the connection has ended; made by end
}

// acquire returns the connection of that key and counts one more user. It opens the connection if there is none, or if
// the one that there is has died.
func (d *amqpDriver) acquire(ctx context.Context, spec driver.Connection) (*connection, error) {
	for {
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			return nil, driver.Errorf(driver.ClassOther, "connect", "", "the driver is closed")
		}
		c := d.conns[spec.Key]
		opener := c == nil || c.dead()
		if opener {
			c = &connection{
				driver: d, key: spec.Key, settle: d.cfg.opts.Settle, idle: d.cfg.opts.IdleTimeout,
				ready: make(chan struct{}), ended: make(chan struct{}), names: map[string]bool{},
			}
			d.conns[spec.Key] = c
		}
		c.users++
		d.mu.Unlock()
		if opener {
			c.opened, c.err = d.cfg.dial(ctx, spec)
			c.speak(d.cfg.opts.Dialect)
			close(c.ready)
		}
		if !opener { // the opener has the outcome, which says more than that time is up
			select {
			case <-c.ready:
			case <-ctx.Done():
				c.release(ctx)
				return nil, driver.Errorf(driver.ClassTimeout, "connect", "", "%w", ctx.Err())
			}
		}
		if c.err == nil {
			return c, nil
		}
		c.release(ctx)
		if !opener && errors.Is(c.err, context.Canceled) && ctx.Err() == nil {
			continue // it was the opener that lost interest
		}
		return nil, c.err
	}
}

// speak chooses the dialect: the user's, or that of the broker.
func (c *connection) speak(option string) {
	if c.err == nil {
		c.speaks = dialectOf(c.amqp.Properties())
		c.dialect = c.speaks
	}
	if option != dialectAuto {
		c.dialect = dialect(option)
	}
}

// dead reports whether the connection is open no more. One that is still being opened is not dead.
func (c *connection) dead() bool {
	select {
	case <-c.ready:
	default:
		return false
	}
	if c.err != nil {
		return true
	}
	select {
	case <-c.amqp.Done():
		return true
	default:
		return false
	}
}

// beginTry is how long to wait for the answer to the first begin of a session, where it may be lost.
const beginTry = time.Second

// newSession begins a session. RabbitMQ 4 (to 4.3 at least) gives a begin on a channel whose session has ended a moment ago to
// that session, and so does not answer it. The library uses the lowest free channel, so that this happens often: another
// channel is tried, and waited for longer each time.
func (c *connection) newSession(ctx context.Context) (*amqp.Session, error) {
	s, err := c.begin(ctx)
	if err == nil {
		c.admitted.Store(true)
	}
	return s, err
}

func (c *connection) begin(ctx context.Context) (*amqp.Session, error) {
	if c.dialect != rabbitmq {
		return c.amqp.NewSession(ctx, nil)
	}
	for wait := beginTry; ; wait *= 2 {
		bounded, cancel := context.WithTimeout(ctx, wait)
		session, err := c.amqp.NewSession(bounded, nil)
		cancel()
		if err == nil || ctx.Err() != nil || c.dead() || !errors.Is(err, context.DeadlineExceeded) {
			return session, err
		}
	}
}

// anotherSession ends a session and begins another one, where names of links are free again: the library keeps that of a link
// which it has refused.
func (c *connection) anotherSession(ctx context.Context, session *amqp.Session) (*amqp.Session, error) {
	bounded, cancel := context.WithTimeout(ctx, c.endPatience())
	defer cancel()
	_ = session.Close(bounded)
	return c.newSession(ctx)
}

// leave ends the session and with it its links, then closes the connection if this was the last user. Errors are of
// no use to anybody: what matters has been settled before.
func (c *connection) leave(ctx context.Context, session *amqp.Session) {
	if session != nil && !c.dead() {
		bounded, cancel := context.WithTimeout(ctx, c.endPatience())
		_ = session.Close(bounded)
		cancel()
	}
	c.release(ctx)
}

func (c *connection) release(ctx context.Context) {
	d := c.driver
	d.mu.Lock()
	c.users--
	last := c.users == 0
	if last && d.conns[c.key] == c {
		delete(d.conns, c.key)
	}
	d.mu.Unlock()
	if last {
		c.end(ctx)
	}
}

// end closes the connection. It returns when it is closed; when ctx ends first, it does so without taking leave.
func (c *connection) end(ctx context.Context) {
	c.endOnce.Do(func() {
		go func() {
			defer close(c.ended)
			<-c.ready
			if c.err == nil {
				_ = c.amqp.Close()
			}
		}()
	})
	select {
	case <-c.ended:
	case <-ctx.Done():
		select {
		case <-c.ready:
			if c.err == nil {
				c.net.abort()
			}
			<-c.ended
		default: // still being opened, which ends by its own time-out
		}
	}
}

// abandon waits until ended is closed by goroutines that have been told to end. Those that are stuck in a write come back
// only when the connection goes.
func (c *connection) abandon(ended <-chan struct{}) {
	timer := time.NewTimer(handoverGrace)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		c.net.abort()
		<-ended
	}
}

// Close implements [driver.Driver].
func (d *amqpDriver) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	var left []*connection
	for _, c := range d.conns {
		left = append(left, c)
	}
	clear(d.conns)
	d.mu.Unlock()
	for _, c := range left {
		c.end(ctx)
	}
	return nil
}

// opened is a connection and what is below it.
type opened struct {
	amqp *amqp.Conn
	net  *gatherConn
}

// dial opens a connection to the first host that lets us in.
func (c *config) dial(ctx context.Context, spec driver.Connection) (opened, error) {
	return transport.First(ctx, c.target.Hosts, c.connectTimeout, func(ctx context.Context, host transport.Endpoint) (opened, error) {
		return c.dialHost(ctx, host, spec)
	})
}

func (c *config) dialHost(ctx context.Context, host transport.Endpoint, spec driver.Connection) (o opened, err error) {
	tcp, err := (&net.Dialer{}).DialContext(ctx, "tcp", host.String())
	if err != nil {
		return o, connectError(host, stageDial, c.target.TLS, nil, err)
	}
	raw := transport.Meter(tcp)
	conn := net.Conn(raw)
	if c.target.TLS {
		if conn, err = transport.Secure(ctx, raw, host.Host, c.tls); err != nil {
			return o, connectError(host, stageTLS, true, nil, err)
		}
	}
	o.net = newGatherConn(conn, raw)
	if o.amqp, err = amqp.NewConn(ctx, o.net, c.connOptions(host, spec)); err != nil {
		said := o.net.handshake()
		o.net.abort()
		<-o.net.done
		return o, connectError(host, stageOpen, c.target.TLS, &said, err)
	}
	return o, nil
}

// connOptions says who we are. The container ID is what Artemis shows as client ID.
func (c *config) connOptions(host transport.Endpoint, spec driver.Connection) *amqp.ConnOptions {
	o := &amqp.ConnOptions{
		ContainerID:  spec.Name,
		HostName:     host.Host,
		IdleTimeout:  c.opts.IdleTimeout,
		MaxFrameSize: uint32(c.opts.MaxFrameSize), //nolint:gosec // checked: 512 to 2^31-1
		Properties: map[string]any{
			"product":         "perfmq",
			"version":         version(),
			"platform":        runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
			"process-id":      int64(os.Getpid()),
			"connection-name": spec.Name,
		},
	}
	if spec.ClientID != "" {
		o.ContainerID = spec.ClientID
	}
	if c.opts.VirtualHost != "" {
		o.HostName = c.opts.VirtualHost
	}
	// A broker that does not read is a stall to be measured; what ends the connection is its silence. The library takes 0
	// for its defaults, of which the one for writes is 30 s.
	o.WriteTimeout = c.opts.IdleTimeout
	if c.opts.IdleTimeout == 0 {
		o.IdleTimeout, o.WriteTimeout = -1, practicallyForever
	}
	switch c.sasl {
	case saslPlain:
		o.SASLType = amqp.SASLTypePlain(c.target.User, c.target.Password)
	case saslExternal:
		o.SASLType = amqp.SASLTypeExternal("")
	default:
		o.SASLType = amqp.SASLTypeAnonymous()
	}
	return o
}

// practicallyForever is a time-out that is none.
const practicallyForever = 10 * 365 * 24 * time.Hour

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
