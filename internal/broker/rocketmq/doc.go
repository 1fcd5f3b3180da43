// Package rocketmq is the RocketMQ front-end of the embedded broker: name server and broker of RocketMQ's remoting
// protocol on one port, over one [store.Store] that other protocols share.
//
// # Model
//
//	conn: a reader that handles requests and gathers the answers; a writer that writes them and answers pulls
//	  +-- topic: a Sink of the store's topic://NAME, dealing its messages out over its queues
//	  |     +-- queue: a log in memory, with the offsets where consumer groups stand
//	  +-- group: its members, their topics, the locks of queues
//	  +-- transactions: half messages, and when to ask about them
//
// A message that is sent goes through [store.Destination.Send], and so through the faults, to the topic and to
// whatever other protocols have subscribed to under its name; their messages to topic://NAME are dealt out over the
// topic's queues in turn.
//
// queue://NAME of other protocols meets the topic NAME as well, by a bridge, as far as a log with groups can be a
// queue: while members of a group listen to the topic, it takes from the queue, as one of the consumers that compete
// there, what other protocols sent; all groups get it. And what is sent to the topic over RocketMQ goes to the queue,
// too, while other protocols consume from that. Messages over the bridge pass the faults once, where they were sent.
//
// A topic comes into being when a client creates it, sends to it, or looks for the route of one that another protocol
// uses. Messages that other protocols sent before are not in it.
//
// # Bounds
//
// The store's limits hold for each topic, all its queues together. A topic keeps messages for the groups that stand
// somewhere in it, or have members that listen to it (broadcasting ones do not count), and as many as an eighth of
// the limits for groups to come. A group without members loses its claim two minutes after its last request. Where a
// group lags, sends are stored but answers are withheld until there is room, as is what follows a send without
// answer; a store that rejects answers SYSTEM_BUSY. Over a connection that has consumers, too, what follows is only
// slowed down, because commits may be among it; so a topic can exceed the limits. A topic to which no group has a
// claim drops its oldest messages at the limit; messages that a group was not done with, or none has seen, are
// counted. A client that says nothing for two minutes, not even a heartbeat, is taken for dead.
//
// # Faults
//
// Those of the store work for each message, also within batches: if one is withheld, the whole batch is not answered.
// A half message is sent, as far as faults are concerned, when it is committed, which is not answered as a rule, so
// that withholding does not show. Messages that consumers give back are not sent again. Reordering swaps two messages
// that a connection sends to the same queue, because only those have an order. While the broker stalls, no request is
// answered and no message delivered.
//
// # Contents
//
// Properties are texts. UNIQ_KEY is the message's id, TAGS the subject, CORRELATION_ID, REPLY_TO and CONTENT_TYPE
// what other protocols call so, __SHARDINGKEY the group; RocketMQ's own properties are not shown to others, nor is
// its compression (zlib; a body compressed with LZ4 or ZSTD is passed on as it is). Messages of other protocols that
// have expired are passed over; RocketMQ has no time to live.
//
// # Not supported
//
// Replicas, traces, POP consumers, request and reply, static topics, LMQ, dead-letter handling of transactions that
// are never answered (they are counted and forgotten), settings of groups, and addresses of IPv6 in messages. Such
// requests are answered with REQUEST_CODE_NOT_SUPPORTED.
package rocketmq
