// Package rocketmq is the RocketMQ driver: name servers and brokers of RocketMQ 4 and 5 over the remoting protocol.
//
// # Model
//
//	driver --- topics: routes, looked up once at a name server; created and deleted on the brokers
//	   +------ client, per connection key: an id and one TCP connection per broker; heartbeats, time limits
//	              +-- producer: headers prepared per queue, round robin; an answer ends its slot
//	              +-- consumer: a member of a group; owns queues; one pull per queue is under way
//	conn: requests gathered into large writes by one goroutine; answers matched by number and handled by another
//
// # The library
//
// The names and types of the protocol are those of github.com/apache/rocketmq-client-go/v2 (package primitive), and tests
// use its admin, producer and consumer as peers. Its clients do not carry the load, because what they do cannot be
// measured truthfully, or not cheaply enough (v2.1.2 against RocketMQ 5.5, 1 KiB, the same machine and minute; the
// benchmarks in bench_test.go repeat it): it uses several times the processor time per message, as each callback
// is two goroutines and each write four system calls; a connection that breaks is reported as a time-out seconds later or
// never; a consumer does not say when it is subscribed, and replays; shutting down leaves goroutines and a sleeping
// statistics thread per consumer; its admin client takes a broker's refusal for success.
//
// # Sending
//
// send=async keeps up to MaxPending requests under way on one connection per broker. Each request has a number under
// which its slot is noted; the answer, the time limit (send-timeout) or the end of the connection, whichever comes first,
// takes the note and ends the slot, so that each slot ends once. send=sync waits in Send; send=oneway ends a slot when its
// bytes have been written; send=batch gathers messages into one request, whose answer ends all of them.
//
// Brokers store what is under way together in any order: to keep the order of a group, send=sync is needed.
//
// # Outcomes
//
// An answer of the broker with an error is Failed (Rejected if the message itself is not welcome). No answer in time, and
// the end of the connection, are Unknown: a broker that stalls stores late what it has received. Codes that say that the
// message was stored but not flushed or replicated in time are Unknown, too.
//
// # Receiving
//
// RocketMQ has only topics, and consumer groups. queue://X is topic X with one group that all consumers share; where the
// group stands stays on the broker as long as the topic. topic://X gives each consumer a group of its own, or one per
// subscription name, that starts at what is sent next; such a group is deleted with its last consumer, unless
// KeepSubscription keeps it. A filter belongs to the group: with a selector, queue://X has a group per filter, and what
// the filter leaves out is passed over, not left for others.
//
// Within a group whole queues are dealt out. The members use the broker's locks in handing over queues, whatever the
// order asked for, so that the next owner begins exactly where the last one has said it stopped. Where a consumer stands
// is saved once a second and when it closes or gives a queue back; after a crash up to a second is delivered again.
//
// The route of a topic is looked up once: queues that are added during a run are not used.
package rocketmq
