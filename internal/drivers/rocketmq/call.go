package rocketmq

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// A call is a request that waits for its answer: all requests except sends, pulls, and the progress reports of a
// consumer. Any number of goroutines may make calls on a connection.

// appendGiven appends a field unless its value is empty: brokers would sign that as "null".
func appendGiven[T string | []byte](b []byte, key string, value T) []byte {
	if len(value) == 0 {
		return b
	}
	return wire.AppendField(b, key, value)
}

// inOrder returns a function that appends fields, which are keys with their values, in the order of the keys.
func inOrder(fields []string) func([]byte) []byte {
	pairs := slices.SortedFunc(slices.Chunk(fields, 2), func(x, y []string) int { return strings.Compare(x[0], y[0]) })
	return func(b []byte) []byte {
		for _, pair := range pairs {
			b = appendGiven(b, pair[0], pair[1])
		}
		return b
	}
}

// result receives a copy of one answer.
type result chan *reply

func (w result) answer(_ uint64, r *reply) {
	kept := &reply{from: r.from, err: r.err}
	if len(r.Body) > wire.MaxJSON {
		kept.err = driver.Errorf(driver.ClassProtocol, "", lookAtBroker,
			"the answer has %d bytes; perfmq accepts %d", len(r.Body), wire.MaxJSON)
	} else {
		kept.Frame = r.Clone()
	}
	w <- kept
}

// call makes a request and waits for its answer until ctx ends. The error reports a failure of the connection; the
// answer's code has the broker's verdict.
func (c *conn) call(ctx context.Context, code int, fields []string, body []byte) (*reply, error) {
	began := time.Now()
	w := make(result, 1)
	if err := c.tell(code, 0, inOrder(fields), body, call{to: w, limit: unlimited}); err != nil { // ctx is the limit
		return nil, err
	}
	c.Out.Flush()
	var r *reply
	select {
	case r = <-w:
	case <-ctx.Done():
		c.endCalls(errAbandoned, func(e *call) bool { return e.to == w })
		if r = <-w; r.err != nil && !c.proven.Load() && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, c.notRocketMQ(protocol.RocketMQ().Unanswered("the first question", c.tls, time.Since(began), ctx.Err()))
		} else if r.err != nil {
			return nil, unanswered(ctx, "", c.addr)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	c.version.Store(int32(r.Version))
	return r, nil
}

// must is call for requests with only one good answer. The body, if there is one, is sent as JSON. The error contains
// the broker's refusal.
func (c *conn) must(ctx context.Context, op string, code int, fields []string, body any) (*reply, error) {
	var text []byte
	var err error
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return nil, wrap(op, err)
		}
	}
	r, err := c.call(ctx, code, fields, text)
	if err == nil && r.Code != wire.ResSuccess {
		if err = c.misplaced(code, r); err == nil {
			err = refusal(r)
		}
	}
	if err != nil {
		return nil, wrap(op, err)
	}
	return r, nil
}

// query is must for an answer in JSON, decoded into answer.
func (c *conn) query(ctx context.Context, op string, code int, fields []string, body, answer any) error {
	r, err := c.must(ctx, op, code, fields, body)
	if err != nil {
		return err
	}
	return r.read(op, answer)
}

// read decodes a JSON body.
func (r *reply) read(op string, answer any) error {
	if err := wire.UnmarshalJSON(r.Body, answer); err != nil {
		return driver.Errorf(driver.ClassProtocol, op, notRocketMQ+" If so, "+lookAtBroker,
			"read the answer of %s: %w", r.from.addr, err)
	}
	return nil
}
