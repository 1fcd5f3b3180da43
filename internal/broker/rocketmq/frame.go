package rocketmq

import (
	"encoding/binary"
	"errors"
	"strconv"
)

var errFrame = errors.New("a frame is not of RocketMQ's remoting protocol")

const (
	// headRoom is how much larger than a message's body a frame may be.
	headRoom = 1 << 20
	// largestFrame is how large frames may be at least, that of their length included, as in RocketMQ
	// (com.rocketmq.remoting.frameMaxLength): what is larger than a message may be is read, to be refused with an answer.
	largestFrame = 16 << 20
	minFrame     = 4   // the length of the header's length
	maxFields    = 256 // of a header
)

// field is a field of a header.
type field struct{ key, value []byte }

// request is a request, or an answer to one of ours. Its slices are valid only while it is being handled.
type request struct {
	codec   byte
	code    int
	flag    uint32
	opaque  uint32
	fields  []field
	body    []byte
	scratch []byte // unescaped texts
}

// parse reads a frame without its first four bytes, the length:
//
//	byte codec | int24 length of the header | header | body
//
// and a header in the binary codec is
//
//	int16 code | byte language | int16 version | int32 opaque | int32 flag | int32 length, remark | int32 length, fields
func (r *request) parse(b []byte) error {
	*r = request{fields: r.fields[:0], scratch: r.scratch[:0]}
	if len(b) < minFrame {
		return errFrame
	}
	size := int(binary.BigEndian.Uint32(b) & 0xffffff)
	if size > len(b)-minFrame {
		return errFrame
	}
	header := b[minFrame : minFrame+size]
	r.body, r.codec = b[minFrame+size:], b[0]
	switch r.codec {
	case codecBinary:
		return r.parseBinary(header)
	case codecJSON:
		return r.parseJSON(header)
	default:
		return errFrame
	}
}

func (r *request) parseBinary(h []byte) error {
	if len(h) < 17 {
		return errFrame
	}
	r.code = int(int16(binary.BigEndian.Uint16(h)))
	r.opaque = binary.BigEndian.Uint32(h[5:])
	r.flag = binary.BigEndian.Uint32(h[9:])
	_, h, ok := cutSized(h[13:])
	if !ok {
		return errFrame
	}
	fields, _, ok := cutSized(h)
	if !ok {
		return errFrame
	}
	for len(fields) > 0 {
		if len(fields) < 2 {
			return errFrame
		}
		n := int(binary.BigEndian.Uint16(fields))
		if n > len(fields)-2 {
			return errFrame
		}
		key := fields[2 : 2+n]
		value, rest, ok := cutSized(fields[2+n:])
		if !ok || len(r.fields) == maxFields {
			return errFrame
		}
		r.fields = append(r.fields, field{key, value})
		fields = rest
	}
	return nil
}

// cutSized takes an int32 length and that many bytes off b.
func cutSized(b []byte) (value, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n], b[4+n:], true
}

// get returns a field of the header, nil if it has none of that name.
func (r *request) get(key string) []byte {
	for i := range r.fields {
		if string(r.fields[i].key) == key {
			return r.fields[i].value
		}
	}
	return nil
}

// number returns a field that is a whole number, and otherwise the given one.
func (r *request) number(key string, otherwise int64) int64 {
	if n, ok := parseInt(r.get(key)); ok {
		return n
	}
	return otherwise
}

// parseInt is strconv.ParseInt for bytes in base 10, without allocation.
func parseInt(b []byte) (n int64, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	var u uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if u > 1<<63-1 {
		return 0, false
	}
	if negative {
		return -int64(u), true
	}
	return int64(u), true
}

// frameWriter appends frames to b: begin, fields, body, end.
type frameWriter struct {
	b      []byte
	start  int // of the frame
	fields int // of the fields
	codec  byte
}

// answer begins an answer to r.
func (w *frameWriter) answer(r *request, code int, remark string) {
	w.begin(r.codec, code, r.opaque, flagAnswer, remark)
}

