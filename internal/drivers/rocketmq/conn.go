package rocketmq

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	// headRoom is the room of an accepted frame beyond the largest body.
	headRoom = 1 << 20
	// keptBuffer is the largest buffer that is kept for the next frame.
	keptBuffer = 1 << 20
	// leastCalls is the initial room of a connection for calls in flight; a power of two.
	leastCalls = 8
	// sweepEvery is the interval of the search for overdue calls; with many clients it is sweepPause for each of them, up
	// to sweepRarely.
	sweepEvery  = 50 * time.Millisecond
	sweepPause  = 100 * time.Microsecond
	sweepRarely = 250 * time.Millisecond
	// unlimited is the time limit of calls that end otherwise.
	unlimited = 24 * time.Hour
)

// reply is an answer, or a request of the broker. Its slices are valid only while it is being handled.
type reply struct {
	wire.Frame
	from *conn
	err  error // there was no answer: the connection ended, or the time limit passed
}

// conn is a connection to a broker or name server with any number of requests in flight. [transport.Output] gathers
// outgoing frames; one goroutine reads.
type conn struct {
	*transport.Conn
	addr     string
	maxFrame int // the largest frame to take, in bytes
	tls      bool
	proven   atomic.Bool // the peer has sent a valid frame
	client   *client     // nil without load: requests of the broker are ignored
	begin    time.Time
	stages   driver.Stages // of its opening
	loggedIn atomic.Bool
	// version is the server's version in the last answer to a caller, see reply.version.
	version atomic.Int32
	written []call // scratch space of Written
	nothing reply  // passed to call.to instead of an answer

	telling sync.Mutex // guards sign and head
	sign    *wire.Signer
	head    []byte

	mu     sync.Mutex
	calls  []call // by opaque modulo its length, a power of two
	live   int
	opaque uint32
}

// call is a request that waits for its answer or, if it gets none, for its write to complete.
type call struct {
	// to receives the end of the request, with the argument that it was sent with; nil: no caller waits. It is called
	// once, by the connection's reading goroutine or by the goroutine that found that no answer will come, and must not
	// block.
	to     interface{ answer(arg uint64, r *reply) }
	arg    uint64
	limit  time.Duration
	oneWay bool // it ends when it is written
	opaque uint32
	seen   time.Duration // when a sweep first saw it, since the connection was made; 0: not yet
}

// newConn returns a connection that accepts messages with bodies of up to maxBody bytes. nc is raw, or TLS on top of
// it. Signer and client may be nil.
func newConn(
	addr string, nc net.Conn, raw *transport.Metered, mem *transport.Buffers, maxBody int, sign *wire.Signer,
	client *client,
) *conn {
	c := &conn{
		Conn: transport.NewConn(transport.Endpoint{}, nc, raw, mem), addr: addr, tls: nc != net.Conn(raw),
		maxFrame: maxBody + headRoom, sign: sign, client: client, begin: time.Now(), calls: make([]call, leastCalls),
	}
	c.Start(c.Out.Flush, c.run, 0, 0, nil, "")
	return c
}

// submit sends a request, once there is room; meter measures the wait. With more, another request follows at once. If
// it returns an error, nothing was sent and call.to is not called.
func (c *conn) submit(ctx context.Context, meter *driver.Meter, head, body []byte, more bool, e call) error {
	b, err := c.Out.Lock(ctx, meter)
	if err != nil {
		return c.unsent(ctx, err)
	}
	if err := c.expect(head, e); err != nil {
		c.Out.Unlock(b, false)
		return err
	}
	b = append(append(b, head...), body...)
	if e.oneWay && e.to != nil {
		c.Out.Confirm(c, driver.Slot(binary.BigEndian.Uint32(head[wire.OpaqueAt:])))
	}
	c.Out.Unlock(b, more)
	return nil
}

// unsent returns the reason why there was no room for a request.
func (c *conn) unsent(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return driver.Errorf(driver.ClassTimeout, "", "the broker does not read from the connection: is it overloaded?",
			"the broker took nothing: %w", ctx.Err())
	}
	c.Fail(err) // unless the output has failed before
	return c.Why()
}

// tell gathers a request other than a send, with fields in the order of their keys, without waiting for room. The
// caller must flush. If tell returns an error, nothing was sent and call.to is not called.
func (c *conn) tell(code int, flag uint32, fields func([]byte) []byte, body []byte, e call) error {
	c.telling.Lock()
	defer c.telling.Unlock()
	head := c.request(code, flag, fields, body)
	if err := c.expect(head, e); err != nil {
		return err
	}
	// An error means that the broker does not read, or that the connection has ended: this call ends with it.
	_ = c.Gather(func(b []byte) []byte { return append(append(b, head...), body...) })
	return nil
}

// request builds a request without its body in c.head.
func (c *conn) request(code int, flag uint32, fields func([]byte) []byte, body []byte) []byte {
	b := fields(c.sign.Begin(wire.BeginFrame(c.head[:0], code, flag, 0, "")))
	b = c.sign.Sign(b, body)
	wire.EndFrame(b, len(body))
	c.head = b
	return b
}

// expect numbers a frame and registers the waiter for its answer.
func (c *conn) expect(head []byte, e call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Dead() {
		return c.Why()
	}
	if e.to != nil {
		if 2*c.live >= len(c.calls) {
			c.grow()
		}
		mask := uint32(len(c.calls) - 1)
		for c.calls[c.opaque&mask].to != nil {
			c.opaque++
		}
		e.opaque = c.opaque
		c.calls[c.opaque&mask] = e
		c.live++
	}
	binary.BigEndian.PutUint32(head[wire.OpaqueAt:], c.opaque)
	c.opaque++
	return nil
}

