package driver

import (
	"bytes"
	"math"
	"strconv"
)

// TimeProperty is the name of the message property that carries [Message.Time]. `artemis perf` uses the same name and
// unit, so that each tool understands the other's messages.
const TimeProperty = "time"

// Message is one message that the engine asks a producer to send. The parts that all messages of a kind share are in
// their [Variant], so that a driver can prepare them once.
type Message struct {
	// Slot names the message until its end is reported.
	Slot Slot
	// Variant is the message's index in [ProducerSpec.Variants].
	Variant int
	// Group, unless it is empty, takes the place of the variant's group, which has the same length.
	Group string
	// Body, unless it is nil, is the payload in place of [Variant.Body], and has its length. It is valid until Send
	// returns.
	Body []byte
	// Values has one for each property of the variant that Varies, in their order, valid until Send returns.
	Values [][]byte
	// Time is the moment of sending in microseconds since the Unix epoch, to be sent as the property [TimeProperty].
	Time int64
	// ID, unless it is zero, travels as text in the property [IDProperty].
	ID ID
	// ReplyTo, unless it is empty, is where the reply goes: the [Addressed] of a consumer.
	ReplyTo string
	// Correlation, unless it is empty, is the correlation ID of the message: of a request one that its reply repeats,
	// of a reply [Delivery.ReplyID]. Where clients choose message IDs, it is the message ID of a request, too.
	Correlation []byte
	// To is where the message goes, if and only if the producer is [ProducerSpec.Anonymous]: [Delivery.ReplyTo]. Like
	// Correlation, it is valid until Send returns.
	To []byte
	// More announces that another call of Send, or a call of Flush, follows at once: the driver may let the message wait
	// for the next one, to write both together.
	More bool
}

// BodyOr returns the body of the message, or that of its variant if it has none of its own.
func (m *Message) BodyOr(variant []byte) []byte {
	if m.Body != nil {
		return m.Body
	}
	return variant
}

// Delivery is a message as a consumer received it.
type Delivery struct {
	// Time is the value of the property [TimeProperty]: when the message was sent, in microseconds since the Unix epoch.
	// It is meaningful only if HasTime is true.
	Time    int64
	HasTime bool
	// ID is the [Message.ID] that the message carried, as [ParseID] reads it; zero if it had none.
	ID ID
	// Body is the payload, valid only during the call of deliver.
	Body []byte
	// Born and Stored are when the producer made the message and when the broker stored it, in microseconds since the Unix
	// epoch, as the protocol reports them (RocketMQ: in milliseconds, by the clocks of those machines); 0 if it does not.
	// The engine computes the latencies from them to the delivery: RocketMQ's B2C and S2C.
	Born, Stored int64
	// Redelivered is set when the broker marks the message as delivered before, or when the driver knows that from the
	// broker's own number of the message.
	Redelivered bool
	// Deferred is set when the producer, by plan, let the broker deliver the message only long after it was accepted, at
	// an unknown time: its time in the broker says nothing about the broker's speed.
	Deferred bool
	// ReplyTo is where the sender awaits a reply; Correlation and MessageID are the texts of these IDs. Each is empty
	// if the message has none. They are set for a consumer with [ConsumerSpec.Correlated], and valid like Body. An ID
	// of another type than text, and a ReplyTo, may be in a form that only drivers of the same protocol read.
	ReplyTo, Correlation, MessageID []byte
}

// ReplyID returns the correlation ID of the reply to a request: that of the request, or its message ID if it has none,
// as Spring's and Camel's services choose it.
func (d *Delivery) ReplyID() []byte {
	if len(d.Correlation) > 0 {
		return d.Correlation
	}
	return d.MessageID
}

// State is how a send ended.
type State uint8

// The states of an [Outcome], named as in AMQP 1.0 (Messaging, section 3.4); other protocols map onto them.
const (
	// Accepted: the broker took responsibility for the message. With at-most-once delivery, where brokers do not
	// answer, it means that the message was handed to the operating system.
	Accepted State = iota
	// Rejected: the broker refused the message as invalid or unwelcome, for example because the address is full.
	Rejected
	// Released: the broker gave the message back untouched (AMQP released).
	Released
	// Modified: the broker gave the message back, and may have tried to deliver it (AMQP modified).
	Modified
	// Failed: the broker answered with an error and, by its own report, does not have the message. Or there was no broker
	// to send it to, see [Capabilities.Reconnects].
	Failed
	// Unknown: the connection ended before the broker answered, or the broker did not answer in time. It may or may not
	// have the message.
	Unknown
	// NumStates is the number of states, for tables indexed by State.
	NumStates
)

