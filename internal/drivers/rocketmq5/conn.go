package rocketmq5

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq5"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	// connWindow bounds the bytes that the proxy may send ahead of our reading. Our memory is bounded by the sizes and
	// numbers of the messages that answer a call: streams have no windows of their own.
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
	take(body []byte) error
}

// stream is a call that has not ended.
type stream struct {
	id    uint32
	to    caller
	many  streamer // to, if it takes answers as they come; else nil
	arg   uint64
	limit time.Duration
	seen  time.Duration // when a look first saw it, since the connection was made; 0: not yet
	// window is the number of bytes that we may send.
	window int64

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
	frames  *http2.Framer
	headers *wire.Headers
	taken   int // bytes of DATA since the last WINDOW_UPDATE

	mu         sync.Mutex
	streams    map[uint32]*stream
	live       int   // streams, with those about to be opened
	window     int64 // bytes that we may send
	initial    int64 // of a stream
	maxStreams int
	maxFrame   int
	over       bool
	changed    chan struct{} // closed when a window opens or a call ends; nil: nobody waits
	clients    map[*client]bool

	life         context.Context // ends with the connection's use
	end          context.CancelFunc
	looks        *time.Timer   // nil before the first, and at the end
	beatAt, idAt time.Duration // since the connection was made
	beats        sync.WaitGroup
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
		maxFrame: wire.LeastMaxFrame, clients: map[*client]bool{},
	}
	if d.cfg.Target.TLS {
		c.scheme = "https"
	}
	c.frames = http2.NewFramer(nil, c.In)
	c.frames.SetMaxReadFrameSize(wire.LeastMaxFrame)
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
	out := bytes.NewBuffer(append(b, http2.ClientPreface...))
	framer := http2.NewFramer(out, nil)
	_ = framer.WriteSettings([]http2.Setting{
		{ID: http2.SettingEnablePush},
		{ID: http2.SettingInitialWindowSize, Val: wire.MaxWindow},
		{ID: http2.SettingMaxHeaderListSize, Val: wire.MaxHeaders},
	}...)
	_ = framer.WriteWindowUpdate(0, connWindow-wire.DefaultWindow)
	c.identify()
	c.Out.Unlock(out.Bytes(), false)
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
	b = wire.AppendHead(b, len(fields)+len(of.header), http2.FrameHeaders, http2.FlagHeadersEndHeaders, id)
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

// start makes a call, once there is permission and room; one that is larger than the windows leaves as they open. If it
// returns an error, the proxy does not have the whole request, and the caller gets no answer.
func (c *conn) start(ctx context.Context, r *request) error {
	total := int64(len(r.parts[0]) + len(r.parts[1]) + len(r.parts[2]))
	var s *stream
	var id uint32
	for at := int64(0); s == nil || at < total; {
		c.mu.Lock()
		for c.goesOn(s, id) && (c.window <= 0 || s == nil && c.live >= c.maxStreams || s != nil && s.window <= 0) {
			if err := c.await(ctx, r.credit); err != nil {
				return c.abandon(ctx, s, id, err)
			}
		}
		if !c.goesOn(s, id) {
			c.mu.Unlock()
			if s == nil {
				return c.Why()
			}
			return nil // its caller gets the reason, or has got an answer
		}
		n := min(total-at, c.window)
		if s == nil {
			n = min(n, max(c.initial, 0))
			c.live++
		} else {
			n = min(n, s.window)
			s.window -= n
		}
		c.window -= n
		c.mu.Unlock()
		b, err := c.Out.Lock(ctx, r.socket)
		if err != nil {
			if s == nil {
				c.mu.Lock()
				c.window += n
				c.live--
				c.mu.Unlock()
			}
			return c.abandon(ctx, s, id, err)
		}
		c.mu.Lock()
		maxFrame := c.maxFrame
		if s == nil {
			if c.over || c.nextID > lastStream {
				c.mu.Unlock()
				c.Out.Unlock(b, false)
				c.Fail(driver.Errorf(driver.ClassConnectionLost, "", "give --reconnect, or share connections less",
					"all stream numbers of the connection are used up"))
				return c.Why()
			}
			s, id = c.newStream(r, c.initial-n), c.nextID
			c.nextID += 2
			b = c.appendHead(b, id, r.call, r.of)
		}
		c.mu.Unlock()
		b = appendData(b, id, &r.parts, at, n, maxFrame, !r.open && at+n == total)
		at += n
		c.Out.Unlock(b, r.more && at == total)
	}
	return nil
}

// goesOn reports whether a call may go on, or begin if there is no stream yet. It is called with the lock.
func (c *conn) goesOn(s *stream, id uint32) bool {
	return !c.Dead() && (s == nil || c.streams[id] == s)
}

