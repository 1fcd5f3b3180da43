package amqp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// peer is just enough of a broker to misbehave on purpose. It serves one connection at a time, over TCP or, in a bubble
// of testing/synctest, over a pipe. Its settings are read when a link attaches.
type peer struct {
	t      *testing.T
	reader *wire.FrameReader // of the login

	mechanism  string
	login      uint8              // outcome of the login
	in         func() bool        // goes through the login; nil lets it end by the outcome
	open       wire.Open          // its open frame, beside the name
	refuseOpen *wire.Error        // with which to close connections at once
	window     uint32             // of its sessions
	credit     uint32             // of each sender
	attach     func(*wire.Attach) // changes its answer
	refuse     *wire.Error        // with which to refuse links

	// on is called with each frame; true: it was dealt with.
	on func(*peer, *wire.Body) bool
	// takeOver, if set, has the connection from the first transfer, or credit for the peer, on.
	takeOver func(*peer)

	channel uint16 // of the frame that on gets

	mu   sync.Mutex
	conn net.Conn

	transfers    chan uint32   // IDs of complete messages, in the order of their arrival
	frames       chan struct{} // one for each transfer frame
	auto         atomic.Bool   // accept each message at once
	endedSession atomic.Bool   // by the peer itself

	beats []time.Duration // when empty frames came, since the beginning
	gone  time.Duration   // when the connection ended
	ends  int             // close frames
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	return &peer{
		t: t, mechanism: "ANONYMOUS", window: 5000, credit: 100, open: wire.Open{MaxFrameSize: wire.Some[uint32](4096)},
		transfers: make(chan uint32, 1000), frames: make(chan struct{}, 1000),
	}
}

// start serves over TCP and returns the URL.
func (p *peer) start() string {
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(p.t)
	var ended sync.WaitGroup
	p.t.Cleanup(func() {
		_ = listener.Close()
		p.hangUp()
		ended.Wait()
	})
	ended.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.serve(conn)
		}
	})
	return "amqp://" + listener.Addr().String()
}

// driver returns a driver with connections to the peer over pipes.
func (p *peer) driver(opts driver.OpenOptions, options ...string) *amqpDriver {
	p.t.Helper()
	opts.URL, opts.ConnectTimeout, opts.Options = "amqp://peer", time.Hour, defaultOptions()
	require.NoError(p.t, driver.SetOptions(opts.Options, options))
	d := openDriver(p.t, opts)
	d.Open = func(ctx context.Context, spec driver.Connection) (*connection, error) {
		near, far := net.Pipe()
		go p.serve(far)
		raw, host := transport.Meter(near), transport.Endpoint{Host: "peer", Port: "5672"}
		c, err := d.open(ctx, host, raw, raw, spec)
		if err != nil {
			err = protocol.AMQP().ConnectError(host, err)
		}
		return c, err
	}
	return d
}

// productOf are the properties of the open frame of a broker.
func productOf(name, version string) wire.Open {
	b := wire.AppendStr(wire.AppendSymbol(wire.BeginMap(nil), "product"), name)
	b = wire.AppendStr(wire.AppendSymbol(b, "version"), version)
	wire.EndCompound(b, 0, 4)
	return wire.Open{Properties: b}
}

func (p *peer) serve(conn net.Conn) {
	defer conn.Close()
	began := time.Now()
	reader := wire.NewFrameReader(transport.NewInput(conn, transport.Meter(conn), &transport.Buffers{}), 1<<20)
	p.mu.Lock()
	p.conn, p.reader = conn, reader
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.gone = time.Since(began)
	}()
	for {
		h, err := reader.ReadProtocolHeader()
		if err != nil {
			return
		}
		p.write(h[:])
		if string(h[:]) == wire.HeaderAMQP {
			break
		}
		if p.in != nil && !p.in() || p.in == nil && !p.letIn() {
			return
		}
	}
	for {
		f, err := reader.Next()
		if err != nil {
			return
		}
		if len(f.Body) == 0 {
			p.beats = append(p.beats, time.Since(began))
			continue
		}
		b, err := wire.ParseBody(f.Body)
		if err != nil {
			return
		}
		if p.takeOver != nil && (b.Kind == wire.DescTransfer || b.Kind == wire.DescFlow) {
			p.takeOver(p)
			return
		}
		p.channel = f.Channel
		if p.on == nil || !p.on(p, &b) {
			p.behave(f.Channel, &b)
		}
	}
}

func (p *peer) letIn() bool {
	p.write((&wire.SASL{Kind: wire.DescMechanisms, Mechanisms: []string{p.mechanism}}).AppendFrame(nil))
	_, err := p.reader.Next()
	p.write((&wire.SASL{Kind: wire.DescOutcome, Code: p.login}).AppendFrame(nil))
	return err == nil
}

