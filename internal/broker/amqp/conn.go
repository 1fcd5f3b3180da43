package amqp

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	// ourMaxFrame is our max-frame-size, and the size of the read buffer.
	ourMaxFrame = 64 << 10
	// maxBacklog is the unwritten output, in bytes, above which the connection is not read.
	maxBacklog = 1 << 20
)

// conn is one connection.
type conn struct {
	srv     *Server
	nc      net.Conn
	account *store.Account

	// The reader's.
	frames    *wire.FrameReader
	begun     bool // protocol headers were exchanged
	opened    bool // open frames were exchanged
	container string
	sessions  []*session
	lowCredit []*inLink // need credit, some of them also room at their destinations
	pending   struct {  // a disposition: accepted, for a range of deliveries
		s           *session // nil: none
		first, last uint32
	}
	txns     map[string]*txn
	txnCount uint64
	lastRead time.Time
	slab     []byte
	nodes    []message

	// Set by the reader before the first link is attached.
	maxFrame int // the peer's

	written  chan struct{} // one token: the writer has taken all output
	wake     chan struct{} // one token: there is something to write
	finished chan struct{} // closed when the writer has ended

	readyMu sync.Mutex
	ready   []*outLink // may have messages to send

	mu        sync.Mutex // the fields below, and the outgoing parts of sessions and links
	out       []byte
	closing   bool // the writer ends after the rest of out
	heartbeat time.Duration

	// The writer's.
	spare    []byte
	batch    [takeBatch]store.Delivery
	extended time.Time // when the write deadline was set
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		srv: s, nc: nc, account: s.Store.NewAccount(), maxFrame: wire.MinMaxFrameSize,
		written: make(chan struct{}, 1), wake: make(chan struct{}, 1), finished: make(chan struct{}),
		txns: map[string]*txn{},
	}
	c.frames = wire.NewFrameReader(bufio.NewReaderSize(c, ourMaxFrame), ourMaxFrame)
	return c
}

func (c *conn) serve() {
	go c.write()
	err := c.read()
	// The client may have processed unsettled deliveries before the broker ended the connection: mark them as failed
	// for their next consumer.
	c.release(errors.Is(err, errClosed))
	c.sendClose(err)
	_ = c.nc.Close() // all is written
}

// read handles frames until the connection ends, and always returns the cause.
func (c *conn) read() error {
	c.lastRead = time.Now()
	if err := c.handshake(); err != nil {
		return err
	}
	for {
		f, err := c.frame()
		if err != nil {
			return err
		}
		if f.Type != wire.FrameAMQP {
			return fail(wire.CondFraming, "a frame of type %d", f.Type)
		}
		if len(f.Body) == 0 {
			continue // a heartbeat
		}
		if err := c.handle(f.Channel, f.Body); err != nil {
			return err
		}
	}
}

// sendClose sends our close, if there is one to send, and lets the writer end.
func (c *conn) sendClose(err error) {
	var f *wire.Error
	switch {
	case errors.As(err, &f):
	case errors.Is(err, errClosed), errors.Is(err, errHandshake):
	default:
		_ = c.nc.Close() // broken; the writer must not wait for it
	}
	c.mu.Lock()
	if c.begun && (f != nil || errors.Is(err, errClosed)) {
		if !c.opened {
			c.out = c.appendOpen(c.out)
		}
		c.out = (&wire.End{Error: f}).AppendClose(c.out)
	}
	c.closing = true
	c.mu.Unlock()
	_ = c.nc.SetWriteDeadline(time.Now().Add(closeTimeout)) // fails only on a closed connection
	c.wakeWriter()
	<-c.finished
	if f != nil || errors.Is(err, errHandshake) {
		store.Linger(c.nc, closeTimeout/2)
	}
}

// release ends the connection's links, transactions and reservations.
func (c *conn) release(orderly bool) {
	for _, s := range c.sessions {
		if s != nil {
			c.endLinks(s, !orderly)
		}
	}
	for _, t := range c.txns {
		t.Return()
	}
	clear(c.txns)
	c.account.End()
}

// frame returns the next frame, valid until the next call.
func (c *conn) frame() (wire.Frame, error) {
	f, err := c.frames.Next()
	if _, ok := errors.AsType[*wire.FrameError](err); ok {
		return f, fail(wire.CondFraming, "%v", err)
	}
	return f, err
}