func (w *frameWriter) begin(codec byte, code int, opaque, flag uint32, remark string) {
	w.start, w.codec = len(w.b), codec
	b := append(w.b, 0, 0, 0, 0, codec, 0, 0, 0)
	if codec == codecJSON {
		b = append(b, `{"code":`...)
		b = strconv.AppendInt(b, int64(code), 10)
		b = append(b, `,"flag":`...)
		b = strconv.AppendUint(b, uint64(flag), 10)
		b = append(b, `,"language":"GO","opaque":`...)
		b = strconv.AppendInt(b, int64(int32(opaque)), 10)
		b = append(b, `,"serializeTypeCurrentRPC":"JSON","version":413,`...)
		if remark != "" {
			b = append(b, `"remark":`...)
			b = append(appendQuoted(b, remark), ',')
		}
		b = append(b, `"extFields":{`...)
		w.b, w.fields = b, len(b)
		return
	}
	b = binary.BigEndian.AppendUint16(b, uint16(code))
	b = append(b, languageGo)
	b = binary.BigEndian.AppendUint16(b, version)
	b = binary.BigEndian.AppendUint32(b, opaque)
	b = binary.BigEndian.AppendUint32(b, flag)
	b = binary.BigEndian.AppendUint32(b, uint32(len(remark)))
	b = append(b, remark...)
	b = append(b, 0, 0, 0, 0)
	w.b, w.fields = b, len(b)
}

func (w *frameWriter) open(key string) (value int) {
	if w.codec == codecJSON {
		if len(w.b) > w.fields {
			w.b = append(w.b, ',')
		}
		w.b = append(append(append(w.b, '"'), key...), `":"`...)
		return 0
	}
	w.b = binary.BigEndian.AppendUint16(w.b, uint16(len(key)))
	w.b = append(append(w.b, key...), 0, 0, 0, 0)
	return len(w.b)
}

func (w *frameWriter) close(value int) {
	if w.codec == codecJSON {
		w.b = append(w.b, '"')
		return
	}
	binary.BigEndian.PutUint32(w.b[value-4:], uint32(len(w.b)-value))
}

// text appends a field.
func (w *frameWriter) text(key, value string) {
	at := w.open(key)
	if w.codec == codecJSON {
		w.b = appendEscaped(w.b, value)
	} else {
		w.b = append(w.b, value...)
	}
	w.close(at)
}

// number appends a field.
func (w *frameWriter) number(key string, n int64) {
	at := w.open(key)
	w.b = strconv.AppendInt(w.b, n, 10)
	w.close(at)
}

// endHeader ends the header; the body is to be appended to b.
func (w *frameWriter) endHeader() {
	if w.codec == codecJSON {
		w.b = append(w.b, '}', '}')
	} else {
		binary.BigEndian.PutUint32(w.b[w.fields-4:], uint32(len(w.b)-w.fields))
	}
	binary.BigEndian.PutUint32(w.b[w.start+4:], uint32(w.codec)<<24|uint32(len(w.b)-w.start-8))
}

// end ends the frame.
func (w *frameWriter) end() {
	binary.BigEndian.PutUint32(w.b[w.start:], uint32(len(w.b)-w.start-4))
}

// simple appends an answer without fields and body.
func (w *frameWriter) simple(r *request, code int, remark string) {
	w.answer(r, code, remark)
	w.endHeader()
	w.end()
}

// withBody appends an answer with a body.
func (w *frameWriter) withBody(r *request, body []byte) {
	w.answer(r, codeSuccess, "")
	w.endHeader()
	w.b = append(w.b, body...)
	w.end()
}

// withNumber appends an answer with one field.
func (w *frameWriter) withNumber(r *request, key string, n int64) {
	w.answer(r, codeSuccess, "")
	w.number(key, n)
	w.endHeader()
	w.end()
}
