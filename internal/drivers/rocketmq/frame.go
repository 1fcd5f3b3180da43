package rocketmq

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/perfmq/perfmq/pkg/driver"
)

// The remoting protocol, as of org.apache.rocketmq.remoting.protocol (RemotingCommand, RocketMQSerializable). A frame is
//
//	int32 length of the rest | byte codec | int24 length of the header | header | body
//
// and a header in the binary codec is
//
//	int16 code | byte language | int16 version | int32 opaque | int32 flag | int32 length, remark | int32 length, fields
//
// where each field is int16 length, key, int32 length, value. Ours are binary; brokers answer in the codec of the
// request but use JSON for requests of their own.
const (
	codecJSON   = 0
	codecBinary = 1

	languageGo    = 9   // LanguageCode.GO
	clientVersion = 413 // MQVersion.V5_0_0: name servers answer such clients in standard JSON

	flagResponse = 1 // bit 0: an answer
	flagOneWay   = 2 // bit 1: no answer wanted

	// maxSent is the largest frame that brokers take (com.rocketmq.remoting.frameMaxLength).
	maxSent = 16 << 20
	// headRoom is by how much a frame that we take may be larger than the largest body.
	headRoom = 1 << 20
	// maxHeader is the largest header of a frame that we take. Of what brokers send, a message's properties are the longest:
	// 32 KiB.
	maxHeader = 1 << 20
	// minFrame is the length of the header's length.
	minFrame = 4

	opaqueAt    = 13 // offset of opaque in a frame
	flagAt      = 17
	fieldsLenAt = 25
	fieldsAt    = 29
)

// Request and answer codes: RequestCode, ResponseCode and RemotingSysResponseCode.
const (
	reqPull             = 11
	reqQueryOffset      = 14
	reqUpdateOffset     = 15
	reqCreateTopic      = 17
	reqBrokerConfig     = 26
	reqMaxOffset        = 30
	reqMinOffset        = 31
	reqHeartbeat        = 34
	reqUnregister       = 35
	reqSendBack         = 36
	reqEndTransaction   = 37
	reqConsumerList     = 38
	reqCheckTransaction = 39
	reqConsumersChanged = 40
	reqLockQueues       = 41
	reqUnlockQueues     = 42
	reqCheckClient      = 46
	reqRoute            = 105
	reqClusterInfo      = 106
	reqCreateGroup      = 200
	reqDeleteGroup      = 207
	reqConsumeStats     = 208
	reqDeleteInBroker   = 215
	reqDeleteInNamesrv  = 216
	reqTopicGroups      = 300
	reqGetGroup         = 352
	reqSend             = 310
	reqSendBatch        = 320

	codeSuccess          = 0
	codeSystemError      = 1
	codeSystemBusy       = 2
	codeNotSupported     = 3
	codeFlushDiskTimeout = 10
	codeSlaveMissing     = 11
	codeFlushSlaveLate   = 12
	codeIllegal          = 13
	codeNotAvailable     = 14
	codeNoPermission     = 16
	codeNoTopic          = 17
	codeNotFound         = 19 // of a pull: nothing new
	codeRetryNow         = 20
	codeOffsetMoved      = 21
	codeQueryNotFound    = 22
	codeParseFailed      = 23
	codeNoSubscription   = 24
	codeOldSubscription  = 25
	codeNoGroup          = 26
	codeFlowControl      = 215
	codeGoAway           = 1500
)

// field is a field of a header.
type field struct{ key, value string }

// beginFrame appends the start of a request without fields. Opaque is filled in when it is sent.
func beginFrame(b []byte, code uint16, flag uint32) []byte {
	b = append(b, 0, 0, 0, 0, codecBinary, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, code)
	b = append(b, languageGo)
	b = binary.BigEndian.AppendUint16(b, clientVersion)
	b = append(b, 0, 0, 0, 0) // opaque
	b = binary.BigEndian.AppendUint32(b, flag)
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0) // no remark, length of the fields
}

