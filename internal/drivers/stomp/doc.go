// Package stomp is the driver for STOMP 1.2 (https://stomp.github.io/stomp-specification-1.2.html), a
// data path of our own on internal/wire/stomp.
//
// # Model
//
// A driver keeps one connection per [driver.Connection] key, in a [transport.Pool]. Each has a goroutine that reads,
// and a timer for heart-beats if those were agreed on; its users write:
//
//	producers, acknowledgements --frames--> transport.Output --> broker
//	broker --reader--> RECEIPT: Done of a producer | MESSAGE: deliver of a consumer | ERROR: both, or the end
//	heart-beats: a line feed when nothing else was sent; the end when nothing was heard
//
// The output gathers: frames sent during a system call leave together in the next one, frames announced to be followed
// by more wait for them, and a lone frame leaves at once. Any number of receipts is in flight. MESSAGE, RECEIPT and
// SEND frames, of which there is at least one per message, are read and written in place, without allocating, at a
// tenth of their cost with the package frame of github.com/go-stomp/stomp/v3.
//
// # Sending
//
// The head of a SEND frame is encoded once per variant; a send copies it with the body behind it. Each SEND asks for a
// receipt named after its producer and slot, so that the reader needs no table; see [transport.InFlight] for its end.
// Receipts that arrive together are reported together. With receipt=false no receipt is requested, and a message is
// complete when it was passed to the operating system (for encrypted connections: to the TLS layer and from there to
// the operating system). Whether it arrives is unknown.
//
// With transactions (commit-interval) the receipt of the COMMIT completes the messages of a transaction. Flush and
// Close commit a transaction that is not full.
//
// # Outcomes
//
// RECEIPT is accepted. An ERROR frame that names the receipt of a message, or of a commit, is rejected if the broker
// reports that it has no room, has no such destination, or refuses the user or a message of this size, and failed
// otherwise. The broker has to close the connection then; if it does not, the connection stays in use. An ERROR without
// a receipt ends the connection. Messages in flight when a connection ends are unknown, except messages of a
// transaction without a COMMIT: these are failed. STOMP has no error codes: failures are classified by the broker's
// texts.
//
// # Receiving
//
// Received messages are acknowledged after delivery: cumulatively, when nothing more has arrived or a quarter of the
// credit is used, or each separately (RabbitMQ, failing deliveries). Messages received but not delivered
// go back to their queue when the subscription ends; on RabbitMQ, which has no way to stop sending first, partly when
// the connection ends. See [consumer] for the goroutine that delivers.
//
// With transactions (tx) that many acknowledgements are sent in one transaction. The last one is committed when nothing
// more comes for a moment or Run ends; Run waits for the receipts of all commits.
//
// A NACK discards the message (Artemis), moves it to the dead letters (ActiveMQ Classic) or, with requeue:false,
// discards it instead of delivering it again (RabbitMQ, the embedded broker): all brokers support Reject, and the
// latter two Release.
//
// # Requests and replies
//
// A requester gets its replies from a queue of its own: /temp-queue/NAME on ActiveMQ Classic and the embedded broker,
// which replace that name in the header reply-to of requests on the same connection; an exclusive queue that is deleted
// with its consumer on RabbitMQ; on Artemis a queue that the consumer removes when it closes, and after a lost
// connection the broker does, with auto-delete-queues as by default. A responder sends each reply to the destination in
// reply-to. To an address that is gone, ActiveMQ Classic refuses it, the others drop it.
//
// STOMP cannot ask a broker the number of messages that a destination has: there is no [driver.Inspector].
//
// # Dialects
//
// STOMP leaves to the broker how queues, topics, durable subscriptions, expiry and flow control are named. See
// [dialect]; the broker's greeting selects it. Features without a header in a dialect are refused. In particular:
//
//   - Artemis counts bytes, not messages, ahead of a consumer: a credit of n is sent as a window that never lets more
//     than n messages through, and fewer when they are large. Shared subscriptions are queues of the topic's address.
//     Artemis gives no reason when it refuses a message (a full address is "AMQ339011 Error sending message"), and
//     accepts no more on that connection.
//   - ActiveMQ Classic has no shared subscriptions.
//   - Artemis before 2.33 gives the subscriptions of one connection to one topic the same message IDs, so that one
//     acknowledgement takes another's message: each subscription to a topic gets a connection of its own.
//   - RabbitMQ declares queues on first use, of the type that -o declare names; each message carries it as a header.
//   - RabbitMQ has no selectors and no groups. Its cumulative acknowledgement takes the messages of all subscriptions
//     of a connection: each message is acknowledged separately.
//
// # Headers have no types
//
// The time property travels as decimal text. Over STOMP any broker returns it as text, whatever its type was; a
// consumer over another protocol gets a string if it was sent over STOMP.
package stomp
