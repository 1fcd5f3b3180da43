package rocketmq

import (
	"context"
	"errors"
	"strconv"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	// holdTime is the time that brokers may hold a pull until messages come. They compare it every lookTime
	// (PullRequestHoldService.run), so that a pull ends at the next comparison.
	holdTime = time.Second
	lookTime = 5 * time.Second
	pullTime = 30 * time.Second      // after which an answer counts as lost
	busyTime = 50 * time.Millisecond // pause before the next pull from an overloaded broker
	// rejoinTime is the time to wait for a heartbeat to make a subscription known again.
	rejoinTime = 200 * time.Millisecond
)

// pull pulls the next messages of a queue, after the given time.
func (c *consumer) pull(q *queue, wait time.Duration) error {
	if wait > 0 {
		time.AfterFunc(wait, func() {
			if err := c.pull(q, 0); err != nil {
				c.fail(err)
			}
		})
		return nil
	}
	if q.revoked.Load() {
		return nil
	}
	if err := c.ask(q); err != nil {
		return err
	}
	q.conn.Out.Flush()
	return nil
}

// ask gathers the request for the next messages of a queue.
func (c *consumer) ask(q *queue) error {
	expression, kind := c.filter.Expression, c.filter.Kind
	if q.retry {
		expression, kind = "*", wire.KindTag
	}
	// Other clients commit with their pulls, ours do not: the broker would commit at an unknown time, perhaps after the
	// consumer has reported where it stopped (see queue).
	p := c.newPull(q)
	if p == nil {
		return nil
	}
	err := q.conn.tell(wire.ReqPullMessage, 0, func(b []byte) []byte { // PullMessageRequestHeader
		b = wire.AppendField(b, "commitOffset", "0") // required
		b = wire.AppendField(b, "consumerGroup", c.group)
		b = wire.AppendField(b, "expressionType", kind)
		b = wire.AppendInt(b, "maxMsgNums", int64(c.opts.PullBatch))
		b = wire.AppendInt(b, "queueId", int64(q.number))
		b = wire.AppendInt(b, "queueOffset", q.next)
		b = wire.AppendInt(b, "subVersion", c.filter.Version)
		b = wire.AppendField(b, "subscription", expression)
		b = wire.AppendInt(b, "suspendTimeoutMillis", holdTime.Milliseconds())
		b = wire.AppendInt(b, "sysFlag", wire.PullSuspend)
		return wire.AppendField(b, "topic", q.topic)
	}, nil, call{to: p, limit: pullTime})
	if err != nil { // it was not sent
		c.mu.Lock()
		c.asked--
		c.mu.Unlock()
	}
	return err
}

const (
	// inboxLimit bounds the bytes of answers to pulls that a consumer holds, including the one being delivered. Answers
	// beyond it are dropped and pulled again: a broker may answer the pulls of all queues at once. One answer of any size
	// is always accepted.
	inboxLimit = 16 << 20
	// crowded is the number of held bytes above which no more messages are prefetched.
	crowded = inboxLimit / 2
	// smallAnswer is the smallest assumed size of the next answers, in bytes.
	smallAnswer = 64 << 10
)

// pulled is a pull and its answer.
type pulled struct {
	c       *consumer
	q       *queue
	err     error // there was no answer, or the broker refused
	code    int   // of the answer
	next    int64 // offset of the pull after it
	hasNext bool
	body    []byte
	dropped bool // there was no room for its body
}

// newPull returns a pull from a queue; nil if the consumer is leaving its group.
func (c *consumer) newPull(q *queue) *pulled {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving {
		return nil
	}
	c.asked++
	n := len(c.spare)
	if n == 0 {
		return &pulled{c: c, q: q}
	}
	p := c.spare[n-1]
	c.spare = c.spare[:n-1]
	p.q = q
	return p
}

// answer processes the answer to a pull and passes it to Run.
func (p *pulled) answer(_ uint64, r *reply) {
	p.err, p.code = r.err, r.Code
	p.next, p.hasNext = r.Number("nextBeginOffset")
	switch {
	case errors.Is(r.err, errNoAnswer):
		p.err = silent("pull", pullTime)
	case r.err != nil:
	case r.Code != wire.ResSuccess && r.Code != wire.ResPullNotFound && r.Code != wire.ResPullRetryImmediately &&
		r.Code != wire.ResPullOffsetMoved:
		p.err = refusal(r)
	}
	body := r.Body
	if p.dropped = !p.c.reserve(p, len(body)); p.dropped {
		body, p.code, p.hasNext = nil, wire.ResPullRetryImmediately, false
	}
	p.body = append(p.body[:0], body...)
	p.c.mu.Lock()
	p.c.answered = append(p.c.answered, p)
	p.c.asked--
	p.c.mu.Unlock()
	transport.Notify(p.c.arrived)
}