func (p *peer) behave(channel uint16, b *wire.Body) {
	switch b.Kind {
	case wire.DescOpen:
		p.open.ContainerID = "peer"
		p.write(p.open.AppendFrame(nil))
		if p.refuseOpen != nil {
			p.write((&wire.End{Error: p.refuseOpen}).AppendClose(nil))
		}
	case wire.DescBegin:
		begin := wire.Begin{RemoteChannel: wire.Some(channel), IncomingWindow: p.window, OutgoingWindow: 5000}
		p.write(begin.AppendFrame(nil, channel))
	case wire.DescAttach:
		p.attached(channel, b)
	case wire.DescTransfer:
		p.transfer(b)
	case wire.DescFlow:
		var f wire.Flow
		if f.Decode(&b.Fields) == nil && f.Echo { // else on has read it
			p.write((&wire.Flow{IncomingWindow: p.window, OutgoingWindow: 5000}).AppendFrame(nil, channel))
		}
	case wire.DescDetach:
		var f wire.Detach
		require.NoError(p.t, f.Decode(&b.Fields))
		if p.refuse == nil { // else it is the answer to ours, and another one would end the session
			p.write(f.AppendFrame(nil, channel))
		}
	case wire.DescEnd:
		if !p.endedSession.Load() {
			p.write(new(wire.End).AppendFrame(nil, channel))
		}
	case wire.DescClose:
		p.ends++
		p.write(new(wire.End).AppendClose(nil))
	}
}

func (p *peer) attached(channel uint16, b *wire.Body) {
	var f wire.Attach
	require.NoError(p.t, f.Decode(&b.Fields))
	f.Role, f.InitialDeliveryCount = !f.Role, wire.Some[uint32](0)
	if p.attach != nil {
		p.attach(&f)
	}
	if p.refuse != nil {
		f.Source, f.Target = wire.Terminus{}, wire.Terminus{}
	}
	p.write(f.AppendFrame(nil, channel))
	switch {
	case p.refuse != nil:
		p.write((&wire.Detach{Handle: f.Handle, Closed: true, Error: p.refuse}).AppendFrame(nil, channel))
	case f.Role == wire.RoleReceiver && p.credit > 0:
		p.flowOn(channel, wire.Flow{IncomingWindow: p.window, Handle: wire.Some(f.Handle), LinkCredit: wire.Some(p.credit)})
	}
}

func (p *peer) transfer(b *wire.Body) {
	var f wire.Transfer
	require.NoError(p.t, f.Decode(&b.Fields))
	select {
	case p.frames <- struct{}{}:
	default:
	}
	switch {
	case !f.DeliveryID.OK: // a later frame of a message
	case !f.More && p.auto.Load():
		p.settle(f.DeliveryID.V, f.DeliveryID.V, wire.State{Kind: wire.DescAccepted})
	default:
		select {
		case p.transfers <- f.DeliveryID.V:
		default:
		}
	}
}

// flow completes a flow of the first session and sends it.
func (p *peer) flow(f wire.Flow) { p.flowOn(0, f) }

func (p *peer) flowOn(channel uint16, f wire.Flow) {
	if !f.NextIncomingID.OK {
		f.NextIncomingID = wire.Some[uint32](0)
	}
	if f.IncomingWindow == 0 {
		f.IncomingWindow = p.window
	}
	if !f.Handle.OK {
		f.Handle = wire.Some[uint32](0)
	}
	f.OutgoingWindow, f.DeliveryCount = 5000, wire.Some(f.DeliveryCount.Or(0))
	p.write(f.AppendFrame(nil, channel))
}

// settle ends the deliveries first to last.
func (p *peer) settle(first, last uint32, state wire.State) {
	d := wire.Disposition{Role: wire.RoleReceiver, First: first, Last: last, Settled: true, State: state.Append(nil)}
	p.write(d.AppendFrame(nil, 0))
}

// detach closes the link.
func (p *peer) detach(why *wire.Error) {
	p.write((&wire.Detach{Closed: true, Error: why}).AppendFrame(nil, 0))
}

func (p *peer) endSession(why *wire.Error) {
	p.endedSession.Store(true)
	p.write((&wire.End{Error: why}).AppendFrame(nil, 0))
}

func (p *peer) close(why *wire.Error) { p.write((&wire.End{Error: why}).AppendClose(nil)) }

func (p *peer) write(b []byte) {
	p.mu.Lock()
	conn := p.conn
	p.mu.Unlock()
	_, _ = conn.Write(b) // the client notices if it fails
}

// hangUp closes the connection without a word.
func (p *peer) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		_ = p.conn.Close()
	}
}

// performative is a frame with fields as they are encoded.
func performative(kind wire.Descriptor, fields ...byte) []byte {
	b := append(wire.AppendDescriptor(wire.BeginFrame(nil, wire.FrameAMQP, 0), kind), fields...)
	wire.EndFrame(b, 0)
	return b
}

// ends takes the ends of sends, by slot.
type ends chan end

type end struct {
	slot driver.Slot
	o    driver.Outcome
}

func newEnds() ends { return make(ends, 1000) }

func (e ends) Done(s driver.Slot, o driver.Outcome) { e <- end{s, o} }

func (e ends) DoneAll(slots []driver.Slot, o driver.Outcome) {
	driver.DoneFunc(e.Done).DoneAll(slots, o)
}

// states returns how so many sends ended, by slot.
func (e ends) states(t *testing.T, n int) map[driver.Slot]driver.State {
	t.Helper()
	states := map[driver.Slot]driver.State{}
	for range n {
		one := <-e
		require.NotContains(t, states, one.slot, "it ended twice")
		states[one.slot] = one.o.State
	}
	require.Empty(t, e)
	return states
}