// String returns the state in lower case.
func (s State) String() string {
	names := [NumStates]string{"accepted", "rejected", "released", "modified", "failed", "unknown"}
	if s < NumStates {
		return names[s]
	}
	return "invalid"
}

// Outcome is the end of one send. The zero value is Accepted.
type Outcome struct {
	State State
	// Class is the kind of failure; [ClassNone] when accepted.
	Class Class
	// Withheld is set with Accepted when, by plan, the message will never be delivered: its transaction is rolled back.
	Withheld bool
	// Err holds the broker's own words, if it gave any. It is nil when accepted.
	Err error
}

// IDProperty is the name of the message property that carries an [ID], as the text that [ID.Append] writes. It is one
// property and not one for each part because brokers spend time on each: see docs/lab/verification.md.
const IDProperty = "perfmq_id"

// MaxIDText is the largest length of the text of an [ID] in bytes.
const MaxIDText = 5*maxDigits + 4

const maxDigits = 19 // of an int64

// idSeparator separates the parts. No protocol has to escape it.
const idSeparator = '-'

// ID tells one message from all others, so that received messages can be checked against sent messages. The zero value
// means no ID.
type ID struct {
	Run      int64 // of the sending process; above zero
	Producer int64 // within the run, from 0
	Number   int64 // of the producer's messages, from 0 and without gaps; [Unnumbered] if they are not numbered
	Sum      int64 // checksum of run, producer, number and body; 0 if Number is Unnumbered. Drivers only carry it
	// Delay is the time in milliseconds after the send for which the broker must hold the message back, so that a consumer
	// can tell a delayed message from a late one; 0 for none. A driver that delays messages by an option of its own sets
	// it.
	Delay int64
}

// Unnumbered is the [ID.Number] of messages that identify only their run and producer.
const Unnumbered = -1

// Append appends the text of the ID to b: run, producer, number and sum, in decimal, with a hyphen between them, such
// as 6130672371284362087-0-9999-4011327420186375208, or run and producer alone if it is [Unnumbered]; and the delay
// last, if there is one. It does not allocate if b has room for [MaxIDText] bytes more.
func (id *ID) Append(b []byte) []byte {
	b = append(strconv.AppendInt(b, id.Run, 10), idSeparator)
	b = strconv.AppendInt(b, id.Producer, 10)
	if id.Number != Unnumbered {
		b = strconv.AppendInt(append(b, idSeparator), id.Number, 10)
		b = strconv.AppendInt(append(b, idSeparator), id.Sum, 10)
	}
	if id.Delay > 0 {
		b = strconv.AppendInt(append(b, idSeparator), id.Delay, 10)
	}
	return b
}

// GarbledID returns the result of [ParseID] for a text that is not an ID. No message is sent with it.
func GarbledID() ID { return ID{Run: -1} }

// ParseID returns the ID with that text, or [GarbledID] if the text is not exactly as [ID.Append] writes it: each ID
// has exactly one text. It does not allocate.
func ParseID[T string | []byte](text T) ID {
	var parts [5]int64
	part, digits, n := 0, 0, uint64(0)
	for i := range len(text) + 1 {
		if i < len(text) && text[i] != idSeparator {
			d := text[i] - '0'
			if digits++; d > 9 || digits > maxDigits || digits > 1 && n == 0 {
				return GarbledID()
			}
			n = n*10 + uint64(d)
			continue
		}
		if digits == 0 || part == len(parts) || n > math.MaxInt64 {
			return GarbledID()
		}
		parts[part] = int64(n) //nolint:gosec // checked
		part, digits, n = part+1, 0, 0
	}
	delayed := part == 3 || part == 5
	if part < 2 || parts[0] == 0 || delayed && parts[part-1] == 0 {
		return GarbledID()
	}
	id := ID{Run: parts[0], Producer: parts[1], Number: Unnumbered}
	if delayed {
		id.Delay = parts[part-1]
	}
	if part >= 4 {
		id.Number, id.Sum = parts[2], parts[3]
	}
	return id
}

// IDReader reads the IDs of the messages of one consumer. Without --verify all messages of a producer carry the same
// text, so it compares the text with the last one before parsing. The zero value is ready to use; not for concurrent
// use.
type IDReader struct {
	text []byte
	id   ID
}

// Read returns the same ID as [ParseID]. It does not keep text, and allocates only for its copy of a text that is
// longer than all earlier ones.
func (r *IDReader) Read(text []byte) ID {
	if len(text) > 0 && bytes.Equal(text, r.text) {
		return r.id
	}
	id := ParseID(text)
	if id.Number == Unnumbered {
		r.text, r.id = append(r.text[:0], text...), id
	}
	return id
}
