package rocketmq5

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq5"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	// streamWindow bounds the bytes that the proxy may send on a stream before its messages are delivered.
	streamWindow = 1 << 20
	// connWindow is that of all streams. It opens again as bytes arrive: the windows of streams bound our memory.
	connWindow = 16 << 20
	// headRoom is the room of an accepted message beyond the largest body.
	headRoom = 1 << 20
	// keptBuffer is the largest buffer that is kept for the next message.
	keptBuffer = 1 << 20
	// maxAnswer is the largest answer to a call with one answer.
	maxAnswer = 16 << 20
	// lastStream is the number of the last stream of a connection (RFC 9113, section 5.1.1).
	lastStream = 1<<31 - 1
	// unlimited is the time limit of calls that end otherwise.
	unlimited = 24 * time.Hour
)

// caller receives the end of a call, with the argument that it was made with: the answer, which is valid during the
// call, or why there is none. It is called once, by the connection's reading goroutine or by one that found that no
// answer will come, and must not block.
type caller interface {
	answer(arg uint64, body []byte, err error)
}

// streamer is a caller that takes answers as they come.
type streamer interface {
	caller
	// take gets one of the answers.
	take(s *stream, body []byte) error
}

// stream is a call that has not ended.
type stream struct {
	id    uint32
	to    caller
	arg   uint64
	limit time.Duration
	seen  time.Duration // when a sweep first saw it, since the connection was made; 0: not yet
	more  chan struct{} // signalled when a large request may continue
	// window is the number of bytes that we may send.
	window int64
	// received is the number of bytes that came, held those of them that wait for delivery, and granted the number of
	// bytes by which we have enlarged the proxy's window.
	received, granted int64
	held              atomic.Int64

	// Only the reader uses these.
	began bool   // there were headers
	part  []byte // of a message, with its prefix
	body  []byte // the answer
	whole bool   // there is one
}

// conn is a connection to the proxy with any number of calls in flight. [transport.Output] gathers outgoing frames; one
// goroutine reads.
type conn struct {
	*transport.Conn
	d          *proxyDriver
	host       transport.Endpoint
	scheme     string
	maxMessage int
	begin      time.Time
	loggedIn   atomic.Bool

	// Guarded by the lock of Out, as the proxy decodes headers in the order in which they are sent.
	nextID   uint32
	encoder  *hpack.Encoder
	encoded  bytes.Buffer
	blocks   map[string]*block
	changes  int // of the encoder's table
	identity []hpack.HeaderField

	// Only the reader uses these.
	headers *wire.Headers
	block   []byte    // of a frame HEADERS that CONTINUATION continues
	blockOf wire.Head // that frame
	taken   int       // bytes of DATA since the last WINDOW_UPDATE

	mu         sync.Mutex
	streams    map[uint32]*stream
	spare      []*stream
	live       int   // streams, with those about to be opened
	window     int64 // bytes that we may send
	initial    int64 // of a stream
	maxStreams int
	maxFrame   int
	over       bool
	waiting    int                   // callers that wait for room
	room       chan struct{}         // signal for them
	clients    map[*client]time.Time // and when their next heartbeat is due

	watching map[*transport.Notice]bool

	life  context.Context // ends with the connection's use
	end   context.CancelFunc
	beats sync.WaitGroup
}

// block is the encoded headers of a call, valid as long as the encoder's table does not change.
type block struct {
	bytes   []byte
	changes int
}

