// Package stomp is the STOMP front-end of the embedded broker: versions 1.0, 1.1 and 1.2
// (https://stomp.github.io/stomp-specification-1.2.html).
//
// # Model
//
// A connection has two goroutines, and a timer for heart-beats:
//
//	input -> frames -> reader: SEND -> store, ACK -> store's consumer, the rest
//	                      | replies, when the input is used up
//	store -> notify ->  writer: takes messages, gathers frames, writes
//
// The reader never writes and the writer never reads, so a client that only sends cannot block one that only
// receives. A client that does not read its receipts is not read any more when 1 MiB of them wait.
//
// # Destinations and subscriptions
//
// /queue/X and queue://X are queues, /topic/X and topic://X topics; the kind of any other name is what
// destination-type or subscription-type says (ANYCAST, MULTICAST), else it is a queue. Of ADDRESS::QUEUE, Artemis's
// full name, a queue is QUEUE, and a topic's subscription is the shared durable one QUEUE of the topic ADDRESS.
//
// A durable subscription has durable-subscription-name (Artemis), durable-subscriber-name or
// activemq.subscriptionName (ActiveMQ Classic) in SUBSCRIBE and client-id in CONNECT. A shared one has our own header
// shared-subscription-name, and durable:true if it is to stay without consumers. UNSUBSCRIBE with one of these headers
// ends the consumer with that id, if there is one, and removes the subscription.
//
// As many messages may be unacknowledged as prefetch-count or activemq.prefetchSize say, by default 1000, or as
// consumer-window-size has times 256 bytes; 0 means one message and -1 no limit. Nothing limits ack:auto.
//
// # Acknowledgements
//
// With ack:auto a message is done with as soon as it is written. NACK gives a message back as redelivered; the tenth
// delivery is the last one, then it drops the message, which is counted as rejected; with requeue:false, as in
// RabbitMQ, at once. Unacknowledged messages go back unchanged at UNSUBSCRIBE or DISCONNECT; when a connection just
// ends, that counts as an attempt, because the client may have seen them. An acknowledgement that settles nothing is
// an ERROR, except of what a cumulative one has covered before, and except of a subscription that has ended meanwhile
// if neither receipt nor transaction asks about it.
//
// SEND, ACK and NACK of a transaction are done at COMMIT, all or none, one after the other: other connections may see
// a part of them for a moment. ABORT, and the end of the connection, forget them.
//
// # A full broker
//
// When a destination has no room, and the store blocks rather than rejects, the receipts of SEND and COMMIT wait until
// it has. The connection is read on, so that it can make the room itself by acknowledging, until 1 MiB is stored
// beyond the limit. When the store rejects, SEND or COMMIT is answered by an ERROR that names the receipt, as Artemis
// does with address-full-policy FAIL.
//
// # Headers and properties
//
// The headers of SEND go along as they are, but for those of the frame itself and those that only the broker obeys
// (AMQ_SCHEDULED_DELAY, AMQ_SCHEDULED_TIME). Messages of other protocols have their properties as text: see
// appendForeign.
package stomp
