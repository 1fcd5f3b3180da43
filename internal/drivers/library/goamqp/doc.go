// Package amqp is the AMQP 1.0 driver, on top of github.com/Azure/go-amqp.
//
// # Model
//
// A driver keeps one AMQP connection per [driver.Connection] key, counted by its users and closed by the last one. Each
// producer and each consumer has an AMQP session of its own with a single link on it: flow control of one never holds
// up another, and ending the session (rather than detaching the link) is what leaves a durable subscription in place.
//
// Below the library sits a net.Conn that gathers writes: the library writes each frame by itself, which costs a system
// call per frame; the gathering connection copies frames into a buffer that one goroutine writes out. A lone frame is
// written at once, a burst goes out as few large writes.
//
// # Sending
//
// Each slot has a goroutine, started when the slot is first used. It hands the message to the library, lets Send
// return, waits for that message's own disposition and calls Done: completion times are exact even when the broker
// settles out of order. Only one handover runs at a time, so all slots share one prepared message in which only the
// time and the body change. See [handover] for how the driver knows whether a message has left.
//
// # Outcomes
//
// The delivery states of AMQP 1.0, Messaging, section 3.4: accepted, rejected, released and modified.
// A link, session or connection that ends leaves what is in flight as unknown.
//
// # Settlement
//
// With settle=at-least-once (the default) messages are sent unsettled and completed by the broker's disposition, and
// received messages are accepted after they were delivered. With settle=at-most-once messages are sent settled; the
// broker answers nothing, and a send is completed when its bytes have been passed to the operating system (for
// encrypted connections: to the TLS layer and from there to the operating system). Whether they arrive is not known. The
// broker forgets messages as it sends them: what it sent ahead is lost when a consumer closes before it was delivered.
//
// # Dialects
//
// AMQP 1.0 leaves to the broker how addresses name queues and topics, and lets it ignore much of what a message or a link
// asks for. See [dialect]; it is chosen by the properties of the broker's open frame, or by -o dialect. What the broker
// would ignore is refused. In particular:
//
//   - Artemis takes plain names and the kind as a capability. It removes addresses that it made when nobody uses them, and
//     may then say that one does not exist: the link is attached anew. Shared subscriptions have names of their own, see
//     [subscription].
//   - ActiveMQ Classic wants queue:// and topic:// before the name: with the capability alone, consumers of a topic share
//     a queue. It has no shared subscriptions. Durable ones, selectors, expiry, priorities and groups are as on Artemis.
//   - RabbitMQ before 4 (plug-in rabbitmq_amqp1_0) has addresses /queue/NAME and /topic/KEY; a name with a leading slash is
//     an address. Queues are declared by their use, as durable ones. There are no durable or shared subscriptions, no groups,
//     and no priorities on queues that it declares itself. It confirms a selector and then sends all messages. The queue of
//     a topic consumer stays behind and goes on filling, and no AMQP 1.0 client can remove it: consumers of topics are
//     refused unless -o leave-queues=true. Credit is given in rounds, sessions end without detaching, and their end may go
//     unanswered; settled messages have to fit one frame; all because of its faults. It tells redelivery by first-acquirer only.
//   - RabbitMQ 4 has addresses /queues/NAME and /exchanges/amq.topic/KEY, percent-encoded. Queues must exist, or are declared over
//     its management node (-o declare), see [manager]. Only queues can be consumed from. Streams are consumed from their first message
//     unless -o from=next, by one consumer each, because each would get all messages. To 4.0 it confirms any filter: selectors are
//     refused. So are priorities of queues that have none, and priorities and expiry on streams. A begin on a channel that was
//     ended a moment ago gets lost: another one is tried.
//   - Qpid Broker-J has topics under the exchange amq.topic, and reads a slash in the name of a queue as that between exchange and key.
//     Whether priorities and groups have an effect is a matter of the queue's type. It withdraws credit to hold producers back.
//
// # Settle modes
//
// The modes that settlement needs are asked for. To a peer that answers mixed, or nothing, which means mixed, the link is attached
// again without asking: messages are sent settled or not one by one, and received as they come. Only receiving settled messages
// has to be agreed on.
package goamqp
