//go:build unix

package amqppeer

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Descriptors of performatives, sections and states (AMQP 1.0, Transport 2.7, Messaging 3.2 and 3.4, Security 5.3.3).
const (
	opOpen         = 0x10
	opBegin        = 0x11
	opAttach       = 0x12
	opFlow         = 0x13
	opTransfer     = 0x14
	opDisposition  = 0x15
	opDetach       = 0x16
	opEnd          = 0x17
	opClose        = 0x18
	errorList      = 0x1d
	accepted       = 0x24
	sourceList     = 0x28
	targetList     = 0x29
	saslMechanisms = 0x40
	saslOutcome    = 0x44
	properties     = 0x73
	amqpValue      = 0x77
)

// peer is a scripted broker. It serves any number of connections, sessions and links.
type peer struct {
	t    *testing.T
	l    net.Listener
	wg   sync.WaitGroup
	open []byte // properties of its open frame, encoded; nil for none

	// on may handle a frame itself, and then returns true. It is called by the goroutine of the connection.
	on func(*conn, *frame) bool
	// modes are the settle modes of its attach frames, encoded; nil repeats the requested modes.
	modes [][]byte
	// credit is given to each sender that attaches.
	credit uint32
	// auto accepts each message at once.
	auto bool

	transfers atomic.Int64 // complete messages that came

	mu    sync.Mutex
	conns []net.Conn
}

// conn is a connection to a peer.
type conn struct {
	net.Conn
	peer *peer
}

// frame is a received frame.
type frame struct {
	code    int
	channel uint16
	fields  [][]byte // encoded; those left out are null
	payload []byte
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return &peer{t: t, l: l, credit: 100, auto: true}
}

// start serves, and returns the URL.
func (p *peer) start() string {
	p.wg.Go(func() {
		for {
			nc, err := p.l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns = append(p.conns, nc)
			p.mu.Unlock()
			p.wg.Go(func() {
				defer nc.Close()
				(&conn{Conn: nc, peer: p}).serve()
			})
		}
	})
	p.t.Cleanup(func() {
		_ = p.l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return "amqp://" + p.l.Addr().String()
}

func (c *conn) serve() {
	in := bufio.NewReader(c)
	var header [8]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return
	}
	c.write([]byte("AMQP\x03\x01\x00\x00"))
	c.frame(1, 0, saslMechanisms, symbol("ANONYMOUS"))
	if _, err := readFrame(in); err != nil {
		return
	}
	c.frame(1, 0, saslOutcome, []byte{0x50, 0})
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return
	}
	c.write([]byte("AMQP\x00\x01\x00\x00"))
	for {
		f, err := readFrame(in)
		if err != nil {
			return
		}
		if c.peer.on == nil || !c.peer.on(c, f) {
			c.handle(f)
		}
	}
}

// handle answers a frame as a broker does.
func (c *conn) handle(f *frame) {
	switch f.code {
	case opOpen:
		props := null()
		if c.peer.open != nil {
			props = c.peer.open
		}
		c.frame(0, 0, opOpen, text("peer"), null(), number(64<<10), null(), null(), null(), null(), null(), null(), props)
	case opBegin:
		c.frame(0, f.channel, opBegin, []byte{0x60, byte(f.channel >> 8), byte(f.channel)}, number(0), number(5000), number(5000))
	case opAttach:
		c.attach(f)
		if !isReceiver(f) && c.peer.credit > 0 {
			c.flow(f.channel, numberOf(f.fields[1]), 0, c.peer.credit, false)
		}
	case opTransfer:
		if isNull(f.fields[1]) || truth(f.fields[5]) { // a message in several frames: not told yet
			return
		}
		c.peer.transfers.Add(1)
		if c.peer.auto {
			c.accept(f)
		}
	case opDetach:
		c.frame(0, f.channel, opDetach, f.fields[0], boolean(true))
	case opEnd:
		c.frame(0, f.channel, opEnd)
	case opClose:
		c.frame(0, 0, opClose)
	}
}

// isReceiver tells of an attach whether the other side is to receive.
func isReceiver(f *frame) bool { return truth(f.fields[2]) }

// attach answers an attach, with the same handle.
func (c *conn) attach(f *frame) {
	modes := c.peer.modes
	if modes == nil {
		modes = f.fields[3:5]
	}
	c.frame(0, f.channel, opAttach, f.fields[0], f.fields[1], boolean(!isReceiver(f)), modes[0], modes[1], f.fields[5], f.fields[6],
		null(), null(), number(0))
}

// flow gives credit for a link.
func (c *conn) flow(channel uint16, handle, count, credit uint32, drain bool) {
	c.frame(0, channel, opFlow, number(0), number(5000), number(0), number(5000), number(handle), number(count), number(credit),
		null(), boolean(drain))
}

// accept accepts the message of a transfer, unless it came settled.
func (c *conn) accept(f *frame) {
	if !truth(f.fields[4]) {
		c.frame(0, f.channel, opDisposition, boolean(true), f.fields[1], f.fields[1], boolean(true), list(accepted))
	}
}

