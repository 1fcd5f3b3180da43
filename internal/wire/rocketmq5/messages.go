package rocketmq5

import (
	"errors"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Service is the beginning of the paths of all calls.
const Service = "/apache.rocketmq.v2.MessagingService/"

// The calls.
const (
	QueryRoute      = "QueryRoute"
	Heartbeat       = "Heartbeat"
	SendMessage     = "SendMessage"
	ReceiveMessage  = "ReceiveMessage"
	AckMessage      = "AckMessage"
	DeadLetter      = "ForwardMessageToDeadLetterQueue"
	EndTransaction  = "EndTransaction"
	Telemetry       = "Telemetry"
	NotifyTerminate = "NotifyClientTermination"
	ChangeInvisible = "ChangeInvisibleDuration"
)

// ClientType is the kind of a client.
type ClientType uint64

// The kinds of clients.
const (
	Producer       ClientType = 1
	PushConsumer   ClientType = 2
	SimpleConsumer ClientType = 3
)

// MessageType is the type of a message, and one of those that a topic takes.
type MessageType uint64

// The types of messages.
const (
	Normal      MessageType = 1
	FIFO        MessageType = 2
	Delay       MessageType = 3
	Transaction MessageType = 4
)

// String is the type's name, as in the topic's attribute message.type.
func (t MessageType) String() string {
	names := [...]string{"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION"}
	if t < MessageType(len(names)) {
		return names[t]
	}
	return "MIXED"
}

// Codes of answers (apache.rocketmq.v2.Code).
const (
	OK                    = 20000
	IllegalFilter         = 40010
	IllegalDelivery       = 40012
	InvalidHandle         = 40013
	TypeConflict          = 40014
	Unauthorized          = 40100
	Forbidden             = 40300
	NotFound              = 40400
	MessageNotFound       = 40401
	TopicNotFound         = 40402
	GroupNotFound         = 40403
	RequestTimeout        = 40800
	PayloadTooLarge       = 41300
	BodyTooLarge          = 41301
	BodyEmpty             = 41302
	TooManyRequests       = 42900
	PropertiesTooLarge    = 43101
	InternalError         = 50001
	NoReplica             = 50002
	NotImplemented        = 50100
	ProxyTimeout          = 50400
	PersistenceTimeout    = 50401
	ReplicaTimeout        = 50402
	Unsupported           = 50500
	VersionUnsupported    = 50501
	filterTag             = 1
	filterSQL             = 2
	encodingIdentity      = 1
	languageGo            = 4
	commit, rollback      = 1, 2
	fromClient, fromCheck = 1, 2
)

// ErrMessage is for bytes that are not the protobuf message that was expected.
var ErrMessage = errors.New("a message is not as protobuf encodes it")

// tag is a field's number and wire type, as protobuf encodes them.
type tag = uint64

func bytesOf(number tag) tag  { return number<<3 | uint64(protowire.BytesType) }
func numberOf(number tag) tag { return number<<3 | uint64(protowire.VarintType) }

// field is a field of a message.
type field struct {
	tag   tag
	n     uint64 // of a varint
	bytes []byte
}

// cut takes the first field off a message.
func cut(b []byte) (f field, rest []byte, err error) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return f, nil, ErrMessage
	}
	f.tag, b = uint64(number)<<3|uint64(kind), b[n:] //nolint:gosec // both are above zero
	switch kind {
	case protowire.VarintType:
		f.n, n = protowire.ConsumeVarint(b)
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(b)
	default:
		n = protowire.ConsumeFieldValue(number, kind, b)
	}
	if n < 0 {
		return f, nil, ErrMessage
	}
	return f, b[n:], nil
}

