package rocketmq

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

const (
	// headRoom is the part of a frame beside the body, in bytes.
	headRoom = 1 << 20
	// largestFrame is the least bound of frames, with their length, as in RocketMQ: a too large message is read and
	// refused with an answer.
	largestFrame = wire.MaxFrame
	readBuffer   = 64 << 10
	// flushAt is the size of answers, in bytes, at which the reader hands them to the writer.
	flushAt = 64 << 10
	// maxOut is the unwritten output, in bytes, above which the connection is not read.
	maxOut = 4 << 20
	// keepBuffer is the largest buffer kept while unused.
	keepBuffer = 1 << 20
	// slowDown bounds the wait for room, per message, on a connection with consumers.
	slowDown = time.Millisecond
)

// conn is a connection. The reader answers most requests, and gathers the answers while there is input. The writer
// writes them, and answers pulls directly into its buffer.
type conn struct {
	s       *Server
	nc      net.Conn
	account *store.Account
	source  uint64
	born    [8]byte // the client's address
	host    [8]byte // ours
	addr    string
	wake    chan struct{} // one token: the writer has work
	drained chan struct{} // one token: the writer has taken out
	done    chan struct{}
	close   func()
	gate    store.Gate

	// The reader's.
	req            wire.Frame
	large          []byte        // a frame that does not fit the buffer
	deadline       time.Time     // of reading
	asked          bool          // a complete frame came since the deadline was set
	w              wire.Writer   // answers
	pulls          []*pull       // new ones
	topic          *topic        // of the last send
	pullSub        *subscription // of the last pull with a subscription
	signer         *wire.Signer  // nil accepts everyone
	members        map[member]bool
	consumes       bool // has, or had, consumers
	producerGroups map[string]bool
	clientID       string // of the last heartbeat with producers

	openPulls atomic.Int64 // unanswered ones

	mu      sync.Mutex
	dead    bool
	out     []byte
	waiting []*pull  // to be answered or held
	left    []*group // groups left by the client

	// The writer's.
	held     map[*pull]bool
	batch    []entry
	written  wire.Writer // exchanged with out
	serving  []*pull     // exchanged with waiting
	extended time.Time   // when the write deadline was set
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{
		s: s, nc: nc, account: s.store.NewAccount(), source: s.store.NewSource(), born: hostOf(nc.RemoteAddr()),
		wake: make(chan struct{}, 1), drained: make(chan struct{}, 1), done: make(chan struct{}),
		addr: nc.LocalAddr().String(), host: hostOf(nc.LocalAddr()),
		pullSub: &subscription{}, members: map[member]bool{}, producerGroups: map[string]bool{},
		held: map[*pull]bool{}, signer: wire.NewSigner(s.o.AccessKey, s.o.SecretKey),
	}
	c.close = sync.OnceFunc(func() {
		close(c.done)
		_ = c.nc.Close()
	})
	c.gate.Conn, c.gate.Done, c.gate.Write = c.nc, c.done, c.answer
	return c
}

func (c *conn) wakeWriter() { store.Signal(c.wake) }

// read handles requests until the connection ends.
func (c *conn) read() error {
	in := bufio.NewReaderSize(c, readBuffer)
	maxFrame := max(c.s.o.MaxMessage+headRoom, largestFrame-4)
	for {
		head, err := in.Peek(4)
		if err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(head))
		if n < wire.MinFrame || n > maxFrame {
			return wire.ErrFrame
		}
		if 4+n <= readBuffer {
			b, err := in.Peek(4 + n)
			if err == nil {
				err = c.frame(b[4:])
			}
			if err != nil {
				return err
			}
			_, _ = in.Discard(4 + n) // they are in the buffer
			continue
		}
		_, _ = in.Discard(4)
		if err := c.largeFrame(in, n); err != nil {
			return err
		}
	}
}

// largeFrame handles a frame of n bytes that does not fit the buffer. Its memory grows as the bytes arrive.
func (c *conn) largeFrame(in io.Reader, n int) error {
	b := c.large[:0]
	for len(b) < n {
		have := len(b)
		if more := max(have, readBuffer); have == cap(b) {
			if !c.account.Take(int64(more)) {
				return store.ErrNoMemory
			}
			b = append(make([]byte, 0, have+more), b...)
		}
		b = b[:min(n, cap(b))]
		if _, err := io.ReadFull(in, b[have:]); err != nil {
			return err
		}
	}
	if c.large = b; cap(b) > keepBuffer {
		defer c.account.Give(int64(cap(b)))
		c.large = nil
	}
	return c.frame(b)
}

