package stomp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/gate"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// Options are the settings of a [Server]. The zero value is usable.
type Options struct {
	// Authenticate tells whether to let in a user with a password, which are empty if the client gives none. If it is
	// nil accepts anyone.
	Authenticate func(user, password string) bool
	// MaxMessage is the size of the largest body in bytes; 0 means 64 MiB.
	MaxMessage int
	// IdleTimeout ends connections that have sent nothing for so long, unless they agreed on heart-beats; 0 means
	// never. One that has not sent CONNECT ends after it as well, or after 10 s if that is less.
	IdleTimeout time.Duration
}

const (
	defaultMaxMessage = 64 << 20
	connectTimeout    = 10 * time.Second
	// farewell bounds the time in which the last frame is written, and after it that in which the client may close
	// first.
	farewell = time.Second

	// The bounds of a frame, beside the size of its body.
	maxHeaders = 500      // lines
	maxHead    = 64 << 10 // bytes of all header lines

	readBuffer  = 64 << 10
	largeBuffer = 1 << 20 // larger buffers are not kept
)

// Server is the STOMP front-end of a store. It is safe for concurrent use.
type Server struct {
	store *store.Store
	opts  Options
}

// New returns a front-end for s.
func New(s *store.Store, o Options) *Server {
	if o.MaxMessage <= 0 {
		o.MaxMessage = defaultMaxMessage
	}
	return &Server{store: s, opts: o}
}

// conn is a connection. The goroutine of Serve reads and executes the frames; another one, the writer,
// delivers messages and writes.
type conn struct {
	server  *Server
	net     net.Conn
	source  uint64
	account *store.Account

	// Of the reader.
	in        *wire.Reader
	kept      []wire.Field // of the headers of a SEND frame: those of its message
	version   wire.Version
	connected bool
	clientID  string
	replies   []byte // frames to be handed to the writer when the input is used up
	addresses addresses
	subs      map[uint64]*subscription
	byID      map[string]*subscription
	serial    uint64 // of the next subscription
	txs       map[string]*transaction
	txBytes   int // in all transactions
	leaving   bool

	gate gate.Gate

	done    chan struct{} // closed when the connection is of no more use
	wake    chan struct{} // there is something for the writer
	drained chan struct{} // the writer has taken over out

	mu      sync.Mutex
	out     []byte          // frames to be written
	ready   []*subscription // may have something to deliver
	beat    bool            // a heart-beat is due
	closing bool            // the writer is to write the rest, and end
	cause   error           // why the connection broke

	pulse pulse
	heard atomic.Uint64 // reads that have returned
	quiet atomic.Bool   // the reader waits for the network
	wrote atomic.Uint64 // writes
}

// Serve serves one connection until it ends or ctx is done, and closes it. It returns nil if the client took its
// leave by DISCONNECT, or closed the connection between two frames. When it returns nothing of the connection is left.
func (s *Server) Serve(ctx context.Context, nc net.Conn) error {
	c := &conn{
		server: s, net: nc, source: s.store.NewSource(), account: s.store.NewAccount(), version: wire.V10,
		subs: map[uint64]*subscription{}, byID: map[string]*subscription{}, txs: map[string]*transaction{},
		done: make(chan struct{}), wake: make(chan struct{}, 1), drained: make(chan struct{}, 1),
	}
	c.gate.Conn, c.gate.Done, c.gate.Write = nc, c.done, c.write
	c.in = wire.NewReader(bufio.NewReaderSize((*listener)(c), readBuffer), maxHead, maxHead)
	c.in.MaxLines, c.in.Memory, c.in.Keep = maxHeaders, c.memory, largeBuffer
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.breakOff(context.Cause(ctx))
		close(stopped)
	})
	var writing sync.WaitGroup
	writing.Go(c.serve)
	limit := connectTimeout
	if t := s.opts.IdleTimeout; t > 0 {
		limit = min(limit, t)
	}
	c.pulse.start(c, 0, limit)
	err, linger := c.end(c.read())
	writing.Wait()
	if linger {
		gate.Linger(c.net, farewell)
	}
	c.pulse.stop()
	c.breakOff(net.ErrClosed)
	if !stop() {
		<-stopped
	}
	c.release()
	return err
}

