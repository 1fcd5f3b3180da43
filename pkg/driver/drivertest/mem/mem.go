// Package mem is a message broker inside the process, as a driver: the known truth for tests of the measurement, and
// the fastest possible peer, which shows the ceiling of the tool itself.
//
// # Model
//
// A [Broker] has queues and topics. A queue holds each message until one of its consumers takes it; a topic puts it
// into the queue of every subscription. Consumers take up to their credit at once, an equal share of the available
// messages. No message is copied.
//
// Without faults, Send stores the message and calls Done before it returns: no goroutine, no clock, no allocation. With
// [Options] set, each message is judged in the order of arrival over the whole broker, so that counts are exact: "every
// n-th" means the n-th, 2n-th, ... since the options were set. If several faults apply to one message, the first in
// this order wins: fail, reject, release, rollback, withhold; and for stored messages: lose, duplicate, reorder,
// damage, damage-id. [Broker.Stats] has the true counts.
//
// A transaction is a list of messages that its commit stores, or removes from the consumer's queue, all at once.
//
// Connections over a [Line] can be frozen and cut while the broker continues. The host "unreachable" refuses at once,
// "silent" never answers: connecting fails after the connect time-out.
//
// One lock guards a broker and everything that belongs to it. Unexported functions are called with it, except those of
// a driver. Completions, too, are called with it, unless Send reports the message at once: they must not call the
// broker.
//
// The package works inside testing/synctest when the broker is made inside the bubble.
package mem

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Factory returns the protocol "mem" with a broker of its own.
func Factory() driver.Factory { return New().Factory() }

// With returns factories with one of mem behind them.
func With(factories []driver.Factory) []driver.Factory { return append(factories, Factory()) }

// Factory returns the protocol "mem" with broker b for every host. It has all features except encryption.
func (b *Broker) Factory() driver.Factory {
	queue, topic := protocol.Features()
	return driver.Factory{
		Name: "mem", Title: "in-process broker", Hidden: true, Schemes: []string{"mem"}, DefaultURL: "mem://local",
		Client:       driver.Native,
		Capabilities: driver.Capabilities{Connects: true, Queue: queue, Topic: topic},
		Hosts: func(url string) []string {
			_, hosts, _ := splitURL(url)
			return hosts
		},
		NewOptions: func() any { return &Options{} },
		Check: func(opts driver.OpenOptions) error {
			_, _, err := splitURL(opts.URL)
			return err
		},
		Open: func(_ context.Context, opts driver.OpenOptions) (driver.Driver, error) { return b.newDriver(opts) },
	}
}

// memDriver is a driver for one URL: hosts tried in order, and the connections made so far.
type memDriver struct {
	hosts   []transport.Endpoint
	login   string // user:password
	maxBody int
	transport.Pool[*conn]
}

func (b *Broker) newDriver(opts driver.OpenOptions) (driver.Driver, error) {
	login, hosts, err := splitURL(opts.URL)
	if err != nil {
		return nil, err
	}
	d := &memDriver{login: login, maxBody: opts.LargestBody()}
	d.Open = func(ctx context.Context, spec driver.Connection) (*conn, error) {
		dial := func(ctx context.Context, e transport.Endpoint) (*conn, error) {
			return b.connect(ctx, e.Host, d.login, opts.Options, spec.Stages)
		}
		return transport.First(ctx, d.hosts, spec.Order, opts.ConnectTimeout, dial)
	}
	for _, host := range hosts {
		d.hosts = append(d.hosts, transport.Endpoint{Host: host})
	}
	if opts.User+opts.Password != "" {
		d.login = opts.User + ":" + opts.Password
	}
	return d, nil
}

// splitURL splits mem://[login@]host[,host]...
func splitURL(text string) (login string, hosts []string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "mem" {
		return "", nil, driver.Errorf(driver.ClassOther, "open "+text, "write mem://NAME", "not a mem URL")
	}
	password, _ := u.User.Password()
	return u.User.Username() + ":" + password, strings.Split(u.Host, ","), nil
}

