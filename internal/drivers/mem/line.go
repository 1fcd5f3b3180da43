package mem

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

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
		c.frozen = c.frozen || frozen && c.line == l
	}
	if cut {
		b.disconnect(l)
	} else {
		b.wakeAll()
	}
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
}

// connect opens a connection through a host, and sets the driver's options unless they are the defaults or in force.
func (b *Broker) connect(ctx context.Context, host, login string, o Options) (*conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.pinned && o != (Options{}) && o != b.options {
		b.set(o)
	}
	op, line := "connect to mem://"+host, b.line(host)
	switch {
	case line.cut:
		return nil, driver.Errorf(driver.ClassConnect, op, "use another host name", "no broker there")
	case line.frozen:
		for ctx.Err() == nil {
			b.wait(ctx, 0)
		}
		return nil, driver.Errorf(driver.ClassConnect, op, "use another host name", "no answer")
	case b.options.Auth != "" && b.options.Auth != login:
		return nil, driver.Errorf(driver.ClassAuth, op, "check --user and --password", "wrong user or password")
	}
	line.opened.Add(1)
	c := &conn{Broker: b, line: line}
	b.conns[c] = struct{}{}
	return c, nil
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
	b.disconnect(nil)
}

// disconnect breaks the connections of a line, or all of them.
func (b *Broker) disconnect(line *Line) {
	for c := range b.conns {
		if line == nil || c.line == line {
			c.lost = true
			delete(b.conns, c)
		}
	}
	b.wakeAll()
}