// each calls take for each field of a message, up to its first error.
func each(b []byte, take func(f field) error) error {
	for len(b) > 0 {
		f, rest, err := cut(b)
		if err == nil {
			err = take(f)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// AppendText appends a text; an empty one is left out.
func AppendText[T string | []byte](b []byte, number protowire.Number, text T) []byte {
	if len(text) == 0 {
		return b
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(len(text)))
	return append(b, text...)
}

// AppendNumber appends a number; 0 is left out.
func AppendNumber[N ~int | ~int64 | ~uint64](b []byte, number protowire.Number, n N) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(n))
}

// appendInner appends a message that is made of parts.
func appendInner(b []byte, number protowire.Number, parts ...[]byte) []byte {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(n)) //nolint:gosec // sizes
	for _, part := range parts {
		b = append(b, part...)
	}
	return b
}

// appendResource appends the name of a topic or group.
func appendResource(b []byte, number protowire.Number, name string) []byte {
	return appendInner(b, number, AppendText(nil, 2, name))
}

// appendDuration appends a google.protobuf.Duration.
func appendDuration(b []byte, number protowire.Number, d time.Duration) []byte {
	return appendInner(b, number, AppendNumber(AppendNumber(nil, 1, int64(d/time.Second)), 2, int64(d%time.Second)))
}

// appendTime appends a google.protobuf.Timestamp of microseconds since the Unix epoch. It does not allocate.
func appendTime(b []byte, number protowire.Number, micros int64) []byte {
	const second = 1_000_000
	b = append(protowire.AppendTag(b, number, protowire.BytesType), 0)
	at := len(b)
	b = AppendNumber(AppendNumber(b, 1, micros/second), 2, micros%second*1000)
	b[at-1] = byte(len(b) - at) // 17 at most
	return b
}

// readTime reads a google.protobuf.Timestamp, or a Duration, as microseconds; 0 for one beyond all reason.
func readTime(b []byte) (micros int64, err error) {
	const most = 1 << 40 // seconds, 35,000 years
	err = each(b, func(f field) error {
		switch {
		case f.tag == numberOf(1) && f.n < most:
			micros += int64(f.n) * 1_000_000
		case f.tag == numberOf(2) && f.n < 1_000_000_000:
			micros += int64(f.n) / 1000
		}
		return nil
	})
	return micros, err
}

// RouteRequest is a QueryRouteRequest. It names the host to which calls go.
func RouteRequest(topic, host string, port int) []byte {
	const name = 3 // DOMAIN_NAME: any text
	address := AppendNumber(AppendText(nil, 1, host), 2, port)
	return appendInner(appendResource(nil, 1, topic), 2, appendInner(AppendNumber(nil, 1, name), 2, address))
}

// HeartbeatRequest is a HeartbeatRequest or, as the fields are the same, a NotifyClientTerminationRequest. The group of
// a producer is empty.
func HeartbeatRequest(group string, kind ClientType) []byte {
	var b []byte
	if group != "" {
		b = appendResource(b, 1, group)
	}
	return AppendNumber(b, 2, kind)
}

// Filter selects messages by tags or, with SQL, by an expression of SQL92.
type Filter struct {
	Expression string
	SQL        bool
}

func (f *Filter) append(b []byte, number protowire.Number) []byte {
	kind := filterTag
	if f.SQL {
		kind = filterSQL
	}
	return appendInner(b, number, AppendText(AppendNumber(nil, 1, kind), 2, f.Expression))
}

// Settings are what a client tells of itself.
type Settings struct {
	Kind    ClientType
	Topic   string
	Group   string // of a consumer
	Filter  Filter // of a consumer
	Batch   int    // of a consumer
	Timeout time.Duration
	Version string // of the client
}

// SettingsCommand is a TelemetryCommand with settings.
func SettingsCommand(s *Settings) []byte {
	b := AppendNumber(nil, 1, s.Kind)
	b = appendInner(b, 3, AppendNumber(nil, 1, 1)) // one attempt
	b = appendDuration(b, 4, s.Timeout)
	b = appendInner(b, 7, AppendText(AppendNumber(nil, 1, languageGo), 2, s.Version))
	if s.Kind == Producer {
		b = appendInner(b, 5, AppendNumber(appendResource(nil, 1, s.Topic), 3, 1)) // validate_message_type
	} else {
		of := appendInner(appendResource(nil, 1, s.Group), 2, s.Filter.append(appendResource(nil, 1, s.Topic), 2))
		b = appendInner(b, 6, appendDuration(AppendNumber(of, 4, s.Batch), 5, s.Timeout))
	}
	return appendInner(nil, 2, b)
}

