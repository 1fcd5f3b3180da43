// Package amqp is the native AMQP 1.0 driver, on internal/wire/amqp and pkg/transport.
//
// # Model
//
// A driver keeps one AMQP connection per [driver.Connection] key, closed by its last user. Each producer and each
// consumer has a session of its own with a single link (transactions add the coordinator's): flow control of one never
// holds up another, and ending the session, rather than detaching the link, leaves a durable subscription in place.
//
// One goroutine reads a connection. The goroutine that makes a frame writes it, gathered by [transport.Output]; no
// slot, link or session has a goroutine. Locks are taken in this order: consumer.settling, producer.ending, Output,
// session.mu, consumer.mu.
//
// To follow a message that is sent: producer.Send (send.go), sender.lock and unlock (producer.go),
// transport.Output.Unlock, which writes; its answer: connection.read (connection.go), session.disposition (remote.go),
// producer.settle (unsettled.go). One that is received: connection.read, consumer.transfer (receive.go),
// consumer.recordVerdict (receive.go). A connection is opened by amqpDriver.Producer (producer.go),
// transport.Pool.Acquire, dial (dial.go).
//
// The types [producer] and [consumer] describe sending and receiving. A message of several frames that is aborted
// between them is not sent, and nothing more can be sent over its link.
//
// # Transactions
//
// Messages of a transaction end with its discharge, one by one: accepted, rejected if the broker refuses the commit,
// unknown if the answer is lost. A message that the broker refuses earlier ends as rejected at once. Where the
// coordinator allows several transactions in a session, the next one is declared while the present one is being filled.
//
// # Settlement
//
// With settle=at-least-once (the default) messages are sent unsettled and end by the broker's disposition; received
// messages are settled after they were delivered. With settle=at-most-once messages are sent settled, and end when they
// are passed to the operating system (for encrypted connections: to the TLS layer). Whether they arrive is unknown. The
// broker sends messages settled: prefetched messages are lost when a consumer closes before they were delivered. A peer
// that answers mixed, or nothing, which means mixed, agrees to both.
//
// Every allocation for data of a broker has a limit, see docs/lab/hostile.md.
//
// # Dialects
//
// AMQP 1.0 leaves to the broker how addresses name queues and topics, and lets it ignore many settings of messages and
// links. The methods of [dialect] implement the differences. The properties of the broker's open frame select the
// dialect. Settings that the broker would ignore are refused. In addition:
//
//   - Artemis takes the kind of a destination as a capability. Shared subscriptions have names of their own, see
//     [linkName]. It does not count deliveries that end with their connection. When an address is full it drains
//     the credit, with the policy FAIL as well, so that only messages in flight are rejected.
//   - RabbitMQ before 4 (plug-in rabbitmq_amqp1_0) declares queues on first use, as durable ones. It confirms a
//     selector and then sends all messages. The queue of a topic consumer stays behind and keeps filling, and no AMQP
//     1.0 client can remove it: consumers of topics are refused.
//   - RabbitMQ 4 requires that queues exist, or that its management node declares them (-o declare), see inspect.go.
//     A stream is a topic (-o declare=stream), because each of its consumers gets all messages.
//   - Qpid Broker-J withdraws credit to hold producers back. Links of one name in a container steal each other.
package amqp
