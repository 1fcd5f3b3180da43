// Package stomp is the STOMP front-end of the embedded broker: versions 1.0, 1.1 and 1.2
// (https://stomp.github.io/stomp-specification-1.2.html).
//
// # Model
//
// A connection has two goroutines, and a timer for heart-beats:
//
//	input -> scanner -> reader: SEND -> store, ACK -> store's consumer, the rest
//	                      | replies, when the input is used up
//	store -> notify ->  writer: takes messages, gathers frames, writes
//
// The reader never writes and the writer never reads, so a client that only sends cannot block one that only
// receives. The writer writes when it has nothing more to add, or 64 KiB. A client that does not read its receipts is
// not read any more when 1 MiB of them wait.
//
// # Destinations
//
// /queue/X and queue://X are queues, /topic/X and topic://X topics; the kind of any other name is what
// destination-type or subscription-type says (ANYCAST, MULTICAST), else it is a queue. Of ADDRESS::QUEUE, Artemis's
// full name, a queue is QUEUE, and a topic's subscription is the shared durable one QUEUE of the topic ADDRESS. There
// are no wildcards.
//
// # Subscriptions
//
// A durable one has durable-subscription-name (Artemis), durable-subscriber-name or activemq.subscriptionName
// (ActiveMQ Classic) in SUBSCRIBE and client-id in CONNECT; it takes one consumer at a time. A shared one has our own
// header shared-subscription-name, and durable:true if it is to stay without consumers; its name is everybody's,
// whatever the client-id. UNSUBSCRIBE with one of these headers ends the consumer with that id, if there is one, and
// removes the subscription.
//
// As many messages may be unacknowledged as prefetch-count or activemq.prefetchSize say, by default 1000, or as many
// bytes as consumer-window-size says, where a frame counts 256 bytes at least, 0 means one message and -1 no limit.
// Nothing limits ack:auto but the network.
//
// # Acknowledgements
//
// With ack:auto a message is done with as soon as it is written: messages on the way are lost when a connection breaks.
// NACK gives a message back to its queue as redelivered; the tenth delivery is the last one, then it drops the message,
// which is counted as rejected. With requeue:false, as in RabbitMQ, it drops it at once. (Artemis drops at once,
// ActiveMQ Classic moves it to a dead-letter queue, RabbitMQ never drops.) Unacknowledged messages go back unchanged at
// UNSUBSCRIBE or DISCONNECT; when a connection just ends, it counts as an attempt and is marked redelivered, because
// the client may have seen it.
//
// An acknowledgement that settles nothing is an ERROR, except of what a cumulative one has covered before, and except
// of a subscription that has ended meanwhile if neither receipt nor transaction asks about it. The message-id names a
// delivery: it is another one when a message is delivered again.
//
// # Transactions
//
// SEND, ACK and NACK of a transaction are done at COMMIT, all or none: none if a destination has no room for more
// then, else all, even if that goes beyond its limit. They are done one after the other, so that other connections
// may see a part of them for a moment: STOMP promises that all of a transaction happens or nothing, not that it is
// seen at once, and to hide a part would take a lock over all its queues, subscriptions and logs, which every other
// sender would have to look at. ABORT, and the end of the connection, forget them; what was acknowledged in it can
// then be acknowledged again. A SEND in a transaction gets its receipt at once, which says that it came.
//
// # A full broker
//
// When a destination has no room, and the store blocks rather than rejects, SEND and COMMIT to it are parked and get
// their receipts when they were done. Everything else is read on, so that a connection can make the room itself by
// acknowledging. When 1000 frames or 1 MiB are parked the connection is not read any more until there is room: a
// client that sends that far ahead of its own acknowledgements on one connection has to use two. DISCONNECT waits for
// the parked frames, unless the client has closed the connection meanwhile: then the parked frames are forgotten.
//
// When the store rejects, the SEND or COMMIT is answered by an ERROR that says so and names the receipt, and the
// connection ends, as it must after any ERROR. Artemis does the same with address-full-policy FAIL.
//
// # Headers and properties
//
// The headers of SEND go along as they are, but for those of the frame itself (destination, receipt and so on) and
// those that only the broker obeys (AMQ_SCHEDULED_DELAY, AMQ_SCHEDULED_TIME). Messages of other protocols have their
// properties as text: see appendForeign. To a client of STOMP 1.0, which has no escapes, line feeds become spaces.
//
// Lines may end with CR LF in any version.
package stomp