// Read reads once. Before it blocks, it hands the answers to previous frames to the writer.
func (c *conn) Read(b []byte) (int, error) {
	for {
		c.flush()
		if err := store.AwaitWriter(&c.mu, &c.out, maxBacklog, c.written, c.finished); err != nil {
			return 0, err
		}
		deadline := c.deadline()
		if len(c.lowCredit) > 0 {
			deadline = time.Now().Add(store.RoomPause)
		}
		if err := c.nc.SetReadDeadline(deadline); err != nil {
			return 0, fmt.Errorf("set a deadline: %w", err)
		}
		n, err := c.nc.Read(b)
		if n > 0 {
			c.lastRead = time.Now()
			return n, nil
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			if !time.Now().Before(c.deadline()) {
				return 0, fail(wire.CondResourceLimit, "nothing was heard for %v", time.Since(c.lastRead).Round(time.Millisecond))
			}
			continue // there may be room for a link
		}
		return 0, fmt.Errorf("read: %w", err)
	}
}

// deadline is the end of the peer's idle time-out.
func (c *conn) deadline() time.Time {
	if !c.opened {
		return c.lastRead.Add(handshakeTimeout)
	}
	return c.lastRead.Add(c.srv.IdleTimeout)
}

func (c *conn) wakeWriter() { store.Signal(c.wake) }

// send hands a frame, appended by f, to the writer.
func (c *conn) send(f func(b []byte) []byte) {
	c.mu.Lock()
	c.out = f(c.out)
	c.mu.Unlock()
	c.wakeWriter()
}

// flush hands dispositions and credit to the writer.
func (c *conn) flush() {
	c.sendAccepted()
	c.lowCredit = slices.DeleteFunc(c.lowCredit, (*inLink).grant)
}

const (
	defaultMaxMessage  = 64 << 20
	defaultIdleTimeout = time.Minute
	// handshakeTimeout bounds the time from the connection to the peer's open.
	handshakeTimeout = 30 * time.Second
	// closeTimeout bounds the write of our last frame, and the wait for the peer's.
	closeTimeout = time.Second
)

// Server serves connections from one store. Only Store is required.
type Server struct {
	Store *store.Store
	// Authenticate checks a user and a password; nil accepts everyone, also anonymous clients.
	Authenticate func(user, password string) bool
	// MaxMessage is the size of the largest message in bytes, including headers and properties; 0 means 64 MiB.
	MaxMessage int
	// IdleTimeout ends silent connections; 0 means a minute. We announce half of it.
	IdleTimeout time.Duration
}

// Serve serves one connection until it ends, and closes it. No goroutine is left when it returns.
func (s Server) Serve(nc net.Conn) {
	s.MaxMessage = cmp.Or(s.MaxMessage, defaultMaxMessage)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, defaultIdleTimeout)
	newConn(&s, nc).serve()
}

// fail returns an error for the peer.
func fail(condition, format string, args ...any) *wire.Error {
	return &wire.Error{Condition: condition, Description: fmt.Sprintf(format, args...)}
}

// cannotOpen is a failure to open a destination.
func cannotOpen(a driver.Destination, err error) *wire.Error {
	condition := wire.CondResourceLimit
	switch {
	case errors.Is(err, store.ErrLongName):
		condition = wire.CondInvalidField
	case errors.Is(err, store.ErrGone):
		condition = wire.CondNotFound
	case errors.Is(err, store.ErrInUse):
		condition = wire.CondResourceLocked
	}
	return fail(condition, "%.80q: %v", a, err)
}

func failAddress() *wire.Error {
	return fail(wire.CondInvalidField, "a link needs a source or target with an address")
}

func failHandle(handle uint32) *wire.Error {
	return fail(wire.CondUnattachedHandle, "handle %d is not attached", handle)
}

func failTransaction() *wire.Error {
	return fail(wire.CondUnknownTxn, "there is no such transaction")
}

// failCommit is a failure to commit. Its condition must be a transaction error (Transactions, section 4.3); cause is
// the condition behind it.
func failCommit(cause, format string, args ...any) *wire.Error {
	f := fail(wire.CondTxnRollback, format, args...)
	f.Info = info(wire.InfoCause, cause)
	return f
}

// info returns a map of one symbol.
func info(key, value string) []byte {
	b := wire.AppendSymbol(wire.AppendSymbol(wire.BeginMap(nil), key), value)
	wire.EndCompound(b, 0, 2)
	return b
}