// appendField appends a field to a frame.
func appendField(b []byte, key, value string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
	b = append(b, key...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

// appendBytes is appendField for bytes. It leaves out a field without a value, which brokers sign as "null".
func appendBytes(b []byte, key string, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	b, at := openField(b, key)
	b = append(b, value...)
	closeField(b, at)
	return b
}

// openField appends a field's key and leaves its value to the caller, who calls closeField with what it returned.
func openField(b []byte, key string) (frame []byte, value int) {
	b = appendField(b, key, "")
	return b, len(b)
}

// closeField writes the length of a value that began there.
func closeField(b []byte, value int) {
	binary.BigEndian.PutUint32(b[value-4:], uint32(len(b)-value))
}

// endFrame writes the lengths into a frame that starts at b[0] and is followed by a body of that size.
func endFrame(b []byte, body int) {
	binary.BigEndian.PutUint32(b, uint32(len(b)-4+body))
	binary.BigEndian.PutUint32(b[4:], codecBinary<<24|uint32(len(b)-8))
	binary.BigEndian.PutUint32(b[fieldsLenAt:], uint32(len(b)-fieldsAt))
}

// reply is an answer, or a request of the broker. Its slices are valid only while it is being handled.
type reply struct {
	from    *conn
	err     error // there was no answer: the connection ended, or the time was over
	code    int
	flag    uint32
	opaque  uint32
	version int // of the server that sent it (MQVersion.Version.ordinal); 0 if it did not say
	remark  []byte
	fields  []byte // in the binary codec
	body    []byte

	fieldsJSON []byte // instead of fields: an object whose values are texts without escapes
}

var errFrame = errors.New("the peer sent a frame that is not of the remoting protocol")

const (
	notRocketMQ  = "is this a RocketMQ name server or broker?"
	lookAtBroker = "look into the broker's log; see also whether something between here and the broker changes what it sends"
)

// errLength is for a frame that says to have n bytes, of at most limit. Proven tells that the peer has sent good ones before.
func errLength(n uint32, limit int, proven bool) error {
	if proven && n > uint32(limit) { //nolint:gosec // above zero
		return driver.Errorf(driver.ClassTooLarge, "", "--max-message-size SIZE accepts larger messages",
			"the broker sends a frame of %d bytes; perfmq accepts at most %d", n, limit)
	}
	return driver.Errorf(driver.ClassProtocol, "", notRocketMQ,
		"the peer sends a frame of %d bytes; perfmq accepts %d to %d: %w", n, minFrame, limit, errFrame)
}

// parse reads a frame without its first four bytes, the length.
func (r *reply) parse(b []byte) error {
	*r = reply{}
	if len(b) < minFrame {
		return errFrame
	}
	size := int(binary.BigEndian.Uint32(b) & 0xffffff)
	if size > len(b)-minFrame {
		return errFrame
	}
	if size > maxHeader {
		return fmt.Errorf("%w: a header of %d bytes; perfmq accepts at most %d", errFrame, size, maxHeader)
	}
	header := b[minFrame : minFrame+size]
	r.body = b[minFrame+size:]
	switch b[0] {
	case codecBinary:
		return r.parseBinary(header)
	case codecJSON:
		return r.parseJSON(header)
	default:
		return errFrame
	}
}

func (r *reply) parseBinary(h []byte) error {
	if len(h) < 17 {
		return errFrame
	}
	r.code = int(int16(binary.BigEndian.Uint16(h)))
	r.version = int(binary.BigEndian.Uint16(h[3:]))
	r.opaque = binary.BigEndian.Uint32(h[5:])
	r.flag = binary.BigEndian.Uint32(h[9:])
	var ok bool
	if r.remark, h, ok = cutSized(h[13:]); !ok {
		return errFrame
	}
	if r.fields, _, ok = cutSized(h); !ok {
		return errFrame
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
func (r *reply) get(key string) []byte {
	if r.fieldsJSON != nil {
		return jsonField(r.fieldsJSON, key)
	}
	for b := r.fields; len(b) > 2; {
		n := int(binary.BigEndian.Uint16(b))
		if n > len(b)-2 {
			return nil
		}
		name := b[2 : 2+n]
		value, rest, ok := cutSized(b[2+n:])
		if !ok {
			return nil
		}
		if string(name) == key {
			return value
		}
		b = rest
	}
	return nil
}

// number returns a field that is a whole number; ok is false if there is none.
func (r *reply) number(key string) (n int64, ok bool) { return parseInt(r.get(key)) }

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
