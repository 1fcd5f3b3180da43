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
// To follow a message that is sent: producer.Send (send.go), sender.lock (sender.go), Output, and back by
// connection.read, session.disposition (remote.go), producer.settle. One that is received: connection.read,
// consumer.transfer (receive.go), consumer.note (settle.go).
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
// link's settings. See [dialect], whose methods tell the differences; it is chosen by the properties of the broker's
// open frame, or by -o dialect. Settings that the broker would ignore are refused. Beside that:
//
//   - Artemis takes the kind of a destination as a capability. Shared subscriptions have names of their own, see
//     [subscription]. It does not count deliveries that end with their connection. When an address is full it drains
//     the credit, with the policy FAIL as well, so that only messages under way are rejected.
//   - RabbitMQ before 4 (plug-in rabbitmq_amqp1_0) declares queues by their use, as durable ones. It confirms a
//     selector and then sends all messages. The queue of a topic consumer stays behind and goes on filling, and no
//     AMQP 1.0 client can remove it: consumers of topics are refused unless -o leave-queues=true.
//   - RabbitMQ 4 has queues that exist, or that its management node is asked to declare (-o declare), see [manager].
//     Streams are consumed from their first message unless -o from=next, by one consumer each, because each would get
//     all messages.
//   - Qpid Broker-J withdraws credit to hold producers back. Links of one name in a container steal each other.
package amqp