// Read hands the answers to the writer before it blocks. A request must be complete before the deadline.
func (c *conn) Read(b []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	now := time.Now()
	switch {
	case c.deadline.IsZero():
		c.deadline = now.Add(firstTimeout)
	case c.asked && c.deadline.Sub(now) < idleTimeout*7/8:
		c.deadline, c.asked = now.Add(idleTimeout), false
	default:
		return c.nc.Read(b)
	}
	_ = c.nc.SetReadDeadline(c.deadline) // fails only on a closed connection
	return c.nc.Read(b)
}

const (
	// firstTimeout bounds the wait for the first request.
	firstTimeout = 10 * time.Second
	// idleTimeout ends silent connections. Clients send a heartbeat every 30 s.
	idleTimeout = 2 * time.Minute
)

// frame handles a frame without its length.
func (c *conn) frame(b []byte) error {
	if err := c.req.Parse(b); err != nil {
		return err
	}
	c.asked = true
	if err := c.s.store.AwaitStall(c.done, c.flush); err != nil {
		return err
	}
	if c.req.Flag&wire.FlagAnswer != 0 {
		return nil // our requests need no answer
	}
	before := len(c.w.B)
	if err := c.dispatch(&c.req); err != nil {
		return err
	}
	if c.req.Flag&wire.FlagOneWay != 0 {
		c.w.B = c.w.B[:min(before, len(c.w.B))]
	}
	if len(c.w.B) >= flushAt {
		return c.flush()
	}
	return nil
}

// flush hands the gathered frames to the writer, and waits while the unwritten output exceeds maxOut.
func (c *conn) flush() error {
	if len(c.w.B) == 0 && len(c.pulls) == 0 {
		return nil
	}
	c.mu.Lock()
	c.out = append(c.out, c.w.B...)
	c.w.B = c.w.B[:0]
	c.waiting = append(c.waiting, c.pulls...)
	c.pulls = c.pulls[:0]
	behind := len(c.out) > maxOut
	c.mu.Unlock()
	c.wakeWriter()
	if !behind {
		return nil
	}
	return store.AwaitWriter(&c.mu, &c.out, maxOut, c.drained, c.done)
}

// push sends a frame of our own. It returns false, and sends nothing, if the client does not read or has gone.
func (c *conn) push(build func(w *wire.Writer)) (sent bool) {
	c.forWriter(func() {
		if sent = len(c.out) < maxOut; sent {
			w := wire.Writer{B: c.out}
			build(&w)
			c.out = w.B
		}
	})
	return sent
}

// forWriter changes the output under the lock, unless the connection has ended, and wakes the writer.
func (c *conn) forWriter(change func()) {
	c.mu.Lock()
	if !c.dead {
		change()
	}
	c.mu.Unlock()
	c.wakeWriter()
}

// ready puts a pull on the writer's list. The goroutine that stores a message calls it.
func (c *conn) ready(p *pull) { c.forWriter(func() { c.waiting = append(c.waiting, p) }) }

// awaitRoom waits for room at the destination. It only slows down a connection with consumers, as commits behind the
// sent messages make room: the destination then exceeds its limit.
func (c *conn) awaitRoom(d *store.Destination) error {
	if err := c.flush(); err != nil {
		return err
	}
	var timeout <-chan time.Time
	if c.consumes {
		timeout = time.After(slowDown)
	}
	return c.gate.Await(d, timeout)
}

// answer hands frames to the writer.
func (c *conn) answer(frames []byte) { c.forWriter(func() { c.out = append(c.out, frames...) }) }

// release ends the pulls, memberships and reservations of the connection, after its goroutines have ended.
func (c *conn) release() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
	for p := range c.held {
		p.timer.Stop()
		p.q.forget(p)
	}
	c.s.count(func(n *Stats) { n.HeldPulls -= len(c.held) })
	for m := range c.members {
		c.leaveGroup(m)
	}
	for name := range c.producerGroups {
		c.removeProducer(name)
	}
	c.setClient("")
	c.account.End()
}

