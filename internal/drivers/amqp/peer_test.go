package amqp

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Descriptors of performatives, outcomes and errors (AMQP 1.0, Transport 2.7, Messaging 3.4, Security 5.3.3).
const (
	codeOpen        = 0x10
	codeBegin       = 0x11
	codeAttach      = 0x12
	codeFlow        = 0x13
	codeTransfer    = 0x14
	codeDisposition = 0x15
	codeDetach      = 0x16
	codeEnd         = 0x17
	codeClose       = 0x18
	codeError       = 0x1d
	codeAccepted    = 0x24
	codeRejected    = 0x25
	codeReleased    = 0x26
	codeModified    = 0x27
	codeMechanisms  = 0x40
	codeOutcome     = 0x44
)

// peer is just enough of a broker to misbehave on purpose. It serves one connection, with one session and one link at
// a time. Its settings are read when a link attaches.
type peer struct {
	t        *testing.T
	listener net.Listener
	ended    sync.WaitGroup

	mechanism  string
	window     uint32
	credit     uint32
	maxMessage uint64
	mode       []byte // settle mode of the sender; nil: as was asked for
	noFilter   bool   // ignore the source's filter
	refuse     []byte // error with which to refuse links
	refuseOpen []byte // error with which to close connections at once
	login      byte   // outcome of the login

	// takeOver, if set, has the connection from the first transfer, or credit for the peer, on.
	takeOver func(*peer)

	mu   sync.Mutex
	conn net.Conn
	// transfers are the delivery IDs of complete messages, in the order of their arrival.
	transfers chan uint32
	frames    chan struct{} // one for each transfer frame
	auto      atomic.Bool   // accept each message at once

	endedSession atomic.Bool // by the peer itself
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &peer{
		t: t, listener: listener, mechanism: "ANONYMOUS", window: 1000, credit: 100,
		transfers: make(chan uint32, 1000), frames: make(chan struct{}, 1000),
	}
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		open := p.conn != nil
		p.mu.Unlock()
		if open {
			p.hangUp()
		}
		p.ended.Wait()
	})
	return p
}

// start serves and returns the URL.
func (p *peer) start() string {
	p.ended.Go(func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conn = conn
			p.mu.Unlock()
			p.serve(conn)
		}
	})
	return "amqp://" + p.listener.Addr().String()
}

func (p *peer) serve(conn net.Conn) {
	var header [8]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return
	}
	p.write([]byte("AMQP\x03\x01\x00\x00"))
	p.frame(1, codeMechanisms, encSymbol(p.mechanism))
	if _, _, err := readFrame(conn); err != nil { // sasl-init
		return
	}
	p.frame(1, codeOutcome, []byte{0x50, p.login})
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return
	}
	p.write([]byte("AMQP\x00\x01\x00\x00"))
	for {
		code, fields, err := readFrame(conn)
		if err != nil {
			return
		}
		if p.takeOver != nil && (code == codeTransfer || code == codeFlow) {
			p.takeOver(p)
			return
		}
		p.handle(code, fields)
	}
}

func (p *peer) handle(code byte, f [][]byte) {
	switch code {
	case codeOpen:
		p.send(codeOpen, encString("peer"), encNull(), encUint(4096))
		if p.refuseOpen != nil {
			p.send(codeClose, p.refuseOpen)
		}
	case codeBegin:
		p.send(codeBegin, []byte{0x60, 0, 0}, encUint(0), encUint(p.window), encUint(5000))
	case codeAttach:
		p.attach(f)
	case codeTransfer:
		p.transfer(f)
	case codeDetach:
		if p.refuse == nil { // else it is the answer to ours, and another one would end the session
			p.send(codeDetach, encUint(0), encBool(true))
		}
	case codeEnd:
		if !p.endedSession.Load() {
			p.send(codeEnd)
		}
	case codeClose:
		p.send(codeClose)
	}
}

func (p *peer) attach(f [][]byte) {
	isReceiver := decBool(f[2])
	mode, source, target := f[3], f[5], f[6]
	if p.mode != nil {
		mode = p.mode
	}
	if p.noFilter {
		source = encList(0x28, encString("q"))
	}
	if p.refuse != nil {
		source, target = encNull(), encNull()
	}
	p.send(codeAttach, f[0], encUint(0), encBool(!isReceiver), mode, f[4], source, target, encNull(), encNull(), encUint(0),
		binary.BigEndian.AppendUint64([]byte{0x80}, p.maxMessage))
	switch {
	case p.refuse != nil:
		p.send(codeDetach, encUint(0), encBool(true), p.refuse)
	case !isReceiver && p.credit > 0:
		p.grant(p.window, 0, p.credit)
	}
}

