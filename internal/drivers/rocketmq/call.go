package rocketmq

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/perfmq/perfmq/pkg/driver"
)

// caller makes requests that wait for their answers: everything but sends and pulls. It may be used by many goroutines.
type caller struct {
	mu   sync.Mutex
	sign *signer
}

// request builds a frame of a request.
func (a *caller) request(code uint16, flag uint32, fields []field, body []byte) []byte {
	slices.SortFunc(fields, func(x, y field) int { return strings.Compare(x.key, y.key) })
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.sign.begin(beginFrame(nil, code, flag))
	for _, f := range fields {
		b = appendBytes(b, f.key, []byte(f.value))
	}
	b = a.sign.sign(b, body)
	endFrame(b, len(body))
	return b
}

// result waits for one answer and keeps a copy of it.
type result struct {
	reply
	done chan struct{}
}

// maxAnswer is the largest body of an answer that is waited for, in bytes. Such bodies are JSON, a kilobyte or two, and take
// much more memory once they are read.
const maxAnswer = 1 << 20

func (w *result) answer(_ uint64, r *reply) {
	if len(r.body) > maxAnswer {
		w.err = driver.Errorf(driver.ClassProtocol, "", lookAtBroker, "the broker's answer has %d bytes; perfmq accepts at most %d",
			len(r.body), maxAnswer)
		close(w.done)
		return
	}
	w.reply = *r
	w.remark, w.fields, w.body = slices.Clone(r.remark), slices.Clone(r.fields), slices.Clone(r.body)
	w.fieldsJSON = slices.Clone(r.fieldsJSON)
	close(w.done)
}

// call makes a request and waits for its answer until ctx ends. The error is that of the way to the broker; what the
// broker says is in the answer's code.
func (a *caller) call(ctx context.Context, c *conn, code uint16, fields []field, body []byte) (*reply, error) {
	head := a.request(code, 0, fields, body)
	w := &result{done: make(chan struct{})}
	if err := c.submit(ctx, driver.NewMeter(), head, body, false, call{to: w, limit: unlimited}); err != nil { // ctx is the limit
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
	c.version.Store(int32(w.version))
	return &w.reply, nil
}

// must is call for requests that have only one good answer. The error tells what the broker said.
func (a *caller) must(ctx context.Context, c *conn, op string, code uint16, fields []field, body []byte) (*reply, error) {
	r, err := a.call(ctx, c, code, fields, body)
	if err == nil && r.code != codeSuccess {
		err = refusal(r)
	}
	if err != nil {
		return nil, wrap(op, err)
	}
	return r, nil
}
