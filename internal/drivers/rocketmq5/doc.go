// Package rocketmq5 is the driver for RocketMQ 5's proxy, by gRPC over HTTP/2.
//
// # Model
//
//	driver --- admin: topics and groups over remoting, with -o name-server
//	   +------ conn, per connection key: HTTP/2 with any number of calls; heartbeats, time limits, signatures
//	              +-- client: an id with settings, told by a call that stays open, over which the proxy commands
//	                     +-- producer: messages prepared per variant; one call each; its answer ends the slot
//	                     +-- consumer: a member of a group; requests for messages in flight, each answered by some
//
// grpc-go and the official client are not linked, for the size of the binary. internal/wire/rocketmq5 encodes frames
// and messages. A call is a stream: frames HEADERS and DATA leave together through transport.Output. Headers are
// encoded by HPACK's table, a byte each, and kept until the table changes; only the client's id is written out each
// time, so that many clients share a connection and its table.
//
// # Flow control
//
// Sending waits, as for credit, while the proxy's windows are closed or it has as many streams as it takes. We open the
// connection's window as bytes arrive; streams have the largest. The messages that wait for delivery are bounded by
// their size and by the number that each request asks for, and no more are asked for while [crowded] bytes wait.
//
// # Outcomes
//
// A code of the proxy that says that the broker has refused the message is Failed, or Rejected if the message itself
// is refused. No answer in time, the end of the connection, and a failure inside of the proxy are Unknown. What the
// proxy says it has not processed (GOAWAY, REFUSED_STREAM) has Failed.
//
// # Receiving
//
// Groups are those of the driver for remoting, see [rocketmq.Options.GroupOf]. The proxy pops messages: it hands
// them out from any queue, invisible to others for a time. With consumer=push it prolongs that time by itself, for the
// messages of which it knows that they are with a client. It learns that after it has sent the last message of an
// answer: one that was acknowledged before then is given out again when the client has gone (1 % of the messages on a
// busy machine). So its messages are delivered at the end of the answer. A message that is given back, or whose
// consumer has gone, comes again after a second or more.
//
// The routes of a proxy name brokers; all calls go to the host of the URL, which the proxy names, too.
package rocketmq5
