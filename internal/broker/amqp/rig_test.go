package amqp_test

import (
	"context"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// timeout bounds every wait of the tests.
const timeout = time.Minute

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
	t.Cleanup(cancel)
	return ctx
}

// rig is a server on a port.
type rig struct {
	t     testing.TB
	store *store.Store
	addr  string
	stop  func() // breaks all connections
	kill  func()
}

func start(t testing.TB, cfg store.Config, server amqp.Server) *rig {
	t.Helper()
	r := storetest.Serve(t, cfg, func(s *store.Store) storetest.Frontend { server.Store = s; return server })
	return &rig{t: t, store: r.Store, addr: r.Addr, stop: r.Drop, kill: r.Kill}
}

func (r *rig) dial(o *client.ConnOptions) *client.Conn {
	r.t.Helper()
	conn := musttest.Get(client.Dial(soon(r.t), "amqp://"+r.addr, o))(r.t)
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (r *rig) session() *client.Session {
	r.t.Helper()
	return musttest.Get(r.dial(nil).NewSession(soon(r.t), nil))(r.t)
}

func (r *rig) sender(s *client.Session, address string, o *client.SenderOptions) *client.Sender {
	r.t.Helper()
	return musttest.Get(s.NewSender(soon(r.t), address, o))(r.t)
}

func (r *rig) receiver(s *client.Session, address string, o *client.ReceiverOptions) *client.Receiver {
	r.t.Helper()
	return musttest.Get(s.NewReceiver(soon(r.t), address, o))(r.t)
}

func (r *rig) send(l *client.Sender, bodies ...string) {
	r.t.Helper()
	for _, b := range bodies {
		require.NoError(r.t, l.Send(soon(r.t), client.NewMessage([]byte(b)), nil))
	}
}

func (r *rig) receive(l *client.Receiver) *client.Message {
	r.t.Helper()
	return musttest.Get(l.Receive(soon(r.t), nil))(r.t)
}

// expect receives and accepts messages with these bodies.
func (r *rig) expect(l *client.Receiver, bodies ...string) {
	r.t.Helper()
	for _, b := range bodies {
		m := r.receive(l)
		require.Equal(r.t, b, string(m.GetData()))
		require.NoError(r.t, l.AcceptMessage(soon(r.t), m))
	}
}

// nothing fails if a message comes within a short time.
func (r *rig) nothing(l *client.Receiver) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 100*time.Millisecond)
	defer cancel()
	m, err := l.Receive(ctx, nil)
	require.ErrorIs(r.t, err, context.DeadlineExceeded, "%v", m)
}

// stats waits until the counts of an address are as want has it.
func (r *rig) stats(a driver.Destination, want func(store.DestinationStats) bool) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		d := r.store.Find(a)
		return d != nil && want(d.Stats())
	}, timeout, time.Millisecond)
}

func queue(name string) driver.Destination { return driver.Destination{Kind: driver.Queue, Name: name} }

func topic(name string) driver.Destination { return driver.Destination{Kind: driver.Topic, Name: name} }