// transfer sends a message over a link.
func (c *conn) transfer(channel uint16, handle, id uint32, settled bool, message []byte) {
	tag := binary.BigEndian.AppendUint32([]byte{0xa0, 4}, id)
	c.frameWith(0, channel, opTransfer, message, number(handle), number(id), tag, number(0), boolean(settled))
}

func (c *conn) frame(kind byte, channel uint16, code byte, fields ...[]byte) {
	c.frameWith(kind, channel, code, nil, fields...)
}

func (c *conn) frameWith(kind byte, channel uint16, code byte, payload []byte, fields ...[]byte) {
	body := append(list(code, fields...), payload...)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)+8)) //nolint:gosec // small
	c.write(append(append(b, 2, kind, byte(channel>>8), byte(channel)), body...))
}

func (c *conn) write(b []byte) { _, _ = c.Write(b) } // the client notices if it fails

func null() []byte               { return []byte{0x40} }
func number(n uint32) []byte     { return binary.BigEndian.AppendUint32([]byte{0x70}, n) }
func symbol(s string) []byte     { return append([]byte{0xa3, byte(len(s))}, s...) }
func isNull(b []byte) bool       { return b[0] == 0x40 }
func truth(b []byte) bool        { return b[0] == 0x41 || b[0] == 0x56 && b[1] == 1 }
func described(c byte) []byte    { return []byte{0x00, 0x53, c} }
func value(b []byte) []byte      { return append(described(amqpValue), b...) }
func data(s string) []byte       { return append(append(described(0x75), 0xa0, byte(len(s))), s...) }
func textOf(b []byte) string     { return string(b[size(b)-length(b):]) }
func boolean(v bool) []byte      { return []byte{map[bool]byte{true: 0x41, false: 0x42}[v]} }
func text(s string) []byte       { return sized(0xa1, 0xb1, []byte(s)) }
func mapOf(kv ...[]byte) []byte  { return compound(0xd1, kv) }
func listOf(kv ...[]byte) []byte { return compound(0xd0, kv) }

func list(code byte, fields ...[]byte) []byte { return append(described(code), listOf(fields...)...) }

func sized(short, long byte, b []byte) []byte {
	if len(b) < 256 {
		return append([]byte{short, byte(len(b))}, b...)
	}
	return append(binary.BigEndian.AppendUint32([]byte{long}, uint32(len(b))), b...) //nolint:gosec // small
}

func compound(code byte, fields [][]byte) []byte {
	content := slices.Concat(fields...)
	b := binary.BigEndian.AppendUint32([]byte{code}, uint32(len(content)+4)) //nolint:gosec // small
	return append(binary.BigEndian.AppendUint32(b, uint32(len(fields))), content...)
}

// readFrame returns the next frame that is no heartbeat.
func readFrame(r io.Reader) (*frame, error) {
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:])-8)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, err
		}
		if len(body) == 0 {
			continue
		}
		n := 3 + size(body[3:])
		f := &frame{code: int(body[2]), channel: binary.BigEndian.Uint16(head[6:]), fields: items(body[3:n]), payload: body[n:]}
		for len(f.fields) < 15 { // trailing nulls may be left out
			f.fields = append(f.fields, null())
		}
		return f, nil
	}
}

// items are the values of a list or map.
func items(b []byte) [][]byte {
	count, at := 0, 1
	switch b[0] {
	case 0x45:
	case 0xc0, 0xc1:
		count, at = int(b[2]), 3
	default:
		count, at = int(binary.BigEndian.Uint32(b[5:])), 9
	}
	var all [][]byte
	for range count {
		n := size(b[at:])
		all = append(all, b[at:at+n])
		at += n
	}
	return all
}

// size is the encoded size of the value at the start of b (AMQP 1.0, Types, section 1.2).
func size(b []byte) int {
	if b[0] == 0 {
		n := 1 + size(b[1:])
		return n + size(b[n:])
	}
	switch b[0] >> 4 {
	case 0xa, 0xc, 0xe:
		return 2 + int(b[1])
	case 0xb, 0xd, 0xf:
		return 5 + int(binary.BigEndian.Uint32(b[1:]))
	case 4:
		return 1
	default:
		return 1 + 1<<(b[0]>>4-5)
	}
}

// length is the number of bytes of a text.
func length(b []byte) int {
	if b[0]>>4 == 0xa {
		return int(b[1])
	}
	return int(binary.BigEndian.Uint32(b[1:]))
}

func numberOf(b []byte) uint32 {
	switch b[0] {
	case 0x43, 0x44:
		return 0
	case 0x52, 0x53:
		return uint32(b[1])
	case 0x80:
		return uint32(binary.BigEndian.Uint64(b[1:])) //nolint:gosec // small
	default:
		return binary.BigEndian.Uint32(b[1:])
	}
}
