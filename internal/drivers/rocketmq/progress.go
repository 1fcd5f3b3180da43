package rocketmq

import (
	"context"
	"sync"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// keepUpAfter is how many messages of a queue are consumed before the broker hears of it at once. Some brokers
	// keep messages that are not committed, and take no more than so many.
	keepUpAfter = 100
	// unsaved is for queues of which the broker may know anything.
	unsaved = -1
)

// progress is the broker's knowledge of a consumer's offset in a queue. One request about that is under way at a
// time, and the next is sent when it has been answered: a broker reads the requests of a connection in order but
// hands them to pools of threads (consumerManageThreadPoolNums; pullMessageThreadPoolNums for the offsets that pulls
// would commit) and keeps the offset that comes last (ConsumerOffsetManager.commitOffset), even if it is lower. An old
// offset that came last would have messages delivered twice to the next owner of the queue.
type progress struct {
	saving   sync.Mutex
	saved    int64 // with the features of the broker confirmed
	asked    int64 // the offset in the request that is under way, or in the last one
	open     bool  // a request is under way
	failed   error // how the last one did
	answered chan struct{}
}

// beginAt says where the broker knows us to be before anything was consumed.
func (p *progress) beginAt(offset int64) {
	p.saving.Lock()
	defer p.saving.Unlock()
	p.saved, p.asked = offset, offset
}

// begin notes that a request about that offset is under way. It returns false if the broker knows, or one is already.
func (p *progress) begin(offset int64) bool {
	p.saving.Lock()
	defer p.saving.Unlock()
	if p.open || offset == p.saved {
		return false
	}
	p.open, p.asked = true, offset
	return true
}

// answer takes the answer to the request that is under way.
func (p *progress) answer(_ uint64, r *reply) {
	err := r.err
	if err == nil && r.Code != wire.ResSuccess {
		err = refusal(r)
	}
	p.saving.Lock()
	defer p.saving.Unlock()
	p.open, p.failed, p.saved = false, err, p.asked
	if err != nil {
		p.saved = unsaved
	}
	if p.answered != nil {
		close(p.answered)
		p.answered = nil
	}
}

// wait waits until no request is under way and returns the offset that the broker has confirmed, or false when ctx has
// ended before.
func (p *progress) wait(ctx context.Context) (saved int64, ok bool) {
	for {
		p.saving.Lock()
		if !p.open {
			defer p.saving.Unlock()
			return p.saved, true
		}
		if p.answered == nil {
			p.answered = make(chan struct{})
		}
		answered := p.answered
		p.saving.Unlock()
		select {
		case <-answered:
		case <-ctx.Done():
			return 0, false
		}
	}
}

func (p *progress) failure() error {
	p.saving.Lock()
	defer p.saving.Unlock()
	return p.failed
}

// behind returns by how much the broker's knowledge will lag when it has answered.
func (p *progress) behind(offset int64) int64 {
	p.saving.Lock()
	defer p.saving.Unlock()
	return offset - p.asked
}

// note tells the broker where we stand in a queue, unless it knows or has not answered the last time. It does not
// wait; its request is to be flushed.
func (c *consumer) note(q *queue) {
	offset := q.consumed.Load()
	if !q.begin(offset) {
		return
	}
	c.pulling.Lock()
	// UpdateConsumerOffsetRequestHeader, the fields in the order of their keys.
	b := c.sign.Begin(wire.BeginFrame(c.head[:0], wire.ReqUpdateConsumerOffset, 0, 0, ""))
	b = wire.AppendInt(b, "commitOffset", offset)
	b = wire.AppendField(b, "consumerGroup", c.group)
	b = wire.AppendInt(b, "queueId", int64(q.number))
	b = wire.AppendField(b, "topic", q.topic)
	b = c.sign.Sign(b, nil)
	wire.EndFrame(b, 0)
	c.head = b
	err := q.conn.post(b, nil, call{to: &q.progress, limit: pullTime})
	c.pulling.Unlock()
	if err != nil {
		q.answer(0, &reply{err: err})
	}
}

// noteAll calls note for all queues, and flushes.
func (c *consumer) noteAll() {
	if c.opts.Model != clustering {
		return
	}
	for _, q := range c.owned {
		c.note(q)
	}
	c.flush()
}

// flush lets out the requests gathered for all brokers.
func (c *consumer) flush() {
	for _, conn := range c.at.Load().conns {
		conn.out.Flush()
	}
}

// keepUp calls note, and flushes, when keepUpAfter messages or more have been consumed since the last time.
func (c *consumer) keepUp(q *queue) {
	if c.opts.Model == clustering && q.behind(q.consumed.Load()) >= keepUpAfter {
		c.note(q)
		q.conn.out.Flush()
	}
}

// save tells the broker where we stand in a queue and returns when it knows. Nothing of the queue may be consumed
// meanwhile.
func (c *consumer) save(ctx context.Context, q *queue) error {
	const op = "save where the group stands"
	for tried := false; ; tried = true {
		saved, ok := q.wait(ctx)
		switch {
		case !ok:
			return driver.Errorf(driver.ClassTimeout, op, "is it overloaded, or not a RocketMQ server?", "%s did not answer: %w",
				q.conn.addr, ctx.Err())
		case saved == q.consumed.Load():
			return nil
		case tried:
			return wrap(op, q.failure())
		}
		c.note(q)
		q.conn.out.Flush()
	}
}