// reserve reserves room for an answer of n bytes; it returns false without one.
func (c *consumer) reserve(p *pulled, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		c.last = n
	}
	if c.held > 0 && n > 0 && c.held+n > inboxLimit {
		return false
	}
	c.held += n
	if n > max(keptBuffer, cap(p.body)) {
		p.body, c.large = c.large, nil
	}
	return true
}

// take returns the next answer to a pull; nil when ctx has ended or, with an error, when the consumer cannot continue.
func (c *consumer) take(ctx context.Context) (*pulled, error) {
	for {
		c.mu.Lock()
		var p *pulled
		if len(c.answered) > 0 {
			p = c.answered[0]
			c.answered = c.answered[:copy(c.answered, c.answered[1:])]
		}
		err := c.err
		c.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil, nil //nolint:nilerr // the end of ctx is not an error
		case p != nil:
			return p, nil
		case err != nil:
			return nil, err
		}
		c.input.Begin()
		select {
		case <-c.arrived:
		case <-ctx.Done():
		}
		c.input.End()
	}
}

// prefetch pulls the next messages of a queue, or defers that if many wait for delivery.
func (c *consumer) prefetch(q *queue) error {
	c.mu.Lock()
	full := c.held > crowded
	c.mu.Unlock()
	if full {
		c.park(q)
		return nil
	}
	return c.pull(q, 0)
}

// park lets a queue wait for room. Run calls recycle afterwards, which looks for room.
func (c *consumer) park(q *queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked = append(c.parked, q)
}

// recycle keeps a pull with a delivered answer for reuse, and pulls from parked queues as far as there is room.
func (c *consumer) recycle(p *pulled) {
	c.mu.Lock()
	c.held -= len(p.body)
	if p.body = p.body[:0]; cap(p.body) > keptBuffer {
		p.body, c.large = nil, p.body
	}
	c.spare = append(c.spare, p)
	var ready []*queue
	if len(c.parked) > 0 && c.held <= crowded {
		n := min(len(c.parked), 1+(crowded-c.held)/max(c.last, smallAnswer))
		ready = append(ready, c.parked[:n]...)
		c.parked = c.parked[:copy(c.parked, c.parked[n:])]
	}
	c.mu.Unlock()
	for _, q := range ready {
		if err := c.pull(q, 0); err != nil {
			c.fail(err)
		}
	}
}

// verdict returns the meaning of an answer: an error, which ends Run, or a wait before the next pull.
func (p *pulled) verdict() (wait time.Duration, err error) {
	switch p.code {
	case wire.ResSubscriptionNotExist, wire.ResSubscriptionNotLatest:
		if p.c.resubscribe() {
			return rejoinTime, nil
		}
		return 0, p.err
	case wire.ResSystemBusy, wire.ResFlowControl:
		wait = busyTime
	case wire.ResPullNotFound:
	default:
		err = p.err
	}
	if err == nil && p.c.unknown.Load() != 0 {
		p.c.unknown.Store(0)
	}
	return wait, err
}

// resubscribe sends the broker the consumer's subscription again. A broker removes the members of a group when it sees
// their connections end, perhaps late: when others, or the same with new connections, have joined. It returns false if
// the broker has not known the subscription for the connect time-out, despite heartbeats.
func (c *consumer) resubscribe() bool {
	now := time.Now().UnixNano()
	if c.unknown.CompareAndSwap(0, now) {
		c.client.wg.Go(c.client.beatAll)
		return true
	}
	return time.Duration(now-c.unknown.Load()) < c.d.cfg.ConnectTimeout
}

// sendBack returns a message to the broker, which delivers it again later through the group's retry topic, or, if it is
// rejected, moves it to the group's dead-letter queue.
func (c *consumer) sendBack(ctx context.Context, q *queue, m *wire.Message, verdict driver.Verdict) error {
	level := "1" // deliver it again after a second
	if verdict == driver.Reject {
		level = "-1" // to the dead letters
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.d.cfg.ConnectTimeout)
	defer cancel()
	_, err := q.conn.must(ctx, "give a message back", wire.ReqConsumerSendMsgBack, []string{
		"group", c.group, "originTopic", string(m.Topic), "offset", strconv.FormatInt(m.LogOffset, 10),
		"originMsgId", string(wire.Property(m.Properties, wire.PropUniqueKey)),
		"delayLevel", level, "unitMode", "false", "maxReconsumeTimes", "16",
	}, nil)
	return err
}
