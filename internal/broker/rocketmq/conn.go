package rocketmq

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/gate"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

const (
	// headRoom is how much larger than a message's body a frame may be.
	headRoom = 1 << 20
	// largestFrame is how large frames may be at least, that of their length included, as in RocketMQ: what is larger
	// than a message may be is read, to be refused with an answer.
	largestFrame = wire.MaxFrame
	inSize       = 64 << 10
	// handOver is how many bytes of answers the reader gathers before it gives them to the writer.
	handOver = 64 << 10
	// fewBytes is how many bytes of answers the reader writes itself.
	fewBytes = 4 << 10
	// outLimit is how many bytes may wait to be written before the reader stops reading.
	outLimit = 4 << 20
	// keptBuffer is the largest buffer that is kept while there is no use for it.
	keptBuffer = 1 << 20
	// slowDown is how long the reader of a connection with consumers waits, per message, for a destination to have
	// room.
	slowDown = time.Millisecond
)

// conn is a connection. One goroutine reads requests and answers most of them, gathering the answers as long as there
// is more to read. Another one writes, and answers pulls, straight into its buffer.
type conn struct {
	s       *Server
	nc      net.Conn
	account *store.Account
	source  uint64
	born    host // the client
	host    host // we
	addr    string
	wake    chan struct{}
	done    chan struct{}
	once    sync.Once
	gate    gate.Gate

	// Only the reader uses these.
	req       wire.Frame
	w         wire.Writer   // answers, in the codec of the request
	pulls     []*pull       // new ones
	topic     *topic        // the one that was last sent to
	brought   *subscription // that of the last pull that brought one along
	signer    *wire.Signer  // of the last access key
	signerKey string
	joined    map[membership]bool
	consumes  bool            // it has, or had, consumers
	leads     map[string]bool // groups of producers

	livePulls atomic.Int64 // that are not answered

	mu      sync.Mutex
	dead    bool
	writing bool // a goroutine is
	out     []byte
	waiting []*pull       // to be answered, or to be held
	left    []*group      // groups that the client has left
	drained chan struct{} // closed when out was taken, if a goroutine waits for it
	codec   wire.Codec    // of the client's requests
	limited time.Time     // when the time limit of writes was set; of the writing goroutine

	// Only the writer uses these.
	held    map[*pull]bool
	batch   []entry
	written wire.Writer // changes places with out
	serving []*pull     // changes places with waiting
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		s: s, nc: nc, account: s.store.NewAccount(), source: s.store.NewSource(), born: hostOf(nc.RemoteAddr()),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		addr: nc.LocalAddr().String(), host: hostOf(nc.LocalAddr()),
		brought: &subscription{}, joined: map[membership]bool{}, leads: map[string]bool{}, held: map[*pull]bool{},
	}
	c.gate.Conn, c.gate.Done, c.gate.Write = nc, c.done, c.answer
	return c
}

func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		_ = c.nc.Close()
	})
}

func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// read handles requests until the connection ends.
func (c *conn) read() error {
	in := make([]byte, inSize)
	from, to := 0, 0 // its contents are buf[r:w] and was not handled
	maxFrame := max(c.s.o.MaxMessage+headRoom, largestFrame-4)
	hears := true // it has said something that is complete since its time was limited
	most := greetTimeout
	var set time.Time
	for {
		for to-from >= 4 {
			n := int(binary.BigEndian.Uint32(in[from:]))
			if n < wire.MinFrame || n > maxFrame {
				c.s.brokenFrames.Add(1)
				return wire.ErrFrame
			}
			if to-from < 4+n {
				break
			}
			if err := c.frame(in[from+4 : from+4+n]); err != nil {
				if errors.Is(err, wire.ErrFrame) {
					c.s.brokenFrames.Add(1)
				}
				return c.ended(err)
			}
			from += 4 + n
			if hears = true; most != idleTimeout {
				most, set = idleTimeout, time.Time{}
			}
		}
		if err := c.handOver(); err != nil {
			return c.ended(err)
		}
		if from == to && len(in) > keptBuffer {
			c.account.Give(int64(len(in) - inSize)) // that of the first size counts with the connection
			in, from, to = make([]byte, inSize), 0, 0
		}
		if from > 0 {
			to = copy(in, in[from:to])
			from = 0
		}
		if to == len(in) {
			if !c.account.Take(int64(len(in))) {
				return store.ErrNoMemory
			}
			in = append(in, make([]byte, len(in))...)
		}
		if now := time.Now(); hears && now.Sub(set) > idleTimeout/8 || set.IsZero() {
			_ = c.nc.SetReadDeadline(now.Add(most)) // it fails only when the connection was closed
			hears, set = false, now
		}
		n, err := c.nc.Read(in[to:])
		to += n
		if n == 0 && err != nil {
			return c.ended(err)
		}
	}
}

const (
	// greetTimeout is how long a client may take for its first request.
	greetTimeout = 10 * time.Second
	// idleTimeout ends connections over which nothing has come for so long. Clients send a heartbeat every 30 s.
	idleTimeout = 2 * time.Minute
)

// errClosed says that the connection was closed by us.
var errClosed = errors.New("the connection was closed")

// ended returns nil for an orderly end.
func (c *conn) ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, errClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	select {
	case <-c.done:
		return nil
	default:
		return err
	}
}

// frame handles a frame without its length.
func (c *conn) frame(b []byte) error {
	if err := c.req.Parse(b); err != nil {
		return err
	}
	if err := c.pauseInStall(); err != nil {
		return err
	}
	if c.req.Flag&wire.FlagAnswer != 0 {
		return nil // to a question of ours, none of which need an answer
	}
	if c.codec != c.req.Codec {
		c.mu.Lock()
		c.codec = c.req.Codec
		c.mu.Unlock()
	}
	before := len(c.w.B)
	if err := c.dispatch(&c.req); err != nil {
		return err
	}
	if c.req.Flag&wire.FlagOneWay != 0 {
		c.w.B = c.w.B[:min(before, len(c.w.B))]
	}
	if len(c.w.B) >= handOver {
		return c.handOver()
	}
	return nil
}

// pauseInStall hands over the answers, and waits, while the broker stalls.
func (c *conn) pauseInStall() error {
	if c.s.store.Stalled() == nil {
		return nil
	}
	if err := c.handOver(); err != nil {
		return err
	}
	if !c.awaitStall() {
		return errClosed
	}
	return nil
}

// awaitStall waits for the end of a stall of the broker; false at the end of the connection.
func (c *conn) awaitStall() bool {
	for over := c.s.store.Stalled(); over != nil; over = c.s.store.Stalled() {
		select {
		case <-over:
		case <-c.done:
			return false
		}
	}
	return true
}
