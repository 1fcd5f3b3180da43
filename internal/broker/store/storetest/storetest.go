// Package storetest is for tests of the embedded broker: a front-end on a port, messages, and the answers of a store to
// the questions of the conformance suite, see [drivertest.Config].
package storetest

import (
	"crypto/rand"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// Limits are the limits of a store that can refuse messages, see [Configure].
func Limits() store.Config { return store.Config{Reject: true} }

// Configure sets the functions that look into the store of an embedded broker, which was made with [Limits].
func Configure(cfg *drivertest.Config, s *store.Store) {
	cfg.Rejected = func(testing.TB) int64 {
		_, total, _ := s.Page(0)
		return int64(total.Rejected) //nolint:gosec // a test's
	}
	cfg.Refusing = func(t testing.TB, kind driver.Kind) driver.Destination {
		dest := driver.Destination{Kind: kind, Name: rand.Text()}
		if kind == driver.Topic { // which has no room to run out of without a subscription
			sub, err := s.Subscribe(dest.Name, store.Subscription{}, func() {})
			require.NoError(t, err)
			t.Cleanup(func() { sub.Close(false) })
		}
		s.SetFaults(store.Faults{Full: true})
		t.Cleanup(func() { s.SetFaults(store.Faults{}) })
		return dest
	}
}

// Content is the content of a message of no protocol.
type Content struct {
	Data   string
	IsText bool
	List   []store.Property

	Address store.Addressing
}

// Size implements [store.Content].
func (c Content) Size() int { return len(c.Data) }

// Body implements [store.Content].
func (c Content) Body() []byte { return []byte(c.Data) }

// Text implements [store.Content].
func (c Content) Text() bool { return c.IsText }

// Properties implements [store.Content].
func (c Content) Properties() []store.Property { return c.List }

// Addressing implements [store.Content].
func (c Content) Addressing() store.Addressing { return c.Address }

// Property implements [store.Content].
func (c Content) Property(key string) any { return store.Lookup(c.List, key) }

// WithBody implements [store.Content].
func (c Content) WithBody(body []byte) store.Content {
	c.Data = string(body)
	return c
}

// Rig is a front-end on a free port of the loopback interface.
type Rig struct {
	Store *store.Store
	Addr  string
	// Stop returns when nothing is left of the rig. It is called at the end of the test as well.
	Stop func()

	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
}

// Frontend serves a connection until it ends.
type Frontend interface {
	Serve(nc net.Conn)
}

// Serve serves the front-end that is made for a store.
func Serve(t testing.TB, cfg store.Config, frontend func(*store.Store) Frontend) *Rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &Rig{Store: store.New(cfg), Addr: l.Addr().String(), listener: l}
	f := frontend(r.Store)
	r.Store.OnDrop(r.Drop)
	var accepting, serving sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.conns = append(r.conns, conn)
			r.mu.Unlock()
			serving.Go(func() { f.Serve(conn) })
		}
	})
	r.Stop = sync.OnceFunc(func() {
		_ = l.Close()
		accepting.Wait()
		r.Store.Stall(0)
		r.Drop()
		serving.Wait()
	})
	t.Cleanup(r.Stop)
	return r
}

// Drop breaks all connections without a word.
func (r *Rig) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	r.conns = nil
}

// Kill is Drop, and lets no more connections in.
func (r *Rig) Kill() {
	_ = r.listener.Close()
	r.Drop()
}
