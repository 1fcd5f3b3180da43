package rocketmq

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// A stored message, as a pull or a check-back brings it (MessageDecoder.encode), is
//
//	int32 size | int32 magic | int32 checksum of the body | int32 queue | int32 flag | int64 offset in the queue |
//	int64 offset in the log | int32 system flag | int64 born | host | int64 stored | host | int32 retries |
//	int64 offset of the half message | int32 length, body | length, topic | int16 length, properties
//
// where a host is 4 or, by the system flag, 16 bytes of address and an int32 port, and the topic's length is a byte
// or, by the magic, an int16.
const (
	magicV1 = 0xdaa320a7 // MessageDecoder.MESSAGE_MAGIC_CODE
	magicV2 = 0xdaa320ab // MESSAGE_MAGIC_CODE_V2
	// shortTopic is the longest topic of a message with the first magic (MessageVersion).
	shortTopic = 127
	// fixedSize is the size of a message with the first magic and without hosts, body, topic and properties.
	fixedSize = 4 + 4 + 4 + 4 + 4 + 8 + 8 + 4 + 8 + 8 + 4 + 8 + 4 + 1 + 2
	hostsAt   = 48 // of the host where it was born

	hostV4 = 8
	hostV6 = 20
	// MaxProperties is the largest length of properties, in bytes.
	MaxProperties = 1<<15 - 1
)

// ErrMessage is for bytes that are not a message.
var ErrMessage = errors.New("a message is not as RocketMQ stores it")

// MessageHead holds the fields of a stored message besides body, topic and properties.
type MessageHead struct {
	Queue       int32
	Flag        uint32
	QueueOffset int64
	LogOffset   int64
	SysFlag     uint32
	Born        int64 // milliseconds since the Unix epoch
	BornHost    []byte
	Stored      int64 // milliseconds since the Unix epoch
	StoreHost   []byte
	Retries     int32 // how often it was given back
	Prepared    int64 // the offset of the half message; 0 if it was not in a transaction
}

// Message is a stored message. Its slices are parts of the bytes it was cut from.
type Message struct {
	MessageHead
	Checksum   uint32 // of the body as it is sent: the lower 31 bits of CRC-32. It is not checked.
	Body       []byte // compressed or not, see SysFlag
	Topic      []byte
	Properties []byte
}

// Cut reads the first message of b and returns the bytes after it. The error is ErrMessage.
func (m *Message) Cut(b []byte) (rest []byte, err error) {
	be := binary.BigEndian
	if len(b) < 4 {
		return nil, ErrMessage
	}
	size := be.Uint32(b)
	if uint64(size) > uint64(len(b)) || size < fixedSize+2*hostV4 {
		return nil, ErrMessage
	}
	b, rest = b[:size], b[size:]
	magic := be.Uint32(b[4:])
	m.Checksum = be.Uint32(b[8:])
	m.Queue = int32(be.Uint32(b[12:]))
	m.Flag = be.Uint32(b[16:])
	m.QueueOffset = int64(be.Uint64(b[20:]))
	m.LogOffset = int64(be.Uint64(b[28:]))
	m.SysFlag = be.Uint32(b[36:])
	m.Born = int64(be.Uint64(b[40:]))
	born, stored := hostSize(m.SysFlag&SysBornHostV6 != 0), hostSize(m.SysFlag&SysStoreHostV6 != 0)
	if len(b) < fixedSize+born+stored {
		return nil, ErrMessage
	}
	m.BornHost, b = b[hostsAt:hostsAt+born], b[hostsAt+born:]
	m.Stored = int64(be.Uint64(b))
	m.StoreHost, b = b[8:8+stored], b[8+stored:]
	m.Retries = int32(be.Uint32(b))
	m.Prepared = int64(be.Uint64(b[4:]))
	var ok bool
	if m.Body, b, ok = cutSized(b[12:]); !ok {
		return nil, ErrMessage
	}
	switch {
	case magic == magicV1 && len(b) >= 1 && len(b) >= 1+int(b[0]):
		m.Topic, b = b[1:1+int(b[0])], b[1+int(b[0]):]
	case magic == magicV2:
		m.Topic, b, ok = cutShort(b)
	default:
		ok = false
	}
	if ok {
		m.Properties, _, ok = cutShort(b)
	}
	if !ok {
		return nil, ErrMessage
	}
	return rest, nil
}

