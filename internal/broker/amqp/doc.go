// Package amqp is the AMQP 1.0 front-end of the embedded broker: it serves connections of any AMQP 1.0 client from a
// [store.Store]. References are to the OASIS standard: Transport, Messaging, Transactions, Security; and to "AMQP
// Bindings and Mappings: JMS" as qpid-jms follows it.
//
// # Goroutines and locks
//
// A connection has a reader and a writer. The reader owns all that clients send: frames, sessions, links, transfers,
// credit given to senders, transactions. It goes on without a lock until nothing is left in its buffer; only then are
// receipts, joined into ranges, and new credit handed to the writer. The writer takes messages from the queues of the
// links that were told that there may be some, and gathers frames into large writes. State that both need (the output
// buffer, credit and unsettled deliveries of outgoing links) is under the connection's lock, which is never held
// during a read, a write or a send to the store.
//
// The store calls back without waiting: an outgoing link is put on the writer's list; an incoming link that waited
// for room is put on the reader's, which is woken by a read deadline in the past.
//
// # Messages
//
// A message is kept as it came, from the message annotations on, and leaves over AMQP in the same bytes behind a
// header of its own. Delivery annotations end here: they are for one hop (Messaging, section 3.2.2). Messages of
// other protocols become a data section, or a text value if their content type says text.
//
// # Back-pressure
//
// Senders get credit only while [store.Destination.Room] says so, as a window that shrinks with the size of their
// messages: the overshoot of a queue's limit is the credit granted, a few MiB per link. With the policy
// [store.Reject] credit is always given, and messages that find no room are rejected.
//
// # Addresses
//
// The kind of an address is that of its prefix (queue://, topic://, temp-queue://, temp-topic://, /queue/,
// /topic/), else the capability of the terminus (queue, topic, temporary-queue, temporary-topic), else a queue.
//
// # Subscriptions
//
// As in the JMS mapping: a topic's terminus that never expires is a durable subscription, with the capability
// "shared" one for many links. It is named by the container and the link's name up to its first bar; with the
// capability "global" the container does not count. A closing detach removes it, any other end keeps it. A receiver
// that attaches without a source is shown the subscription of that name, or a null source.
//
// # Not supported
//
// Browsing (distribution mode copy) is refused. The filter no-local is not honoured and not echoed. "Modified" with
// undeliverable-here drops the message, as rejected does, and its annotations are ignored. Links are not resumed:
// deliveries that were unsettled when a link ended are delivered anew. Transactions hold sends and settlements;
// acquisition in a transaction is not controlled.
package amqp
