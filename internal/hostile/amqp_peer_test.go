//go:build unix

package hostile

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Frames from a client: performatives by their descriptors (Transport, section 2.7; Security, section 5.3.3), and the
// protocol headers.
const (
	amqpOpen        = 0x10
	amqpBegin       = 0x11
	amqpAttach      = 0x12
	amqpFlow        = 0x13
	amqpTransfer    = 0x14
	amqpDisposition = 0x15
	amqpDetach      = 0x16
	amqpEnd         = 0x17
	amqpClose       = 0x18
	saslMechanisms  = 0x40
	saslInit        = 0x41
	saslChallenge   = 0x42
	saslOutcome     = 0x44

	saslHeader = 0x100
	amqpHeader = 0x101
)

const (
	headerSASL = "AMQP\x03\x01\x00\x00"
	headerAMQP = "AMQP\x00\x01\x00\x00"

	typeAMQP = 0
	typeSASL = 1

	// amqpMaxFrame is the largest frame that the driver announces.
	amqpMaxFrame = 64 << 10
)

// amqpPeer is a connection to an AMQP broker that behaves, except for its reaction to one kind of frame.
type amqpPeer struct {
	*wire
	at int
	do func(*amqpPeer, *amqpFrame)

	toSend  int    // messages for each link over which the driver receives
	channel uint16 // of the last frame
	handle  uint32 // of the last link
	nextID  uint32 // of deliveries
	sent    map[uint32]bool
}

// amqpFrame is a frame or protocol header from the driver.
type amqpFrame struct {
	code    int
	channel uint16
	fields  []string // as they are encoded; omitted fields are null
}

// amqpStart returns a function that serves connections: a broker that calls do for the frames at, and else behaves.
func amqpStart(at int, do func(*amqpPeer, *amqpFrame)) func(*wire) {
	return func(w *wire) {
		p := &amqpPeer{wire: w, at: at, do: do, toSend: 10, sent: map[uint32]bool{}}
		for {
			f, err := p.next()
			if err != nil {
				return
			}
			p.channel = f.channel
			if f.code == at {
				do(p, f)
			} else {
				p.behave(f)
			}
		}
	}
}

// next reads a protocol header or a frame that is not empty.
func (p *amqpPeer) next() (*amqpFrame, error) {
	for {
		head, err := p.r.Peek(8)
		if err != nil {
			return nil, err
		}
		switch string(head) {
		case headerSASL, headerAMQP:
			_, _ = p.r.Discard(len(head))
			if head[4] != 0 {
				return &amqpFrame{code: saslHeader}, nil
			}
			return &amqpFrame{code: amqpHeader}, nil
		}
		size := binary.BigEndian.Uint32(head)
		if size > 64<<20 { // the first bytes of another protocol: perfmq asks what the port speaks
			return nil, fmt.Errorf("a frame of %d bytes", size)
		}
		frame := make([]byte, size)
		if _, err := io.ReadFull(p.r, frame); err != nil {
			return nil, err
		}
		if len(frame) == len(head) {
			continue // a heartbeat
		}
		code, fields := amqpList(string(frame[8:]))
		return &amqpFrame{code: code, channel: binary.BigEndian.Uint16(frame[6:]), fields: fields}, nil
	}
}

// behave reacts as a correct broker does.
func (p *amqpPeer) behave(f *amqpFrame) {
	switch f.code {
	case saslHeader:
		p.say(headerSASL)
		p.say(frameOf(typeSASL, 0, listOf(saslMechanisms, symbols("ANONYMOUS", "PLAIN"))))
	case saslInit:
		p.say(frameOf(typeSASL, 0, listOf(saslOutcome, "\x50\x00")))
	case amqpHeader:
		p.say(headerAMQP)
	case amqpOpen:
		p.send(amqpOpen, str("hostile"), null, uint32Of(amqpMaxFrame), "\x60\x00\xff")
	case amqpBegin:
		p.begin(f)
	case amqpAttach:
		p.attach(f)
		p.grant(100)
	case amqpFlow:
		p.deliverOnce(f)
	case amqpTransfer:
		p.settle(f)
	case amqpDetach:
		p.send(amqpDetach, f.fields[0], "\x41")
	case amqpEnd:
		p.send(amqpEnd)
	case amqpClose:
		p.send(amqpClose)
	}
}