func hostSize(v6 bool) int {
	if v6 {
		return hostV6
	}
	return hostV4
}

// SizeMessage returns the number of bytes that AppendMessage appends for a head with hosts of IPv4, and lengths of
// body, topic and properties.
func SizeMessage(body, topic, properties int) int {
	if topic > shortTopic {
		topic++
	}
	return fixedSize + 2*hostV4 + body + topic + properties
}

// AppendMessage appends a stored message. Its hosts are of IPv4, 8 bytes.
func AppendMessage[T string | []byte](b []byte, h *MessageHead, body []byte, topic T, properties []byte) []byte {
	be := binary.BigEndian
	start := len(b)
	magic := uint32(magicV1)
	if len(topic) > shortTopic {
		magic = magicV2
	}
	b = be.AppendUint32(b, 0) // the size
	b = be.AppendUint32(b, magic)
	b = be.AppendUint32(b, crc32.ChecksumIEEE(body)&(1<<31-1))
	b = be.AppendUint32(b, uint32(h.Queue))
	b = be.AppendUint32(b, h.Flag)
	b = be.AppendUint64(b, uint64(h.QueueOffset))
	b = be.AppendUint64(b, uint64(h.LogOffset))
	b = be.AppendUint32(b, h.SysFlag&^(SysBornHostV6|SysStoreHostV6))
	b = be.AppendUint64(b, uint64(h.Born))
	b = append(b, h.BornHost...)
	b = be.AppendUint64(b, uint64(h.Stored))
	b = append(b, h.StoreHost...)
	b = be.AppendUint32(b, uint32(h.Retries))
	b = be.AppendUint64(b, uint64(h.Prepared))
	b = be.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	if magic == magicV2 {
		b = append(b, byte(len(topic)>>8))
	}
	b = append(append(b, byte(len(topic))), topic...)
	b = be.AppendUint16(b, uint16(len(properties)))
	b = append(b, properties...)
	be.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// A message of a batch (MessageDecoder.encodeMessage) is
//
//	int32 size | int32 magic | int32 checksum | int32 flag | int32 length, body | int16 length, properties
//
// where magic and checksum are 0.
const batchedHead = 16

// Batched is a message of a batch. Its slices are parts of the bytes it was cut from.
type Batched struct {
	Flag             uint32
	Body, Properties []byte
}

// CutBatched takes the first message off a batch; ok is false if it is malformed.
func CutBatched(b []byte) (m Batched, rest []byte, ok bool) {
	if len(b) < batchedHead {
		return m, nil, false
	}
	size := binary.BigEndian.Uint32(b)
	if uint64(size) > uint64(len(b)) || size < batchedHead {
		return m, nil, false
	}
	m.Flag = binary.BigEndian.Uint32(b[12:])
	body, p, ok := cutSized(b[batchedHead:size])
	if ok {
		m.Body = body
		m.Properties, _, ok = cutShort(p)
	}
	return m, b[size:], ok && len(m.Properties) <= MaxProperties
}

// BeginBatched appends a message to a batch, without its properties. The caller appends them, and then calls EndBatched
// with the returned properties and the size of the body.
func BeginBatched(b []byte, flag uint32, body []byte) (batch []byte, properties int) {
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, flag)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	b = append(append(b, body...), 0, 0)
	return b, len(b)
}

// EndBatched writes the lengths of a message of a batch that ends with b and has a body of that size.
func EndBatched(b []byte, properties, body int) {
	start := properties - 2 - body - 4 - batchedHead
	binary.BigEndian.PutUint16(b[properties-2:], uint16(len(b)-properties))
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
}

// AppendMessageID appends a stored message's id for clients: the broker's host, of 8 or 20 bytes, and the offset in its
// log, in hexadecimal (MessageDecoder.createMessageId).
func AppendMessageID(b, host []byte, offset int64) []byte {
	start := len(b)
	b = hex.AppendEncode(b, host)
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(offset))
	b = hex.AppendEncode(b, n[:])
	for i, c := range b[start:] {
		if c >= 'a' {
			b[start+i] = c - 'a' + 'A'
		}
	}
	return b
}

