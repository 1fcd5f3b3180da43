package rocketmqgo

import (
	"sync/atomic"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	libproducer "github.com/apache/rocketmq-client-go/v2/producer"
)

// selector sends all messages of a group to one queue, and the others to all queues in turn; none before
// ready is set.
type selector struct {
	groups, others libproducer.QueueSelector
	ready          atomic.Bool
}

// Select implements the library's QueueSelector.
func (s *selector) Select(m *primitive.Message, queues []*primitive.MessageQueue, last string) *primitive.MessageQueue {
	switch {
	case !s.ready.Load():
		return nil
	case m.GetShardingKey() != "":
		return s.groups.Select(m, queues, last)
	}
	return s.others.Select(m, queues, last)
}
