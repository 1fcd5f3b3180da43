// Package amqp is the native AMQP 1.0 driver, on internal/wire/amqp and internal/transport.
//
// # Model
//
// A driver keeps one AMQP connection per [driver.Connection] key, closed by its last user. Each producer and each
// consumer has a session of its own with a single link on it (transactions add the coordinator's): flow control of
// one never holds up another, and ending the session (rather than detaching the link) leaves a durable subscription
// in place.
//
// One goroutine reads a connection. Frames are written by the goroutines that make them, gathered by
// [transport.Output]; no slot, link or session has a goroutine. The guards are, in the order in which they are taken:
// consumer.settling, producer.ending, Output, session.mu, consumer.mu.
//
// # Sending
//
// A message is encoded once per variant. A send copies it into the connection's buffer, with its delivery ID and tag,
// time and ID in their places, when the link has credit and the session a window: never beyond the credit and the
// window that the broker has granted. Dispositions end ranges of deliveries. A flow with drain uses the credit up and
// is answered.
//
// A message of several frames that is given up between them is not sent. Nothing more can be sent over its link.
//
// # Receiving
//
// On a connection of its own a consumer's messages are delivered by the reader, without a copy. On a shared
// connection, in transactions and for concurrent deliveries they are copied and held for Run. They are settled in
// ranges: when the reader has nothing more to read, at the latest after a quarter of the credit.
//
// # Transactions
//
// Messages of a transaction end with its discharge, one by one: accepted, rejected if the broker refuses the commit,
// unknown if the answer is lost. A message that the broker refuses before ends as rejected at once. Where the
// coordinator allows several transactions in a session, the next one is declared while the last one is being filled.
//
// # Settlement
//
// With settle=at-least-once (the default) messages are sent unsettled and end by the broker's disposition; received
// messages are settled after they were delivered. With settle=at-most-once messages are sent settled, and end when
// they are passed to the operating system (for encrypted connections: to the TLS layer). Whether they arrive is not
// known. The broker forgets messages as it sends them: messages that it sent ahead are lost when a consumer closes
// before they were delivered. A peer that answers mixed, or nothing, which means mixed, agrees to both.
//
// # Limits
//
// docs/hostile.md lists them: nothing that a broker sends takes memory without one.
//
// # Dialects
//
// AMQP 1.0 leaves to the broker how addresses name queues and topics, and lets it ignore much of a message's or a
// link's settings. See [dialect]; it is chosen by the properties of the broker's open frame, or by -o dialect.
// Settings that the broker would ignore are refused. In particular:
//
//   - Artemis takes plain names and the kind as a capability. It removes addresses that it made when no client uses
//     them, and may then say that one does not exist: the link is attached anew. Shared subscriptions have names of
//     their own, see [subscription]. It does not count deliveries that end with their connection. When an address is
//     full it drains the credit, with the policy FAIL as well, so that only messages under way are rejected.
//   - ActiveMQ Classic wants queue:// and topic:// before the name: with the capability alone, consumers of a topic
//     share a queue. It has no shared subscriptions.
//   - RabbitMQ before 4 (plug-in rabbitmq_amqp1_0) has addresses /queue/NAME and /topic/KEY; a name with a leading
//     slash is an address. Queues are declared by their use, as durable ones. There are no durable or shared
//     subscriptions, groups or transactions, and no priorities on queues that it declares itself. It confirms a
//     selector and then sends all messages. The queue of a topic consumer stays behind and goes on filling, and no
//     AMQP 1.0 client can remove it: consumers of topics are refused unless -o leave-queues=true. Credit is given in
//     rounds, sessions end without detaching, and their end may go unanswered. It tells redelivery by first-acquirer
//     only.
//   - RabbitMQ 4 has addresses /queues/NAME and /exchanges/amq.topic/KEY, percent-encoded. Queues must exist, or are
//     declared over its management node (-o declare), see [manager]. Only queues can be consumed from, and there are
//     no transactions. Streams are consumed from their first message unless -o from=next, by one consumer each,
//     because each would get all messages. To 4.0 it confirms any filter: selectors are refused. So are priorities of
//     queues that have none, and priorities and expiry on streams.
//   - Qpid Broker-J has topics under the exchange amq.topic, and reads a slash in the name of a queue as that between
//     exchange and key. It withdraws credit to hold producers back. Links of one name in a container steal each
//     other. Rejected messages are delivered again unless the queue has a limit of attempts.
package amqp
