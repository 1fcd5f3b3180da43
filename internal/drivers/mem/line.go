package mem

import (
	"context"
	"fmt"
	"sync/atomic"

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
	l := &Line{broker: b, host: fmt.Sprintf("line-%d", len(b.lines)+1)}
	b.lines[l.host] = l
	return l
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
		if c.line == l && c.state.CompareAndSwap(connLive, connFrozen) {
			close(c.frozen)
		}
	}
}

// Cut ends all connections, and refuses new ones. Messages in flight are lost.
func (l *Line) Cut() {
	l.broker.mu.Lock()
	defer l.broker.mu.Unlock()
	l.cut = true
	l.broker.disconnect(func(c *conn) bool { return c.line == l })
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
	host   string
	line   *Line // nil: it cannot be broken separately
	state  atomic.Int32
	frozen chan struct{} // closed when it is frozen
	lost   chan struct{} // closed when it is lost
	ends   []func()      // called when it is lost; guarded by Broker.mu
}

func (c *conn) dead() bool { return c.state.Load() == connLost }

// passes waits while the connection is frozen. It returns an error when it is lost, or when ctx ends first.
func (c *conn) passes(ctx context.Context, op string) error {
	switch c.state.Load() {
	case connLive:
		return nil
	case connFrozen:
		select {
		case <-c.lost:
		case <-ctx.Done():
			return driver.Errorf(driver.ClassTimeout, op, "", "nothing moves: %w", ctx.Err())
		}
	}
	return c.lostError(op)
}

// sentAhead counts the bytes of the bodies sent to a consumer.
func (c *conn) sentAhead(batch []item) {
	if c.line == nil {
		return
	}
	for i := range batch {
		c.line.down.Add(int64(len(batch[i].body)))
	}
}

func (c *conn) lostError(op string) error {
	return driver.Errorf(driver.ClassConnectionLost, op, "see why the broker went away", "the connection was lost")
}

// connect opens a connection through a host.
func (b *Broker) connect(ctx context.Context, op, host, user, password string) (*conn, error) {
	const hint = "use another host name, and no -o connect-fail"
	b.mu.Lock()
	defer b.mu.Unlock()
	line := b.lines[host]
	if line != nil && line.frozen && !line.cut {
		b.mu.Unlock()
		<-ctx.Done()
		b.mu.Lock()
		return nil, driver.Errorf(driver.ClassConnect, op, hint, "no answer: %w", ctx.Err())
	}
	switch {
	case line != nil && line.cut:
		return nil, driver.Errorf(driver.ClassConnect, op, hint, "the line is cut")
	case b.options.ConnectFail:
		return nil, driver.Errorf(driver.ClassConnect, op, hint, "told to refuse connections")
	case b.options.Auth != "" && b.options.Auth != user+":"+password:
		return nil, driver.Errorf(driver.ClassAuth, op, "check --user and --password", "wrong user or password")
	}
	if line != nil {
		line.opened.Add(1)
	}
	c := &conn{broker: b, host: host, line: line, frozen: make(chan struct{}), lost: make(chan struct{})}
	b.conns[c] = struct{}{}
	return c, nil
}

func (b *Broker) forget(c *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, c)
}

// Disconnect breaks all connections, like a killed broker: messages in flight end as Unknown, unsettled messages return
// to their queues and non-durable subscriptions end when their consumers close. New connections can be opened.
func (b *Broker) Disconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.disconnect(func(*conn) bool { return true })
}

// disconnect breaks the selected connections. The caller holds b.mu.
func (b *Broker) disconnect(selected func(*conn) bool) {
	for c := range b.conns {
		if selected(c) {
			if c.state.Swap(connLost) != connLost {
				close(c.lost)
				for _, ended := range c.ends {
					ended()
				}
			}
			delete(b.conns, c)
		}
	}
}