func failDecode(err error) *wire.Error { return fail(wire.CondDecode, "%v", err) }

// errClosed is the end of a connection without an error for the peer.
var errClosed = errors.New("closed by the peer")

// errHandshake is the end of a connection before the open: another protocol, or a failed login.
var errHandshake = errors.New("no connection came about")

// handshake exchanges protocol headers and SASL frames. An unsupported header is answered with a supported one, and the
// connection ends.
func (c *conn) handshake() error {
	authenticated := c.srv.Authenticate == nil
	for {
		header, err := c.frames.ReadProtocolHeader()
		if err != nil {
			return err
		}
		switch {
		case string(header[:]) == wire.HeaderAMQP && authenticated:
			c.send(func(b []byte) []byte { return append(b, wire.HeaderAMQP...) })
			c.begun = true
			return nil
		case string(header[:]) == wire.HeaderSASL:
			if err := c.sasl(); err != nil {
				return err
			}
			authenticated = true
		default:
			wanted := wire.HeaderAMQP
			if !authenticated {
				wanted = wire.HeaderSASL
			}
			c.send(func(b []byte) []byte { return append(b, wanted...) })
			return errHandshake
		}
	}
}

func (c *conn) sasl() error {
	offer := wire.SASL{Kind: wire.DescMechanisms, Mechanisms: []string{"PLAIN"}}
	if c.srv.Authenticate == nil {
		offer.Mechanisms = []string{"ANONYMOUS", "PLAIN"}
	}
	c.send(func(b []byte) []byte { return offer.AppendFrame(append(b, wire.HeaderSASL...)) })
	f, err := c.frame()
	if err != nil {
		return err
	}
	p, err := wire.ParseBody(f.Body)
	if err != nil || f.Type != wire.FrameSASL || p.Kind != wire.DescInit {
		return errHandshake
	}
	init := wire.SASL{Kind: p.Kind}
	if err := init.Decode(&p.Fields); err != nil {
		return errHandshake
	}
	outcome := wire.SASL{Kind: wire.DescOutcome, Code: wire.SASLAuth}
	if c.admits(init.Mechanism, init.Data) {
		outcome.Code = wire.SASLOK
	}
	c.send(outcome.AppendFrame)
	if outcome.Code != wire.SASLOK {
		return errHandshake
	}
	return nil
}

// admits checks a SASL response; PLAIN is [authorize] NUL user NUL password (RFC 4616).
func (c *conn) admits(mechanism string, response []byte) bool {
	authenticate := c.srv.Authenticate
	switch mechanism {
	case "ANONYMOUS":
		return authenticate == nil
	case "PLAIN":
		parts := bytes.Split(response, []byte{0})
		return len(parts) == 3 && (authenticate == nil || authenticate(string(parts[1]), string(parts[2])))
	}
	return false
}

// onOpen answers the peer's open.
func (c *conn) onOpen(f *wire.Decoder) error {
	var o wire.Open
	if err := o.Decode(f); err != nil {
		return failDecode(err)
	}
	if c.opened {
		return fail(wire.CondFraming, "a second open")
	}
	c.opened, c.container = true, o.ContainerID
	c.maxFrame = int(min(max(o.MaxFrameSize.Or(1<<20), wire.MinMaxFrameSize), 1<<20))
	c.mu.Lock()
	if o.IdleTimeout > 0 {
		c.heartbeat = max(time.Duration(o.IdleTimeout)*time.Millisecond/2, time.Millisecond)
	}
	c.out = c.appendOpen(c.out)
	c.mu.Unlock()
	c.wakeWriter()
	return nil
}

// appendOpen appends our open.
func (c *conn) appendOpen(b []byte) []byte {
	o := wire.Open{
		ContainerID: "perfmq", MaxFrameSize: wire.Some[uint32](ourMaxFrame), ChannelMax: wire.Some[uint16](ourChannelMax),
		OfferedCapabilities: []string{"SHARED-SUBS", "DELAYED_DELIVERY", "ANONYMOUS-RELAY"},
		Properties:          wire.AppendTexts(nil, true, "product", store.Product, "version", transport.Version),
		IdleTimeout:         uint32(max(1, min(c.srv.IdleTimeout.Milliseconds()/2, 1<<31))), //nolint:gosec // bounded
	}
	return o.AppendFrame(b)
}