func (p *amqpPeer) begin(f *amqpFrame) {
	p.send(amqpBegin, uint16Of(f.channel), uint32Of(0), uint32Of(5000), uint32Of(5000), uint32Of(100))
}

// attach answers an attach, with the roles changed.
func (p *amqpPeer) attach(f *amqpFrame) { p.attachAs(f, f.fields[5], f.fields[6], null) }

// attachAs is attach with other fields: source, target, and the largest message.
func (p *amqpPeer) attachAs(f *amqpFrame, source, target, largest string) {
	p.handle = uintIn(f.fields[1])
	count := null
	if p.receives(f) {
		count = uint32Of(0)
	}
	p.send(amqpAttach, f.fields[0], f.fields[1], boolOf(!p.receives(f)), f.fields[3], f.fields[4], source, target, null, null, count, largest)
}

// receives reports whether the driver receives over the link of an attach.
func (p *amqpPeer) receives(f *amqpFrame) bool {
	return f.fields[2] == "\x41" || f.fields[2] == "\x56\x01"
}

// grant gives credit for n messages on the last link. Over a link that the driver receives from it means nothing.
func (p *amqpPeer) grant(n uint32) { p.flow(0, n) }

func (p *amqpPeer) flow(count, credit uint32, more ...string) {
	fields := []string{uint32Of(0), uint32Of(5000), uint32Of(0), uint32Of(5000), uint32Of(p.handle), uint32Of(count), uint32Of(credit)}
	p.send(amqpFlow, append(fields, more...)...)
}

// deliverOnce sends the messages of a link when the driver gives credit for the first time.
func (p *amqpPeer) deliverOnce(f *amqpFrame) {
	if handle, ok := creditIn(f); ok && !p.sent[handle] {
		p.sent[handle], p.handle = true, handle
		p.deliver(p.toSend)
	}
}

// creditIn returns the handle of a flow that gives credit.
func creditIn(f *amqpFrame) (handle uint32, ok bool) {
	return uintIn(f.fields[4]), f.fields[4] != null && f.fields[6] != null && uintIn(f.fields[6]) > 0
}

func (p *amqpPeer) deliver(n int) {
	for range n {
		p.peer.delivered.Add(1)
		p.transfer(dataOf("body"))
	}
}

// transfer sends a message, and more fields of its transfer behind message-format: settled, more, ...
func (p *amqpPeer) transfer(payload string, more ...string) { p.say(p.transferFrame(payload, more...)) }

func (p *amqpPeer) transferFrame(payload string, more ...string) string {
	fields := append([]string{uint32Of(p.handle), uint32Of(p.nextID), binaryOf("tag"), uint32Of(0)}, more...)
	p.nextID++
	return frameOf(typeAMQP, p.channel, listOf(amqpTransfer, fields...)+payload)
}

// settle accepts a message, when it is complete, unless it is settled.
func (p *amqpPeer) settle(f *amqpFrame) {
	if f.fields[5] == "\x41" || f.fields[1] == null || f.fields[4] == "\x41" {
		return
	}
	p.peer.confirmed.Add(1)
	p.dispose(uintIn(f.fields[1]), uintIn(f.fields[1]), accepted)
}

// accepted is the state of that name.
var accepted = listOf(0x24)

// dispose settles the deliveries first to last.
func (p *amqpPeer) dispose(first, last uint32, state string) {
	p.send(amqpDisposition, "\x41", uint32Of(first), uint32Of(last), "\x41", state)
}

// send sends a performative on the channel of the last frame.
func (p *amqpPeer) send(code byte, fields ...string) {
	p.say(frameOf(typeAMQP, p.channel, listOf(code, fields...)))
}

// frameOf is a frame (Transport, section 2.3).
func frameOf(kind byte, channel uint16, body string) string {
	return frameHead(uint32(8+len(body)), 2, kind, channel) + body
}