// grant opens the session window for the given number of frames after next, and gives credit for as many messages.
func (p *peer) grant(window, next, credit uint32) {
	p.send(codeFlow, encUint(next), encUint(window), encUint(0), encUint(5000), encUint(0), encUint(0), encUint(credit))
}

func (p *peer) transfer(f [][]byte) {
	select {
	case p.frames <- struct{}{}:
	default:
	}
	if len(f) > 5 && decBool(f[5]) { // more
		if f[1][0] != 0x40 {
			p.transfers <- decUint(f[1])
		}
		return
	}
	if f[1][0] == 0x40 { // the end of a message whose ID is known
		return
	}
	id := decUint(f[1])
	if p.auto.Load() {
		p.settle(id, id, encList(codeAccepted))
		return
	}
	p.transfers <- id
}

// settle sends a disposition for the deliveries first to last.
func (p *peer) settle(first, last uint32, state []byte) {
	p.send(codeDisposition, encBool(true), encUint(first), encUint(last), encBool(true), state)
}

func (p *peer) send(code byte, fields ...[]byte) { p.frame(0, code, fields...) }

func (p *peer) frame(kind, code byte, fields ...[]byte) {
	body := encList(code, fields...)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)+8)) //nolint:gosec // small
	p.write(append(append(b, 2, kind, 0, 0), body...))
}

func (p *peer) write(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.conn.Write(b) // the client notices if it fails
}

// hangUp closes the connection without a word.
func (p *peer) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.conn.Close()
}

func encNull() []byte           { return []byte{0x40} }
func encUint(n uint32) []byte   { return binary.BigEndian.AppendUint32([]byte{0x70}, n) }
func encString(s string) []byte { return append([]byte{0xa1, byte(len(s))}, s...) }
func encSymbol(s string) []byte { return append([]byte{0xa3, byte(len(s))}, s...) }

func encBool(v bool) []byte {
	if v {
		return []byte{0x41}
	}
	return []byte{0x42}
}

func encError(condition, description string) []byte {
	return encList(codeError, encSymbol(condition), encString(description))
}

func encList(code byte, fields ...[]byte) []byte {
	var content []byte
	for _, f := range fields {
		content = append(content, f...)
	}
	b := []byte{0x00, 0x53, code, 0xd0}
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)+4)) //nolint:gosec // small
	b = binary.BigEndian.AppendUint32(b, uint32(len(fields)))    //nolint:gosec // small
	return append(b, content...)
}

// readFrame returns a frame's descriptor and its fields, still encoded. Keep-alive frames are skipped.
func readFrame(r io.Reader) (byte, [][]byte, error) {
	var header [8]byte
	for {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return 0, nil, err
		}
		body := make([]byte, binary.BigEndian.Uint32(header[:])-8)
		if _, err := io.ReadFull(r, body); err != nil {
			return 0, nil, err
		}
		if len(body) > 0 {
			code, fields := decList(body)
			for len(fields) < 14 { // trailing nulls may be left out
				fields = append(fields, encNull())
			}
			return code, fields, nil
		}
	}
}

func decList(b []byte) (byte, [][]byte) {
	code := b[2]
	var count, at int
	switch b[3] {
	case 0x45:
		return code, nil
	case 0xc0:
		count, at = int(b[5]), 6
	default:
		count, at = int(binary.BigEndian.Uint32(b[8:])), 12
	}
	var fields [][]byte
	for range count {
		n := decSize(b[at:])
		fields = append(fields, b[at:at+n])
		at += n
	}
	return code, fields
}

// decSize is the encoded size of the value at the start of b (AMQP 1.0, Types, section 1.2).
func decSize(b []byte) int {
	if b[0] == 0 {
		n := 1 + decSize(b[1:])
		return n + decSize(b[n:])
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

func decUint(b []byte) uint32 {
	switch b[0] {
	case 0x43:
		return 0
	case 0x52:
		return uint32(b[1])
	default:
		return binary.BigEndian.Uint32(b[1:])
	}
}

func decBool(b []byte) bool { return b[0] == 0x41 || b[0] == 0x56 && b[1] == 1 }
