// Package interoptest tests requests and replies with other clients on a broker: our responder with their requester,
// and our requester with their responder. The folder peers has the other clients: programs of one source file each.
package interoptest

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

//go:embed peers
var peers embed.FS

const (
	// Requests is the number of requests each way.
	Requests = 100
	// patience bounds each wait.
	patience = 3 * time.Minute
)

// Source returns the path of a peer's source.
func Source(t testing.TB, name string) string {
	t.Helper()
	text := musttest.Get(peers.ReadFile("peers/" + name))(t)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// Python returns a Python with stomp.py.
func Python(t testing.TB) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), python, "-c", "import stomp").Run() == nil {
			return python
		}
	}
	require.Fail(t, "this test needs stomp.py (Debian: apt-get install python3-stomp)")
	return ""
}

// Peer is a client that is another program: as requester or responder of a queue.
type Peer func(ctx context.Context, role, queue string) *exec.Cmd

// Run has a peer ask us, and then answer us.
func Run(t *testing.T, f driver.Factory, o driver.OpenOptions, peer Peer) {
	t.Helper()
	o.ConnectTimeout = patience
	if o.Options == nil {
		o.Options = f.NewOptions()
	}
	for name, test := range map[string]func(*rig){
		"their requester": (*rig).respond, "their responder": (*rig).request,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			d := musttest.Get(f.Open(ctx, o))(t)
			defer func() { require.NoError(t, d.Close(context.Background())) }()
			test(&rig{T: t, ctx: ctx, driver: d, peer: peer, queue: driver.Destination{Name: "interop-" + rand.Text()}})
		})
	}
}

// rig is one direction of a test.
type rig struct {
	*testing.T
	ctx    context.Context //nolint:containedctx // of the test
	driver driver.Driver
	peer   Peer
	queue  driver.Destination
}

// connection names a connection of our own.
func connection(name string) driver.Connection { return driver.Connection{Key: name, Name: name} }

// producer opens a producer. It fails the test at a send that is not accepted.
func (r *rig) producer(spec driver.ProducerSpec) driver.Producer {
	r.Helper()
	spec.MaxPending, spec.Variants = Requests, []driver.Variant{{Body: []byte("pong"), Priority: -1}}
	spec.ReplyTimeout = patience
	return musttest.Get(r.driver.Producer(r.ctx, spec, driver.DoneFunc(func(_ driver.Slot, o driver.Outcome) {
		if o.State != driver.Accepted {
			r.Errorf("a message was not accepted: %v", o.Err)
		}
	})))(r)
}

// run starts the peer; finish waits for its success.
func (r *rig) run(role string) (finish func()) {
	r.Helper()
	cmd := r.peer(r.ctx, role, r.queue.Name)
	type result struct {
		text []byte
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		text, err := cmd.CombinedOutput()
		ended <- result{text, err}
	}()
	return func() {
		r.Helper()
		got := <-ended
		require.NoError(r, got.err, "%s", got.text)
		require.Contains(r, string(got.text), "done")
	}
}

// receive runs a consumer until done is closed.
func (r *rig) receive(c driver.Consumer, done <-chan struct{}, deliver func(*driver.Delivery)) (finish func()) {
	ctx, stop := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(ctx, func(d *driver.Delivery) driver.Verdict { deliver(d); return driver.Accept })
	}()
	return func() {
		r.Helper()
		select {
		case <-done:
		case err := <-ended:
			ended <- err
		case <-r.ctx.Done():
			r.Error("it takes too long")
		}
		stop()
		require.NoError(r, <-ended)
		require.NoError(r, c.Close(context.Background()))
	}
}

// respond answers the requests of the peer.
func (r *rig) respond() {
	c := musttest.Get(r.driver.Consumer(r.ctx, driver.ConsumerSpec{
		Connection: connection("requests"), Destination: r.queue, Name: "requests", Correlated: true,
	}))(r)
	p := r.producer(driver.ProducerSpec{
		Connection: connection("replies"), Destination: r.queue, Name: "replies", Anonymous: true,
	})
	n, done := 0, make(chan struct{})
	answered := r.receive(c, done, func(d *driver.Delivery) {
		if len(d.ReplyTo) == 0 || len(d.ReplyID()) == 0 {
			r.Errorf("request %d has reply-to %q and correlation %q", n, d.ReplyTo, d.ReplyID())
		}
		m := driver.Message{
			Slot: driver.NewSlot(uint32(n%Requests), uint32(n/Requests)), Time: 1, //nolint:gosec // small
			To: d.ReplyTo, Correlation: d.ReplyID(),
		}
		if err := p.Send(r.ctx, &m); err != nil {
			r.Errorf("send reply %d: %v", n, err)
		}
		if n++; n == Requests {
			close(done)
		}
	})
	r.run("requester")()
	answered()
	require.NoError(r, p.Close(context.Background()))
	require.Equal(r, Requests, n)
}

// request asks the peer.
func (r *rig) request() {
	c := musttest.Get(r.driver.Consumer(r.ctx, driver.ConsumerSpec{
		Connection: connection("requester"), Destination: r.queue, Name: "replies", Correlated: true, Dynamic: true,
	}))(r)
	p := r.producer(driver.ProducerSpec{
		Connection: connection("requester"), Destination: r.queue, Name: "requests", Requests: true,
	})
	replies, done := map[string]int{}, make(chan struct{})
	answered := r.receive(c, done, func(d *driver.Delivery) {
		if replies[string(d.Correlation)]++; len(replies) == Requests {
			close(done)
		}
	})
	finish := r.run("responder")
	for i := range Requests {
		m := driver.Message{
			Slot: driver.NewSlot(uint32(i), 0), Time: 1,
			ReplyTo: c.(driver.Addressed).Address(), Correlation: fmt.Appendf(nil, "7-0-%d", i),
		}
		require.NoError(r, p.Send(r.ctx, &m))
	}
	finish()
	answered()
	require.NoError(r, p.Close(context.Background()))
	require.Len(r, replies, Requests)
	for i := range Requests {
		require.Equal(r, 1, replies[fmt.Sprintf("7-0-%d", i)], "replies to request %d", i)
	}
}