// Inspect implements [driver.Inspector].
func (d *memDriver) Inspect(ctx context.Context, all []driver.Destination) (list []driver.DestinationCount, err error) {
	c, err := d.Open(ctx, driver.Connection{})
	if err != nil {
		return nil, fmt.Errorf("ask for counters: %w", err)
	}
	defer c.End(ctx)
	for _, dest := range all {
		list = append(list, c.inspect(dest))
	}
	return list, nil
}

// Broker implements [driver.Identified].
func (d *memDriver) Broker() (product, version string) {
	return "perfmq in-process broker", transport.Version
}

// Line is a way to a broker that can be broken, like a network in between: connections opened with its URL use the
// line. Its methods are safe for concurrent use.
type Line struct {
	broker           *Broker
	host             string
	frozen, cut      bool
	received, opened atomic.Int64 // bytes of bodies, connections
}

// Line returns a new way to the broker. It is used with the factory from [Broker.Factory].
func (b *Broker) Line() *Line {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.line(fmt.Sprintf("line-%d", len(b.lines)+1))
}

// line returns the way to a host. Two hosts are out of order, for tests of that.
func (b *Broker) line(host string) *Line {
	if b.lines[host] == nil {
		b.lines[host] = &Line{broker: b, host: host, cut: host == "unreachable", frozen: host == "silent"}
	}
	return b.lines[host]
}

// URL returns the URL to open.
func (l *Line) URL() string { return "mem://" + l.host }

// Freeze stops all traffic: messages, deliveries and answers leave but do not arrive. Connections stay up, and new ones
// get no answer.
func (l *Line) Freeze() { l.set(true, false) }

// Cut ends all connections, and refuses new ones. Messages in flight are lost.
func (l *Line) Cut() { l.set(false, true) }

// Restore lets new connections through.
func (l *Line) Restore() { l.set(false, false) }

func (l *Line) set(frozen, cut bool) {
	b := l.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	l.frozen, l.cut = frozen, cut
	for c := range b.conns {
		if c.line == l {
			c.frozen, c.lost = c.frozen || frozen, cut
			c.tellEnd()
		}
	}
	b.wakeAll()
}

// Received returns how many bytes of bodies have been sent to consumers on the line, ahead or delivered.
func (l *Line) Received() int64 { return l.received.Load() }

// Connections returns the number of connections that have been opened on the line.
func (l *Line) Connections() int64 { return l.opened.Load() }

// conn is a connection. Its only purpose is that it can be frozen or lost, both of them for good.
type conn struct {
	*Broker
	line         *Line
	frozen, lost bool
	ended        func(error) // of a connection for nothing else; called once when it is lost
}

// held is a connection for a user that neither sends nor receives.
type held struct {
	lease   *transport.Lease[*conn]
	stages  driver.Stages
	closing sync.Once
}