// frameHead is the header of a frame that says to have that many bytes.
func frameHead(size uint32, doff, kind byte, channel uint16) string {
	b := append(binary.BigEndian.AppendUint32(nil, size), doff, kind)
	return string(binary.BigEndian.AppendUint16(b, channel))
}

// Encoded values (Types, section 1.6).

const null = "\x40"

func uint16Of(n uint16) string { return string(binary.BigEndian.AppendUint16([]byte{0x60}, n)) }
func uint32Of(n uint32) string { return string(binary.BigEndian.AppendUint32([]byte{0x70}, n)) }
func uint64Of(n uint64) string { return string(binary.BigEndian.AppendUint64([]byte{0x80}, n)) }
func str(s string) string      { return sized(0xb1, uint32(len(s)), s) }
func symbol(s string) string   { return sized(0xb3, uint32(len(s)), s) }
func binaryOf(s string) string { return sized(0xb0, uint32(len(s)), s) }

// dataOf is a message of one data section.
func dataOf(body string) string { return "\x00\x53\x75" + binaryOf(body) }

func boolOf(v bool) string {
	if v {
		return "\x41"
	}
	return "\x42"
}

// sized is a value that says to have that many bytes.
func sized(code byte, size uint32, content string) string {
	return string(binary.BigEndian.AppendUint32([]byte{code}, size)) + content
}

// symbols is an array of symbols.
func symbols(list ...string) string {
	var content strings.Builder
	for _, s := range list {
		content.WriteString(string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s)
	}
	return counted(0xf0, uint32(len(list)), "\xb3"+content.String())
}

// counted is a list, map or array that says to have that many elements.
func counted(code byte, count uint32, content string) string {
	return sized(code, uint32(4+len(content)), string(binary.BigEndian.AppendUint32(nil, count))+content)
}

// listOf is a described list.
func listOf(code byte, fields ...string) string {
	return "\x00\x53" + string(code) + counted(0xd0, uint32(len(fields)), strings.Join(fields, ""))
}

// errorOf is an error (Transport, section 2.8.14).
func errorOf(condition, description string) string {
	return listOf(0x1d, symbol(condition), str(description))
}

// amqpList takes a described list apart. It is the driver's, and so a good one.
func amqpList(b string) (code int, fields []string) {
	code = int(b[2])
	count, at := 0, 0
	switch b[3] {
	case 0xc0:
		count, at = int(b[5]), 6
	case 0xd0:
		count, at = int(binary.BigEndian.Uint32([]byte(b[8:12]))), 12
	}
	for range count {
		n := sizeOf(b[at:])
		fields = append(fields, b[at:at+n])
		at += n
	}
	for len(fields) < 14 {
		fields = append(fields, null)
	}
	return code, fields
}

// sizeOf is the encoded size of the value at the start of b.
func sizeOf(b string) int {
	if b[0] == 0 {
		n := 1 + sizeOf(b[1:])
		return n + sizeOf(b[n:])
	}
	switch b[0] >> 4 {
	case 0xa, 0xc, 0xe:
		return 2 + int(b[1])
	case 0xb, 0xd, 0xf:
		return 5 + int(binary.BigEndian.Uint32([]byte(b[1:5])))
	case 4:
		return 1
	default:
		return 1 + 1<<(b[0]>>4-5)
	}
}

func uintIn(b string) uint32 {
	switch b[0] {
	case 0x52:
		return uint32(b[1])
	case 0x70:
		return binary.BigEndian.Uint32([]byte(b[1:]))
	default:
		return 0
	}
}

// nested is a value within lists, n deep.
func nested(n int) string {
	// The size of each list covers all bytes that follow.
	b := make([]byte, 0, 9*n+1)
	for i := range n {
		b = append(b, 0xd0)
		b = binary.BigEndian.AppendUint32(b, uint32(4+9*(n-i-1)+1))
		b = binary.BigEndian.AppendUint32(b, 1)
	}
	return string(append(b, 0x40))
}

// describedBy is a value that is described by a value that is described ..., n deep.
func describedBy(n int) string { return strings.Repeat("\x00", n) + strings.Repeat("\x43", n+1) }