func newConn(
	d *proxyDriver, host transport.Endpoint, nc net.Conn, raw *transport.Metered,
) *conn {
	c := &conn{
		Conn: transport.NewConn(host, nc, raw, &d.mem), d: d, host: host, scheme: "http", begin: time.Now(),
		maxMessage: d.cfg.MaxBody + headRoom, nextID: 1, blocks: map[string]*block{}, headers: wire.NewHeaders(),
		streams: map[uint32]*stream{}, window: wire.DefaultWindow, initial: wire.DefaultWindow, maxStreams: 1 << 20,
		maxFrame: wire.LeastMaxFrame, room: make(chan struct{}, 1), clients: map[*client]time.Time{},
		watching: map[*transport.Notice]bool{},
	}
	if d.cfg.Target.TLS {
		c.scheme = "https"
	}
	c.encoder = hpack.NewEncoder(&c.encoded)
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// shake exchanges settings with the peer.
func (c *conn) shake() error {
	b, err := c.Out.Lock(context.Background(), nil)
	if err != nil {
		return err
	}
	b = wire.AppendSettings(append(b, wire.Preface...), wire.SettingPush, 0, wire.SettingWindow, streamWindow)
	b = wire.AppendWord(b, wire.FrameWindow, 0, connWindow-wire.DefaultWindow)
	c.identify()
	c.Out.Unlock(b, false)
	head, err := c.In.Peek(wire.HeadSize)
	if err == nil && !transport.IsHTTP2(head) {
		return proxy().Stranger(c.scheme == "https", head)
	}
	return err
}

// identify renews the headers that say who we are, with the signature of the present time. It is called with the lock
// of Out.
func (c *conn) identify() {
	c.identity = c.d.identity(c.identity[:0], time.Now())
	c.changes++
}

// appendHead appends a frame HEADERS for a call of a client.
func (c *conn) appendHead(b []byte, id uint32, call *method, of *client) []byte {
	known := c.blocks[call.key]
	if known == nil {
		known = &block{changes: -1}
		c.blocks[call.key] = known
	}
	fields := known.bytes
	if known.changes != c.changes {
		fields = c.encode(call)
		if len(fields) == len(c.identity)+len(call.fields) { // one byte for each: the table has them all
			known.bytes, known.changes = bytes.Clone(fields), c.changes
		} else {
			c.changes++
		}
	}
	b = wire.AppendHead(b, wire.Head{
		Length: len(fields) + len(of.header), Type: wire.FrameHeaders, Flags: wire.FlagEndHeaders, Stream: id,
	})
	return append(append(b, fields...), of.header...)
}

func (c *conn) encode(call *method) []byte {
	c.encoded.Reset()
	for _, fields := range [][]hpack.HeaderField{call.fields, c.identity} {
		for _, f := range fields {
			if f.Name == ":scheme" {
				f.Value = c.scheme
			}
			if f.Name == ":authority" {
				f.Value = c.host.String()
			}
			_ = c.encoder.WriteField(f) // into memory
		}
	}
	return c.encoded.Bytes()
}

// request is a call to be made.
type request struct {
	of   *client
	call *method
	// parts are the message, with its prefix. Another may follow if open is set.
	parts  [3][]byte
	open   bool
	more   bool // another call follows at once
	to     caller
	arg    uint64
	limit  time.Duration
	credit *driver.Meter // measures the wait for the permission to send
	socket *driver.Meter // measures the wait for room
}

// start makes a call, once there is permission and room. If it returns an error, the proxy does not have the whole
// request, and the caller gets no answer.
func (c *conn) start(ctx context.Context, r *request) error {
	total := int64(len(r.parts[0]) + len(r.parts[1]) + len(r.parts[2]))
	c.mu.Lock()
	for !c.over && (c.live >= c.maxStreams || c.window <= 0) {
		if err := c.await(ctx, r.credit); err != nil {
			return err
		}
	}
	if c.over {
		c.mu.Unlock()
		return c.Why()
	}
	n := min(total, c.window, max(c.initial, 0))
	c.window -= n
	c.live++
	c.mu.Unlock()
	b, err := c.Out.Lock(ctx, r.socket)
	if err != nil {
		c.mu.Lock()
		c.window += n
		c.live--
		c.mu.Unlock()
		return err
	}
	c.mu.Lock()
	if c.over || c.nextID > lastStream {
		over := c.over
		c.mu.Unlock()
		c.Out.Unlock(b, false)
		if !over {
			c.Fail(driver.Errorf(driver.ClassConnectionLost, "", "give --reconnect, or share connections less",
				"all stream numbers of the connection are used up"))
		}
		return c.Why()
	}
	s := c.newStream(r, c.initial-n)
	maxFrame := c.maxFrame
	c.mu.Unlock()
	b = c.appendHead(b, s.id, r.call, r.of)
	id := s.id
	b = appendData(b, id, &r.parts, 0, n, maxFrame, !r.open && n == total)
	c.Out.Unlock(b, r.more && n == total)
	if n < total {
		return c.startRest(ctx, r, s, id, n, total)
	}
	return nil
}

// newStream registers a stream. It is called with both locks.
func (c *conn) newStream(r *request, window int64) *stream {
	var s *stream
	if n := len(c.spare); n > 0 {
		s, c.spare = c.spare[n-1], c.spare[:n-1]
		*s = stream{part: s.part[:0], body: s.body[:0]}
	} else {
		s = &stream{}
	}
	s.id, s.to, s.arg, s.limit, s.window = c.nextID, r.to, r.arg, r.limit, window
	s.granted = streamWindow
	c.streams[s.id] = s
	c.nextID += 2
	return s
}

// startRest sends the rest of a request that is larger than the windows, as they open.
func (c *conn) startRest(ctx context.Context, r *request, s *stream, id uint32, at, total int64) error {
	for at < total {
		c.mu.Lock()
		if c.streams[id] != s { // it has been answered, or has failed: its caller knows
			c.mu.Unlock()
			return nil
		}
		var err error
		switch {
		case s.window <= 0:
			if s.more == nil {
				s.more = make(chan struct{}, 1)
			}
			err = c.awaitOn(ctx, s.more, r.credit)
		case c.window <= 0:
			err = c.await(ctx, r.credit)
		default:
			n := min(total-at, s.window, c.window)
			s.window -= n
			c.window -= n
			maxFrame := c.maxFrame
			c.mu.Unlock()
			var b []byte
			if b, err = c.Out.Lock(ctx, r.socket); err == nil {
				c.Out.Unlock(appendData(b, id, &r.parts, at, n, maxFrame, !r.open && at+n == total), false)
				at += n
			}
			c.mu.Lock()
		}
		if err == nil {
			c.mu.Unlock()
			continue
		}
		if ctx.Err() == nil || !c.abandon(s, id) {
			return nil // its caller gets the end of the connection, or has got another
		}
		return err
	}
	return nil
}

// abandon ends a call whose request is not complete, without a word to its caller, and returns whether it did.
func (c *conn) abandon(s *stream, id uint32) bool {
	c.mu.Lock()
	mine := c.streams[id] == s
	if mine {
		c.drop(s)
	}
	c.mu.Unlock()
	if mine {
		_ = c.Put(func(b []byte) []byte { return wire.AppendWord(b, wire.FrameReset, id, wire.CodeCancel) })
	}
	return mine
}

// await waits until there may be room for another call. It is called with the lock, and returns with it unless there is
// an error.
func (c *conn) await(ctx context.Context, meter *driver.Meter) error {
	c.waiting++
	err := c.awaitOn(ctx, c.room, meter)
	if err != nil {
		c.mu.Lock()
	}
	c.waiting--
	if c.waiting > 0 && c.live < c.maxStreams && c.window > 0 {
		transport.Notify(c.room) // the signal means room, not a certain waiter: its receiver passes it on
	}
	if err != nil {
		c.mu.Unlock()
	}
	return err
}

func (c *conn) awaitOn(ctx context.Context, signal chan struct{}, meter *driver.Meter) error {
	c.mu.Unlock()
	c.Out.Flush()
	if meter != nil {
		meter.Begin()
		defer meter.End()
	}
	select {
	case <-signal:
	case <-c.Over():
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	return nil
}

// appendData appends n bytes of a message from at on as frames DATA.
func appendData(b []byte, id uint32, parts *[3][]byte, at, n int64, maxFrame int, end bool) []byte {
	for {
		size := min(n, int64(maxFrame))
		h := wire.Head{Length: int(size), Type: wire.FrameData, Stream: id}
		n -= size
		if end && n == 0 {
			h.Flags = wire.FlagEndStream
		}
		b = wire.AppendHead(b, h)
		from := at
		at += size
		for _, part := range parts {
			low, high := min(max(from, 0), int64(len(part))), min(max(from+size, 0), int64(len(part)))
			b = append(b, part[low:high]...)
			from -= int64(len(part))
		}
		if n == 0 {
			return b
		}
	}
}

// drop removes a stream. It is called with the lock.
func (c *conn) drop(s *stream) {
	delete(c.streams, s.id)
	c.live--
	if s.more != nil {
		transport.Notify(s.more)
	}
	if c.waiting > 0 {
		transport.Notify(c.room)
	}
}

// finish ends a call; it does nothing if it has ended.
func (c *conn) finish(s *stream, id uint32, err error) {
	c.mu.Lock()
	if c.streams[id] != s {
		c.mu.Unlock()
		return
	}
	c.drop(s)
	to, arg := s.to, s.arg
	c.mu.Unlock()
	var body []byte
	if err == nil {
		body = s.body
	}
	to.answer(arg, body, err)
	if cap(s.part) > keptBuffer {
		s.part = nil
	}
	if cap(s.body) > keptBuffer {
		s.body = nil
	}
	const most = 1 << 12
	c.mu.Lock()
	if s.more == nil && len(c.spare) < most {
		c.spare = append(c.spare, s)
	}
	c.mu.Unlock()
}

// endCalls ends the matching calls.
func (c *conn) endCalls(err error, match func(*stream) bool) {
	type ended struct {
		to  caller
		arg uint64
	}
	var over []ended
	var ids []uint32
	c.mu.Lock()
	for id, s := range c.streams {
		if match(s) {
			over, ids = append(over, ended{s.to, s.arg}), append(ids, id)
			c.drop(s)
		}
	}
	dead := c.over
	c.mu.Unlock()
	if !dead && len(ids) > 0 {
		_ = c.Put(func(b []byte) []byte {
			for _, id := range ids {
				b = wire.AppendWord(b, wire.FrameReset, id, wire.CodeCancel)
			}
			return b
		})
	}
	for _, e := range over {
		e.to.answer(e.arg, nil, err)
	}
}

// sweep ends overdue calls. It measures their age from the sweep that first saw them, so that a call need not read the
// clock. A call may exceed its limit by twice the interval of sweeps.
func (c *conn) sweep() {
	now := time.Since(c.begin)
	c.mu.Lock()
	overdue := false
	for _, s := range c.streams {
		if s.seen == 0 {
			s.seen = now
		}
		overdue = overdue || now-s.seen >= s.limit
	}
	c.mu.Unlock()
	if overdue {
		c.endCalls(errNoAnswer, func(s *stream) bool { return s.seen > 0 && now-s.seen >= s.limit })
	}
}

// End implements [transport.Shared].
func (c *conn) End(ctx context.Context) {
	c.d.keeper.remove(c)
	c.end()
	c.beats.Wait()
	c.Leave(ctx, func(ctx context.Context) { c.Out.Drain(ctx) })
}

// watch reports the end of the connection, until unwatched.
func (c *conn) watch(notice *transport.Notice) {
	c.mu.Lock()
	c.watching[notice] = true
	over := c.over
	c.mu.Unlock()
	if over {
		notice.End(c.Why())
	}
}

func (c *conn) unwatch(notice *transport.Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watching, notice)
}

// Why returns why the connection has ended, in plain words.
func (c *conn) Why() error { return transport.Explain("", c.Conn.Why()) }

// isOver reports whether err says that ctx has ended.
func isOver(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// result receives a copy of one answer.
type result chan answered

type answered struct {
	body []byte
	err  error
}

func (w result) answer(_ uint64, body []byte, err error) { w <- answered{bytes.Clone(body), err} }

// call makes a call with one answer and waits for it.
func (c *conn) call(ctx context.Context, of *client, call *method, message []byte) ([]byte, error) {
	w := make(result, 1)
	r := &request{of: of, call: call, parts: whole(message), to: w, limit: unlimited}
	if err := c.start(ctx, r); err != nil {
		return nil, err
	}
	select {
	case a := <-w:
		return a.body, a.err
	case <-ctx.Done():
		c.endCalls(errAbandoned, func(s *stream) bool { return s.to == caller(w) })
		a := <-w
		return a.body, a.err
	}
}

// whole makes the parts of a request of a message without its prefix.
func whole(message []byte) (parts [3][]byte) {
	parts[0], parts[1] = wire.AppendPrefix(nil, len(message)), message
	return parts
}