// Command is a TelemetryCommand of the proxy.
type Command struct {
	Status   Status
	Settings bool // the command has settings
	// FIFO: the settings say that the group consumes in order.
	FIFO bool
	// Of a transaction without an end: the message and the transaction.
	Orphan        bool
	Message       Message
	TransactionID []byte
	// Reconnect: the proxy asks for new connections.
	Reconnect bool
}

// Read reads a command.
func (c *Command) Read(b []byte) error {
	*c = Command{}
	return each(b, func(f field) error {
		switch f.tag {
		case bytesOf(1):
			return c.Status.read(f.bytes)
		case bytesOf(2):
			c.Settings = true
			return each(f.bytes, func(f field) error {
				if f.tag != bytesOf(6) {
					return nil
				}
				return each(f.bytes, func(f field) error {
					c.FIFO = c.FIFO || f.tag == numberOf(3) && f.n != 0
					return nil
				})
			})
		case bytesOf(5):
			c.Orphan = true
			return each(f.bytes, func(f field) error {
				switch f.tag {
				case bytesOf(1):
					return c.Message.Read(f.bytes)
				case bytesOf(2):
					c.TransactionID = f.bytes
				}
				return nil
			})
		case bytesOf(8):
			c.Reconnect = true
		}
		return nil
	})
}

// Status is the end of a call, or of one of its entries, in RocketMQ's terms.
type Status struct {
	Code    int
	Message []byte
}

func (s *Status) read(b []byte) error {
	return each(b, func(f field) error {
		switch f.tag {
		case numberOf(1):
			s.Code = int(uint32(f.n)) //nolint:gosec // an enum
		case bytesOf(2):
			s.Message = f.bytes
		}
		return nil
	})
}

// Reply is the answer to a call with one answer. A field that this answer has not is zero.
type Reply struct {
	Status Status
	// Of SendMessage: its first entry.
	Entry                    Status
	MessageID, TransactionID []byte
	// Of AckMessage: the entries that failed, and one of them.
	Unacked int
	Queues  []Queue
}

// Queue is a queue of a topic.
type Queue struct {
	Broker             string
	Readable, Writable bool
}

// MaxQueues is the largest number of queues of a topic.
const MaxQueues = 1 << 14

// Read reads the answer to a call.
func (r *Reply) Read(call string, b []byte) error {
	*r = Reply{Queues: r.Queues[:0]}
	return each(b, func(f field) error {
		switch {
		case f.tag == bytesOf(1):
			return r.Status.read(f.bytes)
		case f.tag != bytesOf(2):
		case call == SendMessage && r.Entry.Code == 0:
			return r.readEntry(f.bytes)
		case call == AckMessage:
			var entry Reply
			if err := each(f.bytes, func(f field) error {
				if f.tag != bytesOf(3) {
					return nil
				}
				return entry.Entry.read(f.bytes)
			}); err != nil {
				return err
			}
			if entry.Entry.Code != OK {
				r.Entry = entry.Entry
				r.Unacked++
			}
		case call == QueryRoute:
			return r.readQueue(f.bytes)
		}
		return nil
	})
}

func (r *Reply) readEntry(b []byte) error {
	return each(b, func(f field) error {
		switch f.tag {
		case bytesOf(1):
			return r.Entry.read(f.bytes)
		case bytesOf(2):
			r.MessageID = f.bytes
		case bytesOf(3):
			r.TransactionID = f.bytes
		}
		return nil
	})
}

