// Package rocketmq is the RocketMQ driver: name servers and brokers of RocketMQ 4 and 5 over the remoting protocol.
//
// # Model
//
//	driver --- topics: routes, looked up once at a name server; created and deleted on the brokers
//	   +------ session: connections beside the load, for that, and to count
//	   +------ client, per connection key: an id and one TCP connection per broker; heartbeats, time limits
//	              +-- producer: headers prepared per queue and variant, round robin; an answer ends its slot
//	              +-- consumer: a member of a group; owns queues; one pull per queue is under way
//	conn: requests gathered by transport.Output; answers matched by number and handled by the goroutine that reads
//
// Brokers before version 5 differ in a few answers, see old.go and [consumer.freshQueues].
//
// internal/wire/rocketmq encodes and decodes frames and messages. The client library does not carry the load: it takes
// several times the processor time, reports a broken connection late or never, and its consumers do not report when
// they are subscribed (--client library shows that).
//
// # Sending
//
// Each request has a number under which its slot is registered; the answer, the time limit (--send-timeout) or the end
// of the connection, whichever comes first, removes the registration and ends the slot, so that each slot ends once.
// A batch leaves when it is full, after batch-linger, or, if that is 0, with a message that no other follows. A variant
// with a group goes to the group's queue.
//
// # Order
//
// RocketMQ keeps the order of a queue, not of a topic. A producer writes to all queues in turn, and a consumer gets up
// to pull-batch messages of one queue, then of another: the numbers of one producer arrive in order only within each
// queue, and a check for order per producer and consumer (--verify) reports most messages after a change of queue as
// out of order. A check needs a single queue: a topic with -o queues=1, or --group, which sends all messages to one.
//
// Within the queue, requests that are in flight together are stored in any order, even on one connection: a broker
// reads them in order, but passes each to a pool of sendMessageThreadPoolNums threads (BrokerConfig: the number of
// processors, 4 at most; NettyRemotingAbstract.processRequestCommand), and the first thread gets the next offset. So
// order holds with send=sync; with send=batch while one batch is in flight, which is so with --max-pending not above
// batch-size and a batch-linger that is long enough for every batch to get full; and with any send mode against a
// broker with sendMessageThreadPoolNums=1. It does not hold for messages without an answer in time, which may be
// stored after later ones, nor for delayed messages, for transactions, which are stored when they are committed, or
// for failed deliveries, which are delivered again later.
//
// # Transactions
//
// With transactional=true each message is stored as half a message first, and its answer ends the send: Accepted,
// with Withheld when it is rolled back. The producer then commits the message
// or rolls it back, or leaves it open until the broker asks: after its transactionTimeOut (6 s), every
// transactionCheckInterval (30 s). A message that is open and is to be committed has been accepted but not delivered:
// consumers of the run wait for it up to --drain-timeout, and a message that is open even then is missing, as it should
// be; the counter tx-open says how many. A closing producer answers check-backs within the time for closing
// (--connect-timeout), and reports the number of transactions open after that as an error. After that no
// client answers, and the broker drops the message in the end. The producers of a driver are one group, so that those
// that follow on a lost connection answer for the transactions that it left open.
//
// A broker that is slow to record the end of a transaction checks back all the same. The only safe answer is to commit
// again, and the message is stored twice: tx-unexpected-checks counts these check-backs. They occur if
// transactionTimeOut is not much longer than the time in which the broker records the end (transactionOpBatchInterval),
// or if the born time (the time of sending) is long past.
//
// # Outcomes
//
// An answer of the broker with an error is Failed (Rejected if the message itself is refused). No answer in time, and
// the end of the connection, are Unknown: a stalled broker stores the messages that it has received later. Codes for
// messages that were stored but not flushed or replicated in time are Unknown, too.
//
// # Receiving
//
// RocketMQ has only topics, and consumer groups. queue://X is topic X with one group that all consumers share; the
// group's offsets stay on the broker as long as the topic. topic://X gives each consumer, or each subscription name, a
// group of its own that starts at the next message sent; such a group is deleted with its last consumer, unless
// KeepSubscription keeps it. A filter belongs to the group: with a selector, queue://X has a group per filter, and a
// group skips messages that do not match its filter instead of leaving them for others.
//
// Whole queues are assigned to the members of a group. The members use the broker's locks to hand over queues, so
// that the next owner begins exactly where the last one reported that it stopped. Consumers that are opened at the
// same time all join the group before they take queues (see groupState), and a consumer whose Run has ended takes no
// more of them: a thousand members would else hand every queue on a thousand times. One of them asks, for all, at
// which offsets a new group starts.
//
// A consumer saves its offsets ten times a second, after each 100 messages of a queue, and when it closes or gives a
// queue back, one request at a time (see queue); after a crash at most that many messages are delivered again. (With
// more than 50 queues in all, the consumers of a driver save about 500 offsets a second together, but each of them once
// in 5 s.) Other clients commit with their pulls, ours do not: a broker that was slow with the last pull of a consumer
// reset the offset that the consumer had saved when it closed, and delivered the last messages once more (4 of 25 times
// on a loaded machine).
//
// Brokers mark a released message as delivered before, but not a message that comes again after a crash, see [reach].
//
// A pull that the broker holds cannot be cancelled: when a consumer has closed but its connection is still used, each
// of its queues may bring one more answer, which is dropped; the next owner of the queue pulls the same messages. A
// consumer whose group is to be deleted waits for the answers first (leave.go); brokers look at held pulls every 5 s:
// closing takes up to 6 s. A group whose connection was lost is deleted once more when the driver closes.
//
// # Requests and replies
//
// A requester's client is a member of the producers' group at each master broker, and its ID is the address for
// replies: the broker of a reply pushes it to the client's connection (ReplyMessageProcessor), and tells the responder
// when the client has taken it. A reply that finds no client has failed. With --reply-to, our own property REPLY_TO
// names a topic instead. A responder sends to client://CLUSTER/CLIENT by the reply topic of that cluster, or to a
// topic.
//
// # Routes
//
// A route is looked up when a producer or consumer opens, at the name server that answered last. Queues that a topic
// gets later, and brokers that return, are used by the producers and consumers that open after that. A producer
// continues while one broker of its topic is left. A consumer that loses one of its brokers ends with an error: it
// cannot report messages that it does not receive.
package rocketmq