// grow doubles the table. Two opaques that differ modulo its length also differ modulo twice that length.
func (c *conn) grow() {
	calls := make([]call, 2*len(c.calls))
	for _, e := range c.calls {
		if e.to != nil {
			calls[e.opaque&uint32(len(calls)-1)] = e
		}
	}
	c.calls = calls
}

// take removes and returns the call with that number, if it has not ended.
func (c *conn) take(opaque uint32) (e call, ok bool) {
	at := &c.calls[opaque&uint32(len(c.calls)-1)]
	if at.to == nil || at.opaque != opaque {
		return e, false
	}
	e = *at
	*at = call{}
	c.live--
	return e, true
}

// Written implements [transport.Writer]: requests without an answer end when they are written. Their slots are call
// numbers.
func (c *conn) Written(opaques []driver.Slot) {
	c.written = c.written[:0]
	c.mu.Lock()
	for _, opaque := range opaques {
		if e, ok := c.take(uint32(opaque)); ok { //nolint:gosec // it was made from one
			c.written = append(c.written, e)
		}
	}
	c.mu.Unlock()
	for i := range c.written {
		c.written[i].to.answer(c.written[i].arg, &c.nothing)
	}
}

// run reads until the connection ends, and ends all its calls.
func (c *conn) run() {
	c.Fail(c.read())
	c.endCalls(c.Why(), func(*call) bool { return true })
	if c.client != nil {
		c.client.ended(c)
	}
}

// read processes frames from the server, and returns why it ended.
func (c *conn) read() error {
	if err := c.greet(); err != nil {
		return err
	}
	var large []byte
	var r reply
	for {
		size, err := c.In.Peek(4)
		if err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(size)
		if err := c.checkLength(n); err != nil {
			return err
		}
		frame, inPlace := large, 4+int(n) <= c.In.Size()
		if inPlace {
			frame, err = c.In.Peek(4 + int(n))
		} else if _, err = c.In.Discard(4); err == nil {
			large, err = transport.ReadBody(c.In, large, int(n))
			frame = large
		}
		if err != nil {
			return err
		}
		if err := r.Parse(frame[len(frame)-int(n):]); err != nil {
			hint := notRocketMQ
			if c.proven.Load() {
				hint = lookAtBroker
			}
			return driver.Errorf(driver.ClassProtocol, "", hint, "read from the peer: %w", err)
		}
		c.handle(&r)
		if !c.proven.Load() {
			c.proven.Store(true)
		}
		if !inPlace {
			continue
		}
		_, _ = c.In.Discard(4 + int(n)) // they are buffered
		if cap(large) > keptBuffer {
			large = nil // large frames come in a row, or not for a while
		}
	}
}

// checkLength refuses a frame by its claimed length.
func (c *conn) checkLength(n uint32) error {
	switch {
	case n < wire.MinFrame:
		return driver.Errorf(driver.ClassProtocol, "", lookAtBroker,
			"the broker sends a frame of %d bytes: %w", n, wire.ErrFrame)
	case n > uint32(c.maxFrame): //nolint:gosec // above zero
		return transport.TooLarge("", "a frame of", int(n), c.maxFrame)
	}
	return nil
}

func (c *conn) handle(r *reply) {
	r.from = c
	if r.Flag&wire.FlagAnswer == 0 {
		if c.client != nil {
			c.client.serve(r)
		}
		return
	}
	c.mu.Lock()
	e, ok := c.take(r.Opaque)
	c.mu.Unlock()
	if ok { // otherwise the answer came too late
		e.to.answer(e.arg, r)
	}
}

// sweep ends overdue calls. It measures their age from the sweep that first saw them, so that submitting need not read
// the clock. A call may exceed its limit by twice the interval of sweeps.
func (c *conn) sweep() {
	now := time.Since(c.begin)
	c.endCalls(errNoAnswer, func(e *call) bool {
		if e.seen == 0 {
			e.seen = now
			return false
		}
		return now-e.seen >= e.limit
	})
}

// endCalls ends the matching calls.
func (c *conn) endCalls(err error, match func(*call) bool) {
	var over []call
	c.mu.Lock()
	if c.live > 0 {
		for i := range c.calls {
			if e := &c.calls[i]; e.to != nil && match(e) {
				over = append(over, *e)
				*e = call{}
				c.live--
			}
		}
	}
	c.mu.Unlock()
	for _, e := range over {
		e.to.answer(e.arg, &reply{err: err})
	}
}

// Why returns why the connection has ended, in plain words.
func (c *conn) Why() error { return transport.Explain("", c.Conn.Why()) }

// close ends the connection and waits for its goroutines.
func (c *conn) close() { c.Leave(context.Background(), func(context.Context) {}) }

// waits returns the time that the reader of the connection has waited.
func (c *conn) waits() driver.Waits { return driver.Waits{Reader: c.Raw.Reading()} }

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
	if c.stages != nil && !c.loggedIn.Load() {
		_, class, _ := protocol.RocketMQRefusal(r.Code, string(r.Remark))
		if (r.Code == wire.ResSuccess || class != driver.ClassAuth) && c.loggedIn.CompareAndSwap(false, true) {
			c.stages.Ended(driver.StageLogin, c.begin)
		}
	}
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
