// Package stomp is the STOMP front-end of the embedded broker: version 1.2
// (https://stomp.github.io/stomp-specification-1.2.html).
//
// # Model
//
// A connection has two goroutines:
//
//	input -> frames -> reader: SEND -> store, ACK -> store's consumer, the rest
//	                      | replies, when the input is used up
//	store -> notify ->  writer: takes messages, gathers frames, writes
//
// The reader never writes and the writer never reads, so neither a client's sends nor its receives block each other.
// A client with 1 MiB of unread receipts is not read.
//
// # Destinations and subscriptions
//
// /queue/X, queue://X and other names are queues, /topic/X and topic://X topics. SEND to another name reaches a topic
// of that name if there is no such queue, as addresses for replies may lack the kind.
//
// /temp-queue/X is a temporary queue of the connection, which is deleted with it, as in ActiveMQ. Others receive
// its address in the header reply-to in place of that name. A message to a temporary queue that is no more is confirmed
// and dropped, as in RabbitMQ: the responder is not to blame for a requester that has gone.
//
// A durable subscription has durable-subscription-name in SUBSCRIBE and client-id in CONNECT. A shared subscription has
// our own header shared-subscription-name, and durable:true to outlive its consumers. UNSUBSCRIBE with one of these
// headers ends the consumer with its id, if any, and removes the subscription.
//
// The limit of unacknowledged messages is prefetch-count, by default 1000; 0 means one. ack:auto has no limit.
//
// # Acknowledgements
//
// With ack:auto a message is settled when it is written. NACK returns a message as redelivered, or drops it (counted as
// rejected) with requeue:false, as in RabbitMQ. UNSUBSCRIBE and DISCONNECT return
// unacknowledged messages unchanged; the end of a connection without DISCONNECT counts as a failed attempt, as the
// client may have processed them. An acknowledgement without effect is an ERROR, with two exceptions: after
// a cumulative one, and after the end of the subscription if it has neither receipt nor transaction.
//
// SEND, ACK and NACK of a transaction are applied at COMMIT, all or none, one after the other: other connections may
// see a part of them for a moment. ABORT and the end of the connection discard them.
//
// # A full broker
//
// Without [store.Config.Reject], the receipts of SEND and COMMIT to a full destination are withheld until it has room.
// The connection is read on, up to 1 MiB beyond the limit, as its acknowledgements may make the room. With
// [store.Config.Reject], SEND or COMMIT is answered with an ERROR with the receipt, as by Artemis with
// address-full-policy FAIL.
//
// # Headers and properties
//
// The headers of SEND are passed on unchanged, except for those of the frame and those for the broker
// (AMQ_SCHEDULED_DELAY). A message of another protocol keeps its message ID. Properties of messages of other protocols
// become text: see appendForeign.
package stomp
