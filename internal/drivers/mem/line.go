package mem

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// pipeSize is how many messages of a producer can be in flight on a frozen [Line] before Send blocks.
const pipeSize = 50

// Line is a way to a broker that can be broken, like a network in between: connections opened with its URL use the
// line. Its methods are safe for concurrent use.
type Line struct {
	broker *Broker
	host   string
	down   atomic.Int64
	opened atomic.Int64 // connections

	// Guarded by Broker.mu.
	frozen, cut bool
}

// Line returns a new way to the broker. It is used with the factory from [Broker.Factory].
func (b *Broker) Line() *Line {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.line(fmt.Sprintf("line-%d", len(b.lines)+1))
}

// line returns the way to a host. b.mu is held.
func (b *Broker) line(host string) *Line {
	if b.lines[host] == nil {
		b.lines[host] = &Line{broker: b, host: host}
	}
	return b.lines[host]
}

// URL returns the URL to open.
func (l *Line) URL() string { return "mem://" + l.host }

// Freeze stops all traffic: messages, deliveries and answers leave but do not arrive. Connections stay up, and new ones
// get no answer.
func (l *Line) Freeze() {
	l.broker.mu.Lock()
	defer l.broker.mu.Unlock()
	l.frozen = true
	for c := range l.broker.conns {
		if c.line == l {
			c.state.CompareAndSwap(connLive, connFrozen)
		}
	}
}

// Cut ends all connections, and refuses new ones. Messages in flight are lost.
func (l *Line) Cut() {
	l.broker.mu.Lock()
	defer l.broker.mu.Unlock()
	l.cut = true
	l.broker.disconnect(l)
}

// Restore lets new connections through.
func (l *Line) Restore() {
	l.broker.mu.Lock()
	defer l.broker.mu.Unlock()
	l.frozen, l.cut = false, false
}

// Received returns how many bytes of bodies have been sent to consumers on the line, prefetched or delivered.
func (l *Line) Received() int64 { return l.down.Load() }

// Connections returns how many connections have been opened on the line.
func (l *Line) Connections() int64 { return l.opened.Load() }

// States of a connection.
const (
	connLive = iota
	connFrozen
	connLost
)

// conn is a connection. Its only purpose is that it can be lost.
type conn struct {
	broker *Broker
	line   *Line
	state  atomic.Int32
	lost   chan struct{} // closed when it is lost
}

func (c *conn) live() bool { return c.state.Load() == connLive }

// Dead implements [transport.Shared].
func (c *conn) Dead() bool { return c.state.Load() == connLost }

// Host implements [driver.Located].
func (c *conn) Host() string { return c.line.host }

// passes waits while the connection is frozen. It returns an error when it is lost, or when ctx ends first.
func (c *conn) passes(ctx context.Context, op string) error {
	if c.live() {
		return nil
	}
	select {
	case <-c.lost:
		return c.lostError(op)
	case <-ctx.Done():
		return driver.Errorf(driver.ClassTimeout, op, "", "nothing moves: %w", ctx.Err())
	}
}

// sleep waits for a time, and less if the connection is lost or other faults are set.
func (c *conn) sleep(ctx context.Context, d time.Duration, replaced chan struct{}) {
	select {
	case <-time.After(d):
	case <-replaced:
	case <-c.lost:
	case <-ctx.Done():
	}
}

func (c *conn) lostError(op string) error {
	return driver.Errorf(driver.ClassConnectionLost, op, "see why the broker went away", "the connection was lost")
}

// connect opens a connection through a host.
func (b *Broker) connect(ctx context.Context, op, host, login string) (*conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	line := b.line(host)
	switch {
	case line.cut:
		return nil, noConnection(op, "the line is cut")
	case line.frozen:
		b.mu.Unlock()
		<-ctx.Done()
		b.mu.Lock()
		return nil, noConnection(op, "no answer")
	case b.options.Auth != "" && b.options.Auth != login:
		return nil, driver.Errorf(driver.ClassAuth, op, "check --user and --password", "wrong user or password")
	}
	line.opened.Add(1)
	c := &conn{broker: b, line: line, lost: make(chan struct{})}
	b.conns[c] = struct{}{}
	return c, nil
}

func noConnection(op, why string) error {
	return driver.Errorf(driver.ClassConnect, op, "use another host name", "%s", why)
}

// End implements [transport.Shared].
func (c *conn) End(context.Context) {
	c.broker.mu.Lock()
	defer c.broker.mu.Unlock()
	delete(c.broker.conns, c)
}

// Disconnect breaks all connections, like a killed broker: messages in flight end as Unknown, unsettled messages return
// to their queues and non-durable subscriptions end when their consumers close. New connections can be opened.
func (b *Broker) Disconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.disconnect(nil)
}

// disconnect breaks the connections of a line, or all of them. The caller holds b.mu.
func (b *Broker) disconnect(line *Line) {
	for c := range b.conns {
		if line == nil || c.line == line {
			c.state.Store(connLost)
			close(c.lost)
			delete(b.conns, c)
		}
	}
	for p := range b.producers {
		p.noticeEnd()
	}
}