// Connect implements [driver.Connector].
func (d *memDriver) Connect(ctx context.Context, spec driver.Connection) (driver.Held, error) {
	lease, err := d.Acquire(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &held{lease: lease, stages: spec.Stages}, nil
}

// OnEnd implements [driver.Watched].
func (h *held) OnEnd(ended func(error)) {
	c := h.lease.Conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = ended
	c.tellEnd()
}

// Close implements [driver.Held].
func (h *held) Close(ctx context.Context) error {
	h.closing.Do(func() {
		h.lease.Leave(ctx, h.stages, func(ctx context.Context) {
			c := h.lease.Conn
			c.mu.Lock()
			c.ended = nil
			c.pass(ctx, c.options.Close)
			c.mu.Unlock()
			h.lease.Release(ctx)
		})
	})
	return nil
}

// tellEnd calls ended if the connection is lost. The function is called by a goroutine of its own: it may call the
// broker.
func (c *conn) tellEnd() {
	if ended := c.ended; ended != nil && c.lost {
		c.ended = nil
		go ended(driver.Errorf(driver.ClassConnectionLost, "", "see why the broker went away", "the connection was lost"))
	}
}

// connect opens a connection through a host, and sets the driver's options unless they are the defaults or in force.
func (b *Broker) connect(
	ctx context.Context, host, login string, options any, stages driver.Stages,
) (*conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o, ok := options.(*Options); ok && *o != (Options{}) && *o != b.options {
		b.set(*o)
	}
	op, line := "connect to mem://"+host, b.line(host)
	b.connects++
	every := func(n int) bool { return n > 0 && b.connects%n == 0 }
	refused, silent := every(b.options.RefuseOpen), every(b.options.SilentOpen)
	began := time.Now()
	b.pass(ctx, b.options.Connect)
	switch {
	case ctx.Err() != nil:
		return nil, driver.Errorf(driver.ClassConnect, op, "", "no answer: %w", ctx.Err())
	case line.cut:
		return nil, driver.Errorf(driver.ClassConnect, op, "use another host name", "no broker there")
	case refused:
		return nil, driver.Errorf(driver.ClassConnect, op, "leave refuse-open out", "refused")
	case line.frozen, silent:
		for ctx.Err() == nil {
			b.wait(ctx, 0)
		}
		class := driver.ClassConnect
		if silent {
			class = driver.ClassTimeout
		}
		return nil, driver.Errorf(class, op, "use another host name", "no answer")
	}
	began = stages.Ended(driver.StageConnect, began)
	b.pass(ctx, b.options.Login)
	switch {
	case ctx.Err() != nil || line.cut:
		return nil, driver.Errorf(driver.ClassConnectionLost, op, "", "no answer to the login")
	case b.options.Auth != "" && b.options.Auth != login:
		return nil, driver.Errorf(driver.ClassAuth, op, "check --user and --password", "wrong user or password")
	case b.options.MostOpen > 0 && len(b.conns) >= b.options.MostOpen:
		return nil, driver.Errorf(driver.ClassFull, op, "raise most-open", "too many connections")
	}
	stages.Ended(driver.StageLogin, began)
	line.opened.Add(1)
	c := &conn{Broker: b, line: line}
	b.conns[c] = struct{}{}
	return c, nil
}

// pass lets a time pass, or returns when ctx ends.
func (b *Broker) pass(ctx context.Context, d time.Duration) {
	for due := b.now() + d; due > b.now() && ctx.Err() == nil; {
		b.wait(ctx, due-b.now())
	}
}

// Dead implements [transport.Shared].
func (c *conn) Dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// End implements [transport.Shared].
func (c *conn) End(context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, c)
}

// Host implements [driver.Located].
func (c *conn) Host() string { return c.line.host }

// answered waits until something is due and the connection is not frozen. It returns an error when the connection is
// lost; when ctx ends first, it returns an error if the connection is frozen.
func (c *conn) answered(ctx context.Context, op string, due time.Duration) error {
	for wait := c.until(due); wait > 0 && !c.frozen && !c.lost && ctx.Err() == nil; wait = c.until(due) {
		c.wait(ctx, wait)
	}
	return c.passes(ctx, op)
}

// passes waits while the connection is frozen. It returns an error when it is lost, or when ctx ends first.
func (c *conn) passes(ctx context.Context, op string) error {
	return c.await(ctx, op, "", func() bool { return !c.frozen })
}

// await waits until ready returns true. It returns an error when the connection is lost, or when ctx ends first.
func (c *conn) await(ctx context.Context, op, hint string, ready func() bool) error {
	for !c.lost && !ready() {
		if ctx.Err() != nil {
			return driver.Errorf(driver.ClassTimeout, op, hint, "nothing moves: %w", ctx.Err())
		}
		c.wait(ctx, 0)
	}
	if c.lost {
		return driver.Errorf(driver.ClassConnectionLost, op, "see why the broker went away", "the connection was lost")
	}
	return nil
}

// Disconnect breaks all connections, like a killed broker: messages in flight end as Unknown, unsettled messages return
// to their queues and non-durable subscriptions end when their consumers close. New connections can be opened.
func (b *Broker) Disconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		c.lost = true
		c.tellEnd()
	}
	b.wakeAll()
}