// release lets go of the connection's memory: a full queue may know it for a while longer, to tell it of
// room.
func (c *conn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in, c.addresses, c.subs, c.byID, c.txs = nil, addresses{}, nil, nil, nil
	c.kept, c.replies, c.out, c.ready = nil, nil, nil, nil
	c.account.End()
}

// read handles frames until the connection ends.
func (c *conn) read() error {
	for !c.leaving {
		f, err := c.in.Next()
		if err != nil {
			return readError(err)
		}
		if err := c.handle(f); err != nil {
			return err
		}
	}
	return nil
}

// readError tells what the client is to be told of.
func readError(err error) error {
	var large *wire.TooLargeError
	switch {
	case errors.Is(err, wire.ErrSyntax), errors.As(err, &large):
		return refuse("%s", err)
	case errors.Is(err, wire.ErrMemory):
		return refuse("limit reached: %s", store.ErrNoMemory)
	}
	return err
}

// memory counts that for a large frame against the broker's.
func (c *conn) memory(bytes int) bool {
	if bytes > 0 {
		return c.account.Take(int64(bytes))
	}
	c.account.Give(int64(-bytes))
	return true
}

// end gives back the messages that the consumers hold, and lets the writer finish. It returns the error to report, if
// any, and whether to wait for the client to close first.
func (c *conn) end(err error) (report error, linger bool) {
	var told *refusal
	if errors.As(err, &told) {
		c.replies = told.append(c.replies, c.version)
	}
	for _, s := range c.subs {
		s.close(!c.leaving) // a client without a DISCONNECT may have seen messages that it did not acknowledge
	}
	_ = c.net.SetWriteDeadline(time.Now().Add(farewell))
	c.mu.Lock()
	if c.cause != nil {
		err = c.cause
	}
	c.closing = true
	c.out = append(c.out, c.replies...)
	c.mu.Unlock()
	c.signal()
	if linger = c.leaving || told != nil; err == nil || errors.Is(err, io.EOF) { // within a frame it is another one
		return nil, linger
	}
	return fmt.Errorf("STOMP connection of %s: %w", c.net.RemoteAddr(), err), linger
}

// breakOff closes the connection for a reason. Only the first counts.
func (c *conn) breakOff(cause error) {
	c.mu.Lock()
	first := c.cause == nil
	if first {
		c.cause = cause
		c.closing = true
		close(c.done)
	}
	c.mu.Unlock()
	if first {
		_ = c.net.Close()
		c.signal()
	}
}

// write hands frames to the writer.
func (c *conn) write(frames []byte) {
	c.mu.Lock()
	c.out = append(c.out, frames...)
	c.mu.Unlock()
	c.signal()
}

// signal wakes the writer.
func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// listener is the input of a connection: it lets the replies go before it waits, and notes when something was heard.
type listener conn

func (l *listener) Read(b []byte) (int, error) {
	if err := (*conn)(l).flush(); err != nil {
		return 0, err
	}
	l.quiet.Store(true)
	n, err := l.net.Read(b)
	l.quiet.Store(false)
	l.heard.Add(1)
	return n, err
}

// refusal is why a frame was not done, as the client is told before the connection ends.
type refusal struct {
	words   string
	receipt []byte // of the frame, with its escapes
	headers string // more header lines
}

// Error implements error.
func (r *refusal) Error() string { return r.words }

func refuse(format string, args ...any) *refusal {
	return &refusal{words: fmt.Sprintf(format, args...)}
}

// append appends the ERROR frame.
func (r *refusal) append(b []byte, v wire.Version) []byte {
	b = append(v.AppendHeader(append(b, "ERROR\n"...), "message", r.words), r.headers...)
	if r.receipt != nil {
		b = append(append(append(b, "receipt-id:"...), r.receipt...), '\n')
	}
	b = append(b, "content-type:text/plain\ncontent-length:"...)
	b = fmt.Appendf(b, "%d\n\n%s", len(r.words), r.words)
	return append(b, 0)
}
