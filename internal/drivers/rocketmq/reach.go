package rocketmq

import (
	"sync/atomic"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// reach is how far a queue was delivered to the consumers of a group, all those of this driver. By it a message that
// the broker delivers again, because the consumer that had it was cut off before it could say so, is told from one that
// the broker stored twice: RocketMQ itself marks only messages that were given back. It is safe for concurrent use.
type reach struct {
	next   atomic.Int64 // the offset after the last message
	stored atomic.Int64 // when that was stored, by the broker's clock
}

// again notes the delivery of a message, and tells whether it was delivered before. A broker that has lost its last
// messages gives their offsets to others, but these are stored later.
func (r *reach) again(m *wire.Message) bool {
	if m.QueueOffset < r.next.Load() && m.Stored <= r.stored.Load() {
		return true
	}
	r.stored.Store(m.Stored)
	r.next.Store(m.QueueOffset + 1)
	return false
}

// groupQueue is a queue as a group sees it.
type groupQueue struct {
	group string
	queueID
}
