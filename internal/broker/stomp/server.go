package stomp

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

const (
	defaultMaxMessage = 64 << 20
	// connectTimeout bounds the wait for CONNECT.
	connectTimeout = 10 * time.Second
	// closeTimeout bounds the write of the last frame, and then the wait for the client to close first.
	closeTimeout = time.Second

	// The bounds of a frame without its body.
	maxHeaders = 500      // lines
	maxHead    = 64 << 10 // bytes of all header lines

	readBuffer = 64 << 10
	keepBuffer = 1 << 20 // larger buffers are not kept
)

// Server is the STOMP front-end of a store. Only Store is required.
type Server struct {
	Store *store.Store
	// Authenticate checks a user and a password, empty if the client gives none; nil accepts everyone.
	Authenticate func(user, password string) bool
	// MaxMessage is the size of the largest body in bytes; 0 means 64 MiB.
	MaxMessage int
}

// conn is a connection. The goroutine of Serve, the reader, reads and executes frames; another one, the writer,
// delivers messages and writes.
type conn struct {
	server  *Server
	net     net.Conn
	source  uint64
	account *store.Account

	// Of the reader.
	in           *wire.Reader
	headers      []wire.Field // the message's headers of a SEND frame
	connected    bool
	disconnected bool          // after DISCONNECT
	silence      time.Duration // the longest of the client; 0 for no limit
	clientID     string
	replies      []byte                        // frames for the writer, handed over before the reader blocks
	known        map[string]*store.Destination // by header, with its escapes
	subs         map[uint64]*subscription
	byID         map[string]*subscription
	serial       uint64 // of the next subscription
	txs          map[string]*store.Transaction
	temporaries  map[string]*store.Destination // by the client's names

	gate store.Gate

	done    chan struct{} // closed at the end of the connection
	close   func()        // closes it
	wake    chan struct{} // one token: the writer has work
	drained chan struct{} // one token: the writer has taken out

	mu      sync.Mutex
	out     []byte          // frames to be written
	ready   []*subscription // may have messages to deliver
	beats   time.Duration   // the longest silence of ours; 0 for no limit
	closing bool            // the writer ends after the rest of out

	// Of the writer.
	buf    []byte
	wrote  time.Time       // the last write
	active []*subscription // may have more messages to deliver
	batch  [takeBatch]store.Delivery
}

// Serve serves one connection until it ends, and closes it. No goroutine is left when it returns.
func (s Server) Serve(nc net.Conn) {
	s.MaxMessage = cmp.Or(s.MaxMessage, defaultMaxMessage)
	c := &conn{
		server: &s, net: nc, source: s.Store.NewSource(), account: s.Store.NewAccount(), silence: connectTimeout,
		known: map[string]*store.Destination{}, subs: map[uint64]*subscription{}, byID: map[string]*subscription{},
		txs: map[string]*store.Transaction{}, temporaries: map[string]*store.Destination{},
		done: make(chan struct{}), wake: make(chan struct{}, 1), drained: make(chan struct{}, 1),
	}
	c.close = sync.OnceFunc(func() {
		close(c.done)
		_ = c.net.Close()
	})
	c.gate.Conn, c.gate.Done, c.gate.Write = c.net, c.done, c.write
	c.in = wire.NewReader(bufio.NewReaderSize(c, readBuffer), maxHead, maxHead)
	c.in.MaxLines, c.in.Memory, c.in.Keep = maxHeaders, c.memory, keepBuffer
	var writing sync.WaitGroup
	writing.Go(c.serve)
	linger := c.end(c.read())
	writing.Wait()
	if linger {
		store.Linger(c.net, closeTimeout)
	}
	c.close()
	c.account.End()
}

// read handles frames until the connection ends.
func (c *conn) read() error {
	for !c.disconnected {
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

// readError turns mistakes of the client into refusals.
func readError(err error) error {
	switch {
	case errors.Is(err, wire.ErrSyntax), errors.As(err, new(*wire.TooLargeError)):
		return refuse("%s", err)
	case errors.Is(err, wire.ErrMemory):
		return refuse("limit reached: %s", store.ErrNoMemory)
	}
	return err
}

// memory accounts for the memory of a large frame.
func (c *conn) memory(bytes int) bool {
	if bytes > 0 {
		return c.account.Take(int64(bytes))
	}
	c.account.Give(int64(-bytes))
	return true
}

// end closes the consumers, and lets the writer finish. It returns whether to wait for the client to close first.
func (c *conn) end(err error) (linger bool) {
	var refused *refusal
	if errors.As(err, &refused) {
		c.replies = refused.append(c.replies)
	}
	for _, s := range c.subs {
		s.close(!c.disconnected) // without DISCONNECT, the client may have processed unacknowledged messages
	}
	for _, d := range c.temporaries {
		d.Delete()
	}
	_ = c.net.SetWriteDeadline(time.Now().Add(closeTimeout))
	c.mu.Lock()
	c.closing = true
	c.out = append(c.out, c.replies...)
	c.mu.Unlock()
	c.wakeWriter()
	return c.disconnected || refused != nil
}

func (c *conn) write(frames []byte) {
	c.mu.Lock()
	c.out = append(c.out, frames...)
	c.mu.Unlock()
	c.wakeWriter()
}

func (c *conn) wakeWriter() { store.Signal(c.wake) }

// Read hands the replies to the writer before it blocks. A client that is silent for too long has ended.
func (c *conn) Read(b []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	var deadline time.Time
	if c.silence > 0 {
		deadline = time.Now().Add(c.silence)
	}
	_ = c.net.SetReadDeadline(deadline) // fails only on a closed connection
	return c.net.Read(b)
}

// refusal is an error for the client: an ERROR frame, and the end of the connection.
type refusal struct {
	text    string
	receipt []byte // of the frame, with its escapes
	headers string // more header lines
}

func (r *refusal) Error() string { return r.text }

func refuse(format string, args ...any) *refusal {
	return &refusal{text: fmt.Sprintf(format, args...)}
}

// missing is the refusal of a frame that lacks a header.
func missing(header string) *refusal { return refuse("no header %s", header) }

// invalid is the refusal of the value of a header.
func invalid(header string, value []byte) *refusal {
	return refuse("invalid header: %s:%.40q", header, value)
}

// append appends the ERROR frame.
func (r *refusal) append(b []byte) []byte {
	b = append(wire.AppendHeader(append(b, "ERROR\n"...), "message", r.text), r.headers...)
	if r.receipt != nil {
		b = append(append(append(b, "receipt-id:"...), r.receipt...), '\n')
	}
	b = append(b, "content-type:text/plain\ncontent-length:"...)
	b = fmt.Appendf(b, "%d\n\n%s", len(r.text), r.text)
	return append(b, 0)
}
