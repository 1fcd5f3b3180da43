package driver

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
	// Time is the moment of sending in microseconds since the Unix epoch, to be sent as the property [TimeProperty].
	Time int64
	// ID, unless it is zero, travels as text in the property [IDProperty].
	ID ID
	// More announces that another call of Send, or a call of Flush, follows at once: the driver may let the message wait
	// for the next one, to write both together.
	More bool
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
