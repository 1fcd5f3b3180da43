package support

import (
	"sync/atomic"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// Selector sends all messages of a group to one queue, and the others to all queues in turn; none before Begin is
// called.
type Selector struct {
	groups, others producer.QueueSelector
	ready          atomic.Bool
}

// NewSelector returns a selector that sends nothing yet.
func NewSelector() *Selector {
	return &Selector{groups: producer.NewHashQueueSelector(), others: producer.NewRoundRobinQueueSelector()}
}

// Begin lets messages through.
func (s *Selector) Begin() { s.ready.Store(true) }

// Select implements the library's QueueSelector.
func (s *Selector) Select(m *primitive.Message, queues []*primitive.MessageQueue, last string) *primitive.MessageQueue {
	switch {
	case !s.ready.Load():
		return nil
	case m.GetShardingKey() != "":
		return s.groups.Select(m, queues, last)
	}
	return s.others.Select(m, queues, last)
}
