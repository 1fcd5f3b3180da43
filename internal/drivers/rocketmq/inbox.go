package rocketmq

import (
	"context"
	"errors"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// inboxLimit is how many bytes of answers to pulls a consumer holds, the one being delivered included. Answers
	// beyond are dropped and pulled again: a broker may answer the pulls of all queues at once, whatever has become of
	// the others. One answer of any size is always taken.
	inboxLimit = 16 << 20
	// crowded is the number of held bytes above which no more is pulled ahead.
	crowded = inboxLimit / 2
	// smallAnswer is the least size that the next answers are assumed to have, in bytes.
	smallAnswer = 64 << 10
)

// inbox holds the answers to the pulls of a consumer until Run delivers them. All but arrived is guarded by the
// consumer's mu.
type inbox struct {
	arrived  chan struct{} // there is something new
	answered []*pulled     // in the order of their arrival
	spare    []*pulled     // to be used again
	held     int           // bytes of answers, until they have been delivered
	last     int           // bytes of the last answer that brought messages
	parked   []*queue      // to be pulled from when there is room
	large    []byte        // memory for the body of a large answer
}

// pulled is a pull and its answer.
type pulled struct {
	c       *consumer
	q       *queue
	err     error // there was no answer, or the broker refused
	code    int   // of the answer
	next    int64 // where to pull from after it
	hasNext bool
	body    []byte
	dropped bool // there was no room for its body
}

func (c *consumer) newPull(q *queue) *pulled {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.spare)
	if n == 0 {
		return &pulled{c: c, q: q}
	}
	p := c.spare[n-1]
	c.spare = c.spare[:n-1]
	p.q = q
	return p
}

// answer takes the answer to a pull and hands it to Run.
func (p *pulled) answer(_ uint64, r *reply) {
	p.err, p.code = r.err, r.Code
	p.next, p.hasNext = r.Number("nextBeginOffset")
	switch {
	case errors.Is(r.err, errNoAnswer):
		p.err = driver.Errorf(driver.ClassConnectionLost, "", "the broker, or the network, hangs",
			"no answer to a pull within %s", pullTime)
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
	p.c.mu.Unlock()
	p.c.tell()
}

// reserve takes room for an answer of n bytes; it returns false if there is none.
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

// take returns the next answer to a pull; nil when ctx has ended or, with an error, when we cannot go on.
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
			return nil, nil //nolint:nilerr // the end of ctx is no error
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

func (c *consumer) tell() {
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

// prefetch pulls the next messages of a queue, or does so later if much is waiting to be delivered.
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

// park lets a queue wait for room. Run recycles an answer afterwards, and then looks for room.
func (c *consumer) park(q *queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked = append(c.parked, q)
}

// recycle keeps a pull whose answer has been delivered for the next, and pulls from parked queues as far as there is
// room.
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