// handlers answer requests; an error ends the connection. The second part is of a name server, and administration.
//
//nolint:gochecknoglobals // a table that never changes
var handlers = map[int]func(*conn, *wire.Frame) error{
	wire.ReqSendMessage:            (*conn).send,
	wire.ReqSendMessageV2:          (*conn).send,
	wire.ReqSendBatchMessage:       (*conn).send,
	wire.ReqPullMessage:            (*conn).pull,
	wire.ReqSendReplyMessage:       (*conn).reply,
	wire.ReqSendReplyMessageV2:     (*conn).reply,
	wire.ReqHeartBeat:              (*conn).heartbeat,
	wire.ReqUnregisterClient:       (*conn).unregister,
	wire.ReqConsumerSendMsgBack:    (*conn).sendBack,
	wire.ReqEndTransaction:         (*conn).endTransaction,
	wire.ReqGetConsumerListByGroup: (*conn).consumerList,
	wire.ReqLockBatchMQ:            (*conn).lockQueues,
	wire.ReqUnlockBatchMQ:          (*conn).lockQueues,
	wire.ReqCheckClientConfig:      (*conn).checkClient,
	wire.ReqQueryConsumerOffset:    (*conn).queryOffset,
	wire.ReqUpdateConsumerOffset:   (*conn).updateOffset,
	wire.ReqGetMaxOffset:           (*conn).limitOffset,
	wire.ReqGetMinOffset:           (*conn).limitOffset,

	wire.ReqGetRouteInfoByTopic:     (*conn).route,
	wire.ReqGetBrokerClusterInfo:    (*conn).clusterInfo,
	wire.ReqUpdateAndCreateTopic:    (*conn).createTopic,
	wire.ReqDeleteTopicInBroker:     (*conn).deleteTopic,
	wire.ReqDeleteTopicInNamesrv:    (*conn).ok, // DELETE_TOPIC_IN_BROKER deletes it
	wire.ReqDeleteSubscriptionGroup: (*conn).deleteGroup,
	wire.ReqQueryTopicConsumeByWho:  (*conn).topicGroups,
	wire.ReqGetBrokerConfig:         (*conn).brokerConfig,
	wire.ReqGetBrokerRuntimeInfo:    (*conn).runtimeInfo,
}

// dispatch handles a request. An error ends the connection.
func (c *conn) dispatch(r *wire.Frame) error {
	o := &c.s.o
	if c.signer != nil && (string(r.Get(wire.FieldAccessKey)) != o.AccessKey || !c.signer.Verify(r)) {
		return c.refuse(r, wire.ResNoPermission,
			"AclException: Check signature failed for accessKey="+string(r.Get(wire.FieldAccessKey)))
	}
	if handle := handlers[r.Code]; handle != nil {
		return handle(c, r)
	}
	return c.refuse(r, wire.ResRequestCodeNotSupported, " request type "+strconv.Itoa(r.Code)+" not supported")
}

// begin begins an answer to r, without fields.
func (c *conn) begin(r *wire.Frame, code int, remark string) {
	c.w.Begin(code, wire.FlagAnswer, r.Opaque, remark)
}

// refuse answers with a code and a remark. The connection stays open.
func (c *conn) refuse(r *wire.Frame, code int, remark string) error {
	c.begin(r, code, remark)
	c.w.End(0)
	return nil
}

// readJSON reads the body of a request, or answers the request and returns false.
func (c *conn) readJSON(r *wire.Frame, v any) bool {
	err := wire.UnmarshalJSON(r.Body, v)
	if err != nil {
		_ = c.refuse(r, wire.ResSystemError, "the body cannot be read: "+err.Error())
	}
	return err == nil
}

func (c *conn) refuseTopic(r *wire.Frame, name []byte) error {
	return c.refuse(r, wire.ResTopicNotExist, "topic["+string(name)+"] not exist, apply first please!")
}

// refuseGroup answers that a group's name is illegal, or that there are too many groups.
func (c *conn) refuseGroup(r *wire.Frame, name string) error {
	return c.refuse(r, wire.ResSystemError, "the consumer group cannot be created: "+name)
}

// ok answers with success.
func (c *conn) ok(r *wire.Frame) error { return c.refuse(r, wire.ResSuccess, "") }

func (c *conn) number(r *wire.Frame, key string, n int64) error {
	c.begin(r, wire.ResSuccess, "")
	c.w.Int(key, n)
	c.w.End(0)
	return nil
}

func (c *conn) body(r *wire.Frame, body []byte) error {
	c.begin(r, wire.ResSuccess, "")
	c.w.End(len(body))
	c.w.B = append(c.w.B, body...)
	return nil
}

func (c *conn) json(r *wire.Frame, v any) error {
	b, _ := json.Marshal(v) // no value of ours fails
	return c.body(r, b)
}
