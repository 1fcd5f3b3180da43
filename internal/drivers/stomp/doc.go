// Package stomp is the driver for STOMP 1.0, 1.1 and 1.2 (https://stomp.github.io/stomp-specification-1.2.html), a
// data path of our own on internal/wire/stomp.
//
// # Model
//
// A driver keeps one connection per [driver.Connection] key, in a [transport.Pool]. Each has a goroutine that reads,
// and a [transport.Pulse] for heart-beats if those were agreed on; its users write:
//
//	producers, acknowledgements --frames--> transport.Output --> broker
//	broker --reader--> RECEIPT: Done of a producer | MESSAGE: deliver of a consumer | ERROR: both, or the end
//	heart-beats: a line feed when nothing else was sent; the end when nothing was heard
//
// The output gathers: frames that are sent while a system call is under way go out together in the next one, frames
// that are announced to be followed by more wait for them, and a lone frame goes out at once. Any number of receipts
// is in flight. MESSAGE, RECEIPT and SEND frames, of which there is one or more per message, are read and written in
// place, without allocating, at a tenth of their cost with the package frame of github.com/go-stomp/stomp/v3
// (BenchmarkRead, BenchmarkWrite).
//
// # Sending
//
// The head of a SEND frame is written once per variant; a send copies it with the body behind it. Each SEND asks for
// a receipt whose name says to which producer and slot it belongs, so that the reader looks nothing up. A place holds
// the generation of the slot in flight in it; whoever exchanges that for the mark that the send is being reported
// (the reader, the end of the connection, Close) reports it, so that it is reported once, see [sends]. Receipts that
// arrive together are reported together. With receipt=false nothing is asked for, and a message is complete when it
// was passed to the operating system (for encrypted connections: to the TLS layer and from there to the operating
// system). Whether it arrives is not known.
//
// With transactions (commit-interval) the messages of one are complete with the receipt of its COMMIT. A transaction
// that is not full is committed by Flush and Close.
//
// # Outcomes
//
// RECEIPT is accepted. An ERROR frame that names the receipt of a message, or of a commit, is rejected if the broker
// says that it has no room, knows no such destination, or does not want this user or so large a message, and failed
// otherwise. The broker has to close the connection then; one that does not goes on being used. An ERROR that names no
// receipt ends the connection. Messages in flight when a connection ends are unknown, but for the messages of a
// transaction whose COMMIT was not sent: they are failed. STOMP has no error codes: failures are classified by the
// broker's words.
//
// # Receiving
//
// Received messages are acknowledged after delivery: cumulatively, when nothing more has arrived or a
// quarter of the credit is used, or each by itself (option ack). Messages received but not delivered go back to their
// queue when the subscription ends; on RabbitMQ, which has no way to stop sending first, partly when the connection
// ends. See [consumer] for the goroutine that delivers.
//
// With transactions (tx) so many acknowledgements are sent in one, and those of the last when nothing more comes for
// a moment or Run ends, which waits for the receipts of all commits.
//
// A NACK discards the message (Artemis), moves it to the dead letters (ActiveMQ Classic) or, with requeue:false,
// has it discarded instead of delivered again (RabbitMQ, the embedded broker): there is Reject on all brokers, and
// Release on the latter two.
//
// STOMP cannot ask a broker how many messages a destination has: there is no [driver.Admin].
//
// # Dialects
//
// STOMP leaves to the broker how queues, topics, lasting subscriptions, expiry and flow control are named. See
// [dialect]; it is chosen by the broker's greeting. Features without a header in a dialect are refused. In particular:
//
//   - Artemis counts bytes, not messages, ahead of a consumer: a credit of n is sent as a window that never lets more
//     than n messages through, and fewer when they are large. Shared subscriptions are queues of the topic's address.
//     It does not say why it refused a message (a full address is "AMQ339011 Error sending message"), and takes no more
//     on that connection.
//   - ActiveMQ Classic has no shared subscriptions.
//   - Artemis before 2.33 gives the subscriptions of one connection to one topic the same message IDs, so that one
//     acknowledgement takes another's message: a second subscription gets a connection of its own.
//   - ActiveMQ Classic delivers all of an AMQP message as the body, unless its AMQP connector has
//     transport.transformer=jms: that ends a run whose messages are verified.
//   - RabbitMQ declares queues by their use, of the type that -o declare says, which goes along with each message as
//     a header.
//   - RabbitMQ has no selectors and no groups. Its cumulative acknowledgement takes the messages of all subscriptions
//     of a connection: with ack=client a connection is for one consumer.
//
// # Headers have no types
//
// The time property travels as decimal text. Over STOMP any broker gives it back as text, whatever it was; a consumer
// over another protocol finds a string where it was sent over STOMP.
package stomp