func (r *Reply) readQueue(b []byte) error {
	if len(r.Queues) == MaxQueues {
		return ErrMessage
	}
	var q Queue
	err := each(b, func(f field) error {
		const read, write, both = 2, 3, 4
		switch f.tag {
		case numberOf(3):
			q.Readable, q.Writable = f.n == read || f.n == both, f.n == write || f.n == both
		case bytesOf(4):
			return each(f.bytes, func(f field) error {
				if f.tag == bytesOf(1) {
					q.Broker = string(f.bytes)
				}
				return nil
			})
		}
		return nil
	})
	r.Queues = append(r.Queues, q)
	return err
}

// EndRequest is an EndTransactionRequest; check: it answers the proxy's question.
func EndRequest(topic string, id, transaction []byte, rolledBack, check bool) []byte {
	resolution, source := commit, fromClient
	if rolledBack {
		resolution = rollback
	}
	if check {
		source = fromCheck
	}
	b := AppendText(AppendText(appendResource(nil, 1, topic), 2, id), 3, transaction)
	return AppendNumber(AppendNumber(b, 4, resolution), 5, source)
}

// AckHead begins an AckMessageRequest, and the other requests about a received message: the group and the topic.
func AckHead(topic, group string) []byte {
	return appendResource(appendResource(nil, 1, group), 2, topic)
}

// AppendAck appends an entry of an AckMessageRequest.
func AppendAck(b, id, handle []byte) []byte {
	n := protowire.SizeTag(1) + protowire.SizeBytes(len(id)) + protowire.SizeTag(2) + protowire.SizeBytes(len(handle))
	b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.BytesType), uint64(n)) //nolint:gosec // sizes
	b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), id)
	return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), handle)
}

// InvisibleRequest is a ChangeInvisibleDurationRequest: the message is delivered again after that time.
func InvisibleRequest(head, id, handle []byte, after time.Duration) []byte {
	return AppendText(appendDuration(AppendText(head[:len(head):len(head)], 3, handle), 4, after), 5, id)
}

// DeadLetterRequest is a ForwardMessageToDeadLetterQueueRequest.
func DeadLetterRequest(head, id, handle []byte, attempt int) []byte {
	b := AppendText(AppendText(head[:len(head):len(head)], 3, handle), 4, id)
	return AppendNumber(AppendNumber(b, 5, attempt), 6, attempt)
}

// ReceiveRequest is a ReceiveMessageRequest of a consumer to a broker. The proxy keeps the messages of a push consumer
// invisible until they are settled.
func ReceiveRequest(s *Settings, broker string, invisible, poll time.Duration) []byte {
	queue := AppendNumber(appendResource(nil, 1, s.Topic), 2, -1) // any
	b := appendInner(appendResource(nil, 1, s.Group), 2, appendInner(queue, 4, AppendText(nil, 1, broker)))
	b = appendDuration(AppendNumber(s.Filter.append(b, 3), 4, s.Batch), 5, invisible)
	if s.Kind == PushConsumer {
		b = AppendNumber(b, 6, 1)
	}
	return appendDuration(b, 7, poll)
}

// Received is one of the messages that answer a ReceiveMessageRequest.
type Received struct {
	Status  Status // code 0: none
	Message Message
}

// Read reads one of the answers.
func (r *Received) Read(b []byte) error {
	r.Status = Status{}
	return each(b, func(f field) error {
		switch f.tag {
		case bytesOf(1):
			return r.Status.read(f.bytes)
		case bytesOf(2):
			return r.Message.Read(f.bytes)
		}
		return nil
	})
}

// Message is a message that was received. Its slices are parts of the bytes it was read from.
type Message struct {
	Body         []byte
	ID, Handle   []byte
	Born, Stored int64 // microseconds since the Unix epoch
	Attempt      int   // 1 for the first delivery; 0 if unknown
	Compressed   bool
	Properties   []Property // of the user
}

// Property is a property of a message.
type Property struct{ Key, Value []byte }

// MaxProperties is the largest number of properties of a message that we keep; the proxy takes 128.
const MaxProperties = 1024

