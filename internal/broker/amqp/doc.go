// Package amqp is the AMQP 1.0 front-end of the embedded broker. References are to the OASIS standard (Transport,
// Messaging, Transactions, Security) and to "AMQP Bindings and Mappings: JMS", as implemented by qpid-jms.
//
// # Goroutines and locks
//
// A connection has a reader and a writer. The reader owns all input: frames, sessions, links, transfers, granted
// credit, transactions. It handles its buffer without a lock; before it blocks, it hands dispositions, joined into
// ranges, and new credit to the writer. The writer takes messages from the queues of notified links, and gathers frames
// into large writes. Shared state (the output buffer, credit and unsettled deliveries of outgoing links) is under the
// connection's lock, which is never held during a read, a write or a send to the store.
//
// Callbacks of the store do not block: they put an outgoing link on the writer's list. While incoming links wait for
// room, the reader reads with a short deadline and looks for it.
//
// # Messages
//
// A message is stored in its encoding, from the message annotations on, and delivered over AMQP in the same bytes with
// a new header. Delivery annotations are for one hop and are dropped (Messaging, section 3.2.2). Messages of other
// protocols become a data section, or an amqp-value string if they are text.
//
// # Back-pressure
//
// Senders get credit only while [store.Destination.Room] is true. The credit window shrinks with the size of messages:
// the overshoot of a queue's limit is the granted credit, a few MiB per link. With [store.Config.Reject] credit is
// always granted, and messages without room are rejected.
//
// # Addresses
//
// A prefix (queue://, topic://, /queue/, /topic/) gives the kind of an address, else a capability of the terminus
// (queue, topic); the default is a queue. A dynamic source or target is a temporary queue, which
// is deleted with its link. Over a link without a target address each message names its destination in the property to
// (Anonymous Terminus for Message Routing, version 1.0), without a kind also a topic, if there is no such queue.
//
// # Subscriptions
//
// As in the JMS mapping: a topic's terminus that never expires is a durable subscription; the capability "shared" opens
// it to many links. Its name is the container and the link's name up to the first bar; with the capability "global" the
// link's name only. A closing detach removes it, any other end keeps it.
//
// # Not supported
//
// Browsing (distribution mode copy) is refused. The filter no-local is ignored and not echoed. Modified with
// undeliverable-here drops the message, as rejected does; its annotations are ignored.
// Links are not resumed: unsettled deliveries of an ended link are delivered again. Transactions hold sends and
// settlements, but not acquisitions.
package amqp
