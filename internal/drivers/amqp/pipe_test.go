package amqp

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// pipePeer is a told broker at the other end of a pipe, for tests in a bubble of testing/synctest. It answers all that
// is needed to send and receive, but for the frames that on takes.
type pipePeer struct {
	t      *testing.T
	conn   net.Conn
	reader *wire.FrameReader
	open   wire.Open   // its open frame, beside the name
	credit uint32      // of each sender
	in     func() bool // goes through the login; nil lets anybody in

	// on is called with each frame; true: it was dealt with.
	on func(*pipePeer, *wire.Body) bool
	// frames that came, by kind, with the time since the beginning.
	came  []came
	began time.Time
	// beats are empty frames.
	beats []time.Duration
	gone  time.Duration // when the connection ended
}

type came struct {
	kind wire.Descriptor
	at   time.Duration
}

// pipeDriver returns a driver whose connections lead to peers that serve says how to make.
func pipeDriver(t *testing.T, opts driver.OpenOptions, peer func() *pipePeer, options ...string) *amqpDriver {
	t.Helper()
	opts.URL, opts.ConnectTimeout, opts.Options = "amqp://peer", time.Hour, defaultOptions()
	require.NoError(t, driver.SetOptions(opts.Options, options))
	cfg, err := newConfig(opts)
	require.NoError(t, err)
	d := newDriver(cfg)
	d.pool.Open = func(ctx context.Context, spec driver.Connection) (*connection, error) {
		near, far := net.Pipe()
		p := peer()
		p.t, p.conn, p.began = t, far, time.Now()
		go p.serve()
		raw := transport.Meter(near)
		return d.open(ctx, raw, raw, transport.Endpoint{Host: "peer", Port: "5672"}, spec)
	}
	return d
}

// productOf are the properties of the open frame of a broker.
func productOf(name, version string) []byte {
	b := wire.AppendStr(wire.AppendSymbol(wire.BeginMap(nil), "product"), name)
	b = wire.AppendStr(wire.AppendSymbol(b, "version"), version)
	wire.EndCompound(b, 0, 4)
	return b
}

func (p *pipePeer) write(b []byte) { _, _ = p.conn.Write(b) }

func (p *pipePeer) serve() {
	defer p.conn.Close()
	defer func() { p.gone = time.Since(p.began) }()
	in := transport.NewInput(p.conn, transport.Meter(p.conn), &transport.Buffers{}, nil)
	p.reader = wire.NewFrameReader(in, 1<<20)
	for {
		h, err := p.reader.ReadProtocolHeader()
		if err != nil {
			return
		}
		p.write(h[:])
		if string(h[:]) == wire.HeaderAMQP {
			break
		}
		if !p.login() {
			return
		}
	}
	for {
		f, err := p.reader.Next()
		if err != nil {
			return
		}
		if len(f.Body) == 0 {
			p.beats = append(p.beats, time.Since(p.began))
			continue
		}
		b, err := wire.ParseBody(f.Body)
		if err != nil {
			return
		}
		p.came = append(p.came, came{b.Kind, time.Since(p.began)})
		if p.on == nil || !p.on(p, &b) {
			p.behave(f.Channel, &b)
		}
	}
}

func (p *pipePeer) login() bool {
	if p.in != nil {
		return p.in()
	}
	offer := wire.SASLMechanisms{Mechanisms: []string{"ANONYMOUS"}}
	p.write(offer.AppendFrame(nil))
	if _, err := p.reader.Next(); err != nil {
		return false
	}
	p.write((&wire.SASLOutcome{Code: wire.SASLOK}).AppendFrame(nil))
	return true
}

func (p *pipePeer) behave(channel uint16, b *wire.Body) {
	switch b.Kind {
	case wire.DescOpen:
		p.open.ContainerID = "peer"
		p.write(p.open.AppendFrame(nil))
	case wire.DescBegin:
		begin := wire.Begin{RemoteChannel: wire.Some(channel), IncomingWindow: 5000, OutgoingWindow: 5000}
		p.write(begin.AppendFrame(nil, channel))
	case wire.DescAttach:
		var f wire.Attach
		require.NoError(p.t, f.Decode(&b.Fields))
		f.Role = !f.Role
		f.InitialDeliveryCount = wire.Some[uint32](0)
		p.write(f.AppendFrame(nil, channel))
		if f.Role == wire.RoleReceiver {
			p.flow(channel, f.Handle, 0, 0, p.credit, false)
		}
	case wire.DescDetach:
		var f wire.Detach
		require.NoError(p.t, f.Decode(&b.Fields))
		p.write(f.AppendFrame(nil, channel))
	case wire.DescEnd:
		p.write(new(wire.End).AppendFrame(nil, channel))
	case wire.DescClose:
		p.write(new(wire.Close).AppendFrame(nil))
	}
}

// flow gives credit.
func (p *pipePeer) flow(channel uint16, handle, next, count, credit uint32, drain bool) {
	f := wire.Flow{
		NextIncomingID: wire.Some(next), IncomingWindow: 5000, OutgoingWindow: 5000, Handle: wire.Some(handle),
		DeliveryCount: wire.Some(count), LinkCredit: wire.Some(credit), Drain: drain,
	}
	p.write(f.AppendFrame(nil, channel))
}

// accept settles a delivery.
func (p *pipePeer) settle(id uint32, state wire.State) {
	d := wire.Disposition{Role: wire.RoleReceiver, First: id, Last: id, Settled: true, State: state.Append(nil)}
	p.write(d.AppendFrame(nil, 0))
}

// ends takes the ends of sends, by slot.
type ends struct {
	all chan end
}

type end struct {
	slot driver.Slot
	o    driver.Outcome
}

func newEnds() *ends { return &ends{make(chan end, 1000)} }

func (e *ends) Done(s driver.Slot, o driver.Outcome) { e.all <- end{s, o} }

func (e *ends) DoneAll(slots []driver.Slot, o driver.Outcome) {
	for _, s := range slots {
		e.Done(s, o)
	}
}

// states returns how so many sends ended, by slot.
func (e *ends) states(t *testing.T, n int) map[driver.Slot]driver.State {
	t.Helper()
	states := map[driver.Slot]driver.State{}
	for range n {
		one := <-e.all
		require.NotContains(t, states, one.slot, "it ended twice")
		states[one.slot] = one.o.State
	}
	require.Empty(t, e.all)
	return states
}
