package rocketmq

import (
	"context"
	"strconv"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	holdTime = 15 * time.Second      // how long brokers may hold a pull until messages come
	pullTime = 30 * time.Second      // after which an answer is taken for lost
	busyTime = 50 * time.Millisecond // how long to leave a broker alone that sheds load
	// rejoinTime is how long to wait for a heartbeat to make a subscription known again.
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
	q.conn.out.Flush()
	return nil
}

// ask gathers the request for the next messages of a queue.
func (c *consumer) ask(q *queue) error {
	p := c.newPull(q)
	c.pulling.Lock()
	defer c.pulling.Unlock()
	expression, kind := c.filter.expression, c.filter.kind
	if q.retry {
		expression, kind = "*", wire.KindTag
	}
	// Unlike those of other clients, our pulls commit nothing: the broker would do that at an unknown time, perhaps after
	// the consumer has said where it stopped (see progress).
	flags := int64(wire.PullSuspend)
	if c.opts.Consume == consumePull {
		flags = 0
	}
	// PullMessageRequestHeader, the fields in the order of their keys.
	b := c.sign.Begin(wire.BeginFrame(c.head[:0], wire.ReqPullMessage, 0, 0, ""))
	b = wire.AppendField(b, "commitOffset", "0") // required
	b = wire.AppendField(b, "consumerGroup", c.group)
	b = wire.AppendField(b, "expressionType", kind)
	b = wire.AppendInt(b, "maxMsgNums", int64(c.opts.PullBatch))
	b = wire.AppendInt(b, "queueId", int64(q.number))
	b = wire.AppendInt(b, "queueOffset", q.next)
	b = wire.AppendInt(b, "subVersion", c.version)
	b = wire.AppendField(b, "subscription", expression)
	b = wire.AppendInt(b, "suspendTimeoutMillis", holdTime.Milliseconds())
	b = wire.AppendInt(b, "sysFlag", flags)
	b = wire.AppendField(b, "topic", q.topic)
	b = c.sign.Sign(b, nil)
	wire.EndFrame(b, 0)
	c.head = b
	return q.conn.post(b, nil, call{to: p, limit: pullTime})
}

// verdict returns the meaning of an answer: an error ends Run, and a time is to pass before the next pull.
func (p *pulled) verdict() (wait time.Duration, err error) {
	switch p.code {
	case wire.ResSubscriptionNotExist, wire.ResSubscriptionNotLatest:
		if p.c.introduce() {
			return rejoinTime, nil
		}
		return 0, p.err
	case wire.ResSystemBusy, wire.ResFlowControl:
		wait = busyTime
	case wire.ResPullNotFound:
		if p.c.opts.Consume == consumePull {
			wait = p.c.opts.PullInterval
		}
	default:
		err = p.err
	}
	if err == nil && p.c.unknown.Load() != 0 {
		p.c.unknown.Store(0)
	}
	return wait, err
}

// introduce tells the broker again about the consumer's subscription. A broker forgets the members of a group whose
// connections it sees end, and may do so late: when others, or the same with new connections, have joined. It returns
// false if the broker has not known the subscription for the connect time-out, heartbeats notwithstanding.
func (c *consumer) introduce() bool {
	now := time.Now().UnixNano()
	if c.unknown.CompareAndSwap(0, now) {
		c.client.wg.Go(c.client.beatAll)
		return true
	}
	return time.Duration(now-c.unknown.Load()) < c.d.cfg.ConnectTimeout
}

// sendBack gives a message back to the broker, which delivers it again later, by the group's topic for that, or, if
// it is rejected, puts it into the group's dead-letter queue.
func (c *consumer) sendBack(ctx context.Context, q *queue, m *wire.Message, verdict driver.Verdict) error {
	level := c.opts.RetryLevel
	if verdict == driver.Reject {
		level = -1
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.d.cfg.ConnectTimeout)
	defer cancel()
	_, err := q.conn.must(ctx, "give a message back", wire.ReqConsumerSendMsgBack, []field{
		{"group", c.group},
		{"originTopic", string(m.Topic)},
		{"offset", strconv.FormatInt(m.LogOffset, 10)},
		{"delayLevel", strconv.Itoa(level)},
		{"originMsgId", string(wire.Property(m.Properties, wire.PropUniqueKey))},
		{"unitMode", "false"},
		{"maxReconsumeTimes", "16"},
	}, nil)
	return err
}