// Read reads a message, and keeps the memory of the properties of the one before.
func (m *Message) Read(b []byte) error {
	*m = Message{Properties: m.Properties[:0]}
	return each(b, func(f field) error {
		switch f.tag {
		case bytesOf(2):
			if len(m.Properties) == MaxProperties {
				return ErrMessage
			}
			var p Property
			err := each(f.bytes, func(f field) error {
				switch f.tag {
				case bytesOf(1):
					p.Key = f.bytes
				case bytesOf(2):
					p.Value = f.bytes
				}
				return nil
			})
			m.Properties = append(m.Properties, p)
			return err
		case bytesOf(3):
			return m.readSystem(f.bytes)
		case bytesOf(4):
			m.Body = f.bytes
		}
		return nil
	})
}

// readSystem reads the message's SystemProperties.
func (m *Message) readSystem(b []byte) error {
	return each(b, func(f field) (err error) {
		switch f.tag {
		case bytesOf(3):
			m.ID = f.bytes
		case numberOf(5):
			m.Compressed = f.n > encodingIdentity
		case bytesOf(7):
			m.Born, err = readTime(f.bytes)
		case bytesOf(9):
			m.Stored, err = readTime(f.bytes)
		case bytesOf(12):
			m.Handle = f.bytes
		case numberOf(16):
			m.Attempt = int(int32(f.n)) //nolint:gosec // an int32
		}
		return err
	})
}

// A SendMessageRequest with one message is put together from parts: those that all messages of a kind share are
// prepared.

// OutgoingTopic is the encoded topic of a message.
func OutgoingTopic(topic string) []byte { return appendResource(nil, 1, topic) }

// AppendUser appends a property of the user.
func AppendUser[T string | []byte](b []byte, key string, value T) []byte {
	n := protowire.SizeTag(1) + protowire.SizeBytes(len(key)) + protowire.SizeTag(2) + protowire.SizeBytes(len(value))
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.BytesType), uint64(n)) //nolint:gosec // sizes
	b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), key)
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.BytesType), uint64(len(value)))
	return append(b, value...)
}

// AppendUserNumber appends a property that is a number of at most 19 digits, not below zero.
func AppendUserNumber(b []byte, key string, n int64) []byte {
	var text [20]byte
	return AppendUser(b, key, strconv.AppendInt(text[:0], n, 10))
}

// ParseInt reads the value of such a property.
func ParseInt(text []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// AppendSystem appends those system properties that all messages of a kind have.
func AppendSystem(b []byte, tag, bornHost string, kind MessageType) []byte {
	b = AppendNumber(AppendNumber(AppendText(b, 1, tag), 5, encodingIdentity), 6, kind)
	return AppendText(b, 8, bornHost)
}

// BeginSystem begins the system properties of a message, after its properties of the user: own are those that all have.
// EndSystem follows with the result and the place.
func BeginSystem(b, own, id []byte, born int64) (out []byte, at int) {
	b = append(protowire.AppendTag(b, 3, protowire.BytesType), 0, 0, 0)
	at = len(b)
	return appendTime(AppendText(append(b, own...), 3, id), 7, born), at
}

// AppendDelivery appends the moment of a delayed delivery, in microseconds since the Unix epoch.
func AppendDelivery(b []byte, micros int64) []byte { return appendTime(b, 11, micros) }

// AppendGroup appends the message group.
func AppendGroup(b []byte, group string) []byte { return AppendText(b, 17, group) }

// EndSystem ends them: their length has three bytes, as a varint may.
func EndSystem(b []byte, at int) []byte {
	n := len(b) - at
	b[at-3], b[at-2], b[at-1] = byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)&0x7f
	return b
}

// AppendBody begins the last field of a message, whose bytes follow.
func AppendBody(b []byte, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.BytesType), uint64(size)) //nolint:gosec // a size
}

// AppendRequestHead appends the prefix of gRPC and the beginning of a SendMessageRequest whose message has that size.
func AppendRequestHead(b []byte, size int) []byte {
	whole := protowire.SizeTag(1) + protowire.SizeBytes(size)
	b = protowire.AppendTag(AppendPrefix(b, whole), 1, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(size)) //nolint:gosec // a size
}
