package rocketmq

import (
	"context"
	"slices"
	"strings"
	"sync"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// caller makes requests that wait for their answers: everything but sends and pulls. It may be used by many goroutines.
type caller struct {
	mu   sync.Mutex
	sign *wire.Signer
}

// request builds a frame of a request.
func (a *caller) request(code int, flag uint32, fields []field, body []byte) []byte {
	slices.SortFunc(fields, func(x, y field) int { return strings.Compare(x.key, y.key) })
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.sign.Begin(wire.BeginFrame(nil, code, flag, 0, ""))
	for _, f := range fields {
		b = appendGiven(b, f.key, []byte(f.value))
	}
	b = a.sign.Sign(b, body)
	wire.EndFrame(b, len(body))
	return b
}

// result waits for one answer and keeps a copy of it.
type result struct {
	reply
	done chan struct{}
}

func (w *result) answer(_ uint64, r *reply) {
	if len(r.Body) > wire.MaxJSON {
		w.err = driver.Errorf(driver.ClassProtocol, "", lookAtBroker,
			"the broker's answer has %d bytes; perfmq accepts at most %d",
			len(r.Body), wire.MaxJSON)
		close(w.done)
		return
	}
	w.reply = reply{Frame: r.Clone(), from: r.from, err: r.err}
	close(w.done)
}

// call makes a request and waits for its answer until ctx ends. The error is that of the way to the broker; the
// broker's verdict is in the answer's code.
func (a *caller) call(ctx context.Context, c *conn, code int, fields []field, body []byte) (*reply, error) {
	head := a.request(code, 0, fields, body)
	w := &result{done: make(chan struct{})}
	if err := c.submit(ctx, driver.NewMeter(), head, body, false, call{to: w, limit: unlimited}); err != nil {
		// ctx is the limit
		return nil, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		c.abandon(w)
		<-w.done
		if w.err != nil {
			return nil, driver.Errorf(driver.ClassTimeout, "", "is it overloaded, or not a RocketMQ server?",
				"%s did not answer: %w", c.addr, ctx.Err())
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	c.version.Store(int32(w.Version))
	return &w.reply, nil
}

// must is call for requests that have only one good answer. The error contains the broker's refusal.
func (a *caller) must(ctx context.Context, c *conn, op string, code int, fields []field, body []byte) (*reply, error) {
	r, err := a.call(ctx, c, code, fields, body)
	if err == nil && r.Code != wire.ResSuccess {
		err = refusal(r)
	}
	if err != nil {
		return nil, wrap(op, err)
	}
	return r, nil
}