// ParseMessageID returns the offset in the log of such an id (MessageDecoder.decodeMessageId).
func ParseMessageID(id []byte) (offset int64, ok bool) {
	if len(id) != 2*(hostV4+8) && len(id) != 2*(hostV6+8) {
		return 0, false
	}
	var b [8]byte
	if _, err := hex.Decode(b[:], id[len(id)-16:]); err != nil {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b[:])), true
}

// The compressions that we do not know are LZ4 and ZSTD (CompressionType).
var (
	// ErrCompression is for a body of another compression than zlib.
	ErrCompression = errors.New("a body is compressed with LZ4 or ZSTD")
	// ErrTooLong is for a body that would become longer than its limit.
	ErrTooLong = errors.New("a body is longer than its limit")
)

// Inflater undoes the compression of bodies, one after the other. Its zero value is ready.
type Inflater struct {
	source bytes.Reader
	reader io.ReadCloser
	out    []byte
}

// Inflate returns the body of a message with the flag SysCompressed, valid until the next call. It takes memory for
// one byte more than limit at most, as far as there are bytes to fill it. The error is ErrCompression, ErrTooLong, or
// wraps ErrMessage.
func (d *Inflater) Inflate(sysFlag uint32, body []byte, limit int) ([]byte, error) {
	if t := sysFlag & SysCompression; t != 0 && t != SysCompressionZlib {
		return nil, ErrCompression
	}
	if err := d.read(body, limit); err != nil {
		return nil, errors.Join(ErrMessage, err)
	}
	if len(d.out) > limit {
		return nil, ErrTooLong
	}
	return d.out, nil
}

// read decompresses at most one byte more than there may be.
func (d *Inflater) read(compressed []byte, limit int) (err error) {
	d.source.Reset(compressed)
	if d.reader == nil {
		d.reader, err = zlib.NewReader(&d.source)
	} else {
		err = d.reader.(zlib.Resetter).Reset(&d.source, nil)
	}
	if err != nil {
		d.reader = nil
		return err
	}
	const first = 16 << 10
	for d.out = d.out[:0]; len(d.out) <= limit; {
		if len(d.out) == cap(d.out) {
			d.out = slices.Grow(d.out, min(max(first, len(d.out)), limit+1-len(d.out)))
		}
		n, err := d.reader.Read(d.out[len(d.out):cap(d.out)])
		d.out = d.out[:len(d.out)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Properties travel as name 1 value 2 name 1 value 2 ... (MessageDecoder.NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR).
// Neither can have these characters in it.
const (
	NameEnd     = '\x01'
	PropertyEnd = '\x02'
)

// CutProperty takes the first property off b. The last need not have an end. The name is empty without one, which is to
// be passed over.
func CutProperty(b []byte) (name, value, rest []byte) {
	if i := bytes.IndexByte(b, PropertyEnd); i >= 0 {
		b, rest = b[:i], b[i+1:]
	}
	if i := bytes.IndexByte(b, NameEnd); i > 0 {
		return b[:i], b[i+1:], rest
	}
	return nil, nil, rest
}

// Property returns the value of the first property of that name, or nil.
func Property(b []byte, name string) []byte {
	for len(b) > 0 {
		var key, value []byte
		if key, value, b = CutProperty(b); len(key) > 0 && string(key) == name {
			return value
		}
	}
	return nil
}

// AppendProperty appends a property.
func AppendProperty[T string | []byte](b []byte, name string, value T) []byte {
	b = append(append(b, name...), NameEnd)
	return append(append(b, value...), PropertyEnd)
}

// AppendIntProperty appends a property that is a whole number.
func AppendIntProperty(b []byte, name string, n int64) []byte {
	b = append(append(b, name...), NameEnd)
	return append(strconv.AppendInt(b, n, 10), PropertyEnd)
}

// CarriesProperty reports whether a name or value can be written: whether it has neither separator in it.
func CarriesProperty(text string) bool {
	return !strings.ContainsAny(text, string(NameEnd)+string(PropertyEnd))
}

// HashCode is String.hashCode: brokers compare tags by it.
func HashCode(text []byte) (hash int32) {
	var buf [2]uint16
	for _, r := range string(text) {
		for _, unit := range utf16.AppendRune(buf[:0], r) {
			hash = 31*hash + int32(unit)
		}
	}
	return hash
}
