// Package rocketmq is the RocketMQ front-end of the embedded broker: name server and broker of the remoting protocol on
// one port, over a [store.Store] shared with the other protocols.
//
// # Model
//
//	conn: a reader handles requests and gathers answers; a writer writes them and answers pulls
//	  +-- topic: a Sink of the store's topic://NAME, which distributes its messages over its queues
//	  |     +-- queue: a log in memory, with the committed offsets of consumer groups
//	  +-- group: its members, their subscriptions, the locks of queues
//	  +-- transactions: half messages and their check-backs
//
// A sent message goes through [store.Destination.Send], and so through the faults, to the topic and to the
// subscriptions of other protocols; their messages to topic://NAME are distributed over the topic's queues. A topic is
// created by a request to create it, a send, or a route request for a topic of another protocol. It lacks messages sent
// before its creation.
//
// The queues of other protocols are apart. Faults are applied once, at the send.
//
// # Bounds and back-pressure
//
// The store's limits hold for each topic, all queues together. A topic keeps messages for the groups with a claim: a
// committed offset, or members that subscribe to it. Consumed messages stay for future groups until a topic is an
// eighth full. The claim of a group without members ends two minutes after its last request. While a group lags at the
// limit, sends are stored, but their answers are withheld until there is room, and the connection is not read after a
// one-way send; with [store.Config.Reject] the answer is SYSTEM_BUSY. A connection with consumers is read on slowly, as
// its commits make room: a topic can exceed its limits. A topic without claims drops its oldest messages at the limit;
// unread ones are counted. A connection ends after two minutes without a request.
//
// # Faults
//
// Faults apply to each message, also within batches; one withheld message withholds the answer to the batch. A half
// message is sent at its commit, usually a one-way request, so that withholding has no effect. Retries of consumers are
// not sends. Reordering swaps two messages of one connection to one queue, as others have no order. During a stall no
// request is answered and no message delivered.
//
// # Contents
//
// Properties are texts. __SHARDINGKEY is the group of a message, and a CONTENT_TYPE of text/... marks texts. Other
// protocols do not see RocketMQ's own properties, but for TAGS and KEYS. They get bodies without zlib compression; LZ4
// and ZSTD stay. Expired messages of other protocols are skipped; RocketMQ has no time to live.
//
// # Request and reply
//
// A reply (SEND_REPLY_MESSAGE) passes the faults as a message to topic://DefaultCluster_REPLY_TOPIC, and is pushed to
// the requester's connection, which has sent a heartbeat with producers, without being stored. It is confirmed when it
// is pushed, not when the client has answered. Responders of other protocols see that topic as reply-to, and the client
// in the correlation ID; their requests have their address in place of the client.
//
// # Not supported
//
// Replicas, traces, POP and broadcasting consumers, static topics, LMQ, dead letters of unanswered transactions (they
// are dropped), settings of groups, and IPv6 addresses in messages. Other requests are answered with
// REQUEST_CODE_NOT_SUPPORTED.
package rocketmq