// newStream registers a stream. It is called with both locks.
func (c *conn) newStream(r *request, window int64) *stream {
	s, ok := c.d.spare.Get().(*stream)
	if !ok {
		s = &stream{}
	}
	*s = stream{
		id: c.nextID, to: r.to, arg: r.arg, limit: r.limit, window: window, part: s.part[:0], body: s.body[:0],
	}
	s.many, _ = r.to.(streamer)
	c.streams[s.id] = s
	return s
}

// abandon ends a call that cannot be made, without a word to its caller, and returns err; nil if the caller gets to
// know the end of the call.
func (c *conn) abandon(ctx context.Context, s *stream, id uint32, err error) error {
	if s == nil {
		return err
	}
	c.mu.Lock()
	mine := ctx.Err() != nil && c.streams[id] == s
	if mine {
		c.drop(s)
	}
	c.mu.Unlock()
	if !mine {
		return nil
	}
	_ = c.Put(func(b []byte) []byte {
		return wire.AppendWord(b, http2.FrameRSTStream, id, uint32(http2.ErrCodeCancel))
	})
	return err
}

// await waits until there may be room. It is called with the lock, and returns with it unless there is an error.
func (c *conn) await(ctx context.Context, meter *driver.Meter) error {
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	changed := c.changed
	c.mu.Unlock()
	c.Out.Flush()
	if meter != nil {
		meter.Begin()
		defer meter.End()
	}
	select {
	case <-changed:
	case <-c.Over():
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	return nil
}

// wake lets all that wait for room look again. It is called with the lock.
func (c *conn) wake() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// appendData appends n bytes of a message from at on as frames DATA.
func appendData(b []byte, id uint32, parts *[3][]byte, at, n int64, maxFrame int, end bool) []byte {
	for {
		size := min(n, int64(maxFrame))
		flags := http2.Flags(0)
		if n -= size; end && n == 0 {
			flags = http2.FlagDataEndStream
		}
		b = wire.AppendHead(b, int(size), http2.FrameData, flags, id)
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
	c.wake()
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
	if cap(s.part)+cap(s.body) <= keptBuffer {
		c.d.spare.Put(s)
	}
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
				b = wire.AppendWord(b, http2.FrameRSTStream, id, uint32(http2.ErrCodeCancel))
			}
			return b
		})
	}
	for _, e := range over {
		e.to.answer(e.arg, nil, err)
	}
}

// look does what is due from time to time, and waits for nothing. It ends overdue calls, whose age it measures from the
// look that first saw them, so that a call need not read the clock: a call may exceed its limit by twice the interval.
func (c *conn) look() {
	now := time.Since(c.begin)
	c.mu.Lock()
	if c.looks == nil || c.over {
		c.mu.Unlock()
		return
	}
	if now >= c.beatAt {
		c.beatAt = now + heartbeatEvery
		if len(c.clients) > 0 {
			c.beats.Go(c.beatAll)
		}
	}
	overdue, identify := false, now >= c.idAt
	if identify {
		c.idAt = now + identifyEvery
	}
	for _, s := range c.streams {
		if s.seen == 0 {
			s.seen = now
		}
		overdue = overdue || now-s.seen >= s.limit
	}
	c.looks.Reset(max(lookEvery, time.Duration(c.d.conns.Load())*lookPause))
	c.mu.Unlock()
	if overdue {
		c.endCalls(errNoAnswer, func(s *stream) bool { return s.seen > 0 && now-s.seen >= s.limit })
	}
	if identify {
		_ = c.Gather(func(b []byte) []byte {
			c.identify()
			return b
		})
	}
}

// beatAll sends the heartbeats of all clients. A proxy that does not answer in time counts as lost.
func (c *conn) beatAll() {
	ctx, cancel := context.WithTimeout(c.life, heartbeatLimit)
	defer cancel()
	c.mu.Lock()
	clients := slices.Collect(maps.Keys(c.clients))
	c.mu.Unlock()
	for _, l := range clients {
		if err := l.beat(ctx, ""); err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.Fail(driver.Errorf(driver.ClassConnectionLost, "", "the proxy, or the network, hangs",
				"no answer to a heartbeat within %s", heartbeatLimit))
			return
		}
	}
}

// End implements [transport.Shared].
func (c *conn) End(ctx context.Context) {
	c.d.conns.Add(-1)
	c.mu.Lock()
	c.looks.Stop()
	c.looks = nil
	c.mu.Unlock()
	c.end()
	c.beats.Wait()
	c.Leave(ctx, func(ctx context.Context) { c.Out.Drain(ctx) })
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

// whole makes the parts of a request of a message without its prefix.
func whole(message []byte) (parts [3][]byte) {
	parts[0], parts[1] = wire.AppendPrefix(nil, len(message)), message
	return parts
}
