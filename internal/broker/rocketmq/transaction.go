package rocketmq

import (
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// transactions holds half messages, invisible until their commit. A transaction without an outcome is checked back.
type transactions struct {
	s *Server

	due store.Delayed[int64] // numbers of half messages, by the time of the next check-back

	mu    sync.Mutex
	next  int64 // number of the next half message
	open  map[int64]*half
	bytes int64
}

// half is a half message.
type half struct {
	m      *message
	t      *topic
	group  string // of the producer
	unique string
	stored int64 // milliseconds since the Unix epoch
	checks int
}

func (x *transactions) close() {
	x.due.Stop(func(int64) {})
	x.mu.Lock()
	defer x.mu.Unlock()
	x.s.store.Return(x.bytes)
	x.bytes = 0
	x.open = map[int64]*half{}
}

// sendHalf stores a half message. Faults apply at its commit.
func (c *conn) sendHalf(r *wire.Frame, t *topic, m *message) error {
	x := &c.s.tx
	h := &half{
		m: m, t: t, group: string(wire.Property(m.properties, wire.PropProducerGroup)),
		unique: string(wire.Property(m.properties, wire.PropUniqueKey)),
		stored: time.Now().UnixMilli(),
	}
	if legalName(h.group) {
		c.addProducer(h.group) // some clients send their first heartbeat half a minute later
	}
	x.mu.Lock()
	if int64(len(x.open)) >= x.s.limits.Limit || x.bytes >= x.s.limits.LimitBytes || x.s.store.Tight() {
		x.mu.Unlock()
		return c.refuse(r, wire.ResSystemBusy, "[PC_SYNCHRONIZED]broker busy: too many half messages")
	}
	number := x.next
	x.next++
	x.put(number, h)
	x.mu.Unlock()
	x.s.count(func(n *Stats) { n.Halves++ })
	x.checkIn(x.s.o.TransactionCheck, number)
	c.stored(r, m.queue, number, logOffset(0, 0, number), []byte(h.unique))
	return nil
}

func (x *transactions) checkIn(wait time.Duration, number int64) {
	x.due.Add(time.Now().Add(wait).UnixNano(), number, x.check)
}

// maxChecks is the number of check-backs before a half message is given up.
const maxChecks = 15

// check checks back a half message, or gives it up.
func (x *transactions) check(number int64) {
	if x.s.store.Stalled() {
		x.checkIn(10*time.Millisecond, number)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	h := x.open[number]
	if h == nil {
		return
	}
	if h.checks++; h.checks > maxChecks {
		x.remove(number, h)
		return
	}
	x.checkIn(x.s.o.TransactionCheck, number)
	x.sendCheck(number, h)
}

// sendCheck sends a check-back to a producer of the group (CHECK_TRANSACTION_STATE), if there is one.
func (x *transactions) sendCheck(number int64, h *half) {
	c := x.s.producerOf(h.group)
	if c == nil {
		return
	}
	x.s.count(func(n *Stats) { n.Checks++ })
	log := logOffset(0, 0, number)
	var id [messageID]byte
	head := wire.MessageHead{
		Queue: int32(h.m.queue), QueueOffset: number, LogOffset: log, Stored: h.stored, StoreHost: c.host[:],
	}
	c.push(func(w *wire.Writer) {
		w.Begin(wire.ReqCheckTransactionState, wire.FlagOneWay, 0, "")
		w.Text("topic", h.t.name)
		w.Int("tranStateTableOffset", number)
		w.Int("commitLogOffset", log)
		w.Text("msgId", h.unique)
		w.Text("transactionId", h.unique)
		w.Text("offsetMsgId", string(wire.AppendMessageID(id[:0], c.host[:], log)))
		w.End(h.m.encodedSize(h.t.name))
		w.B = h.m.append(w.B, h.t.name, head)
	})
}

// producerOf returns a connection with a producer of a group, or nil.
func (s *Server) producerOf(group string) *conn {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for c := range s.producers[group] {
		return c
	}
	return nil
}

// put adds a half message; x.mu is held.
func (x *transactions) put(number int64, h *half) {
	x.open[number] = h
	x.bytes += h.m.weight()
	x.s.store.Charge(h.m.weight())
}

// remove removes a half message; x.mu is held.
func (x *transactions) remove(number int64, h *half) {
	delete(x.open, number)
	x.bytes -= h.m.weight()
	x.s.store.Return(h.m.weight())
}

// endTransaction handles END_TRANSACTION (EndTransactionProcessor).
func (c *conn) endTransaction(r *wire.Frame) error {
	x := &c.s.tx
	what := r.NumberOr("commitOrRollback", -1)
	number := r.NumberOr("commitLogOffset", -1)
	x.mu.Lock()
	h := x.open[number]
	if h != nil && (number != r.NumberOr("tranStateTableOffset", number) || h.group != string(r.Get("producerGroup"))) {
		h = nil
	}
	if h != nil && (what == wire.SysCommit || what == wire.SysRollback) {
		x.remove(number, h)
	}
	x.mu.Unlock()
	switch {
	case h == nil:
		return c.refuse(r, wire.ResSystemError, "Find prepared transaction message failed")
	case what == wire.SysRollback:
		x.s.count(func(n *Stats) { n.RolledBack++ })
		return c.ok(r)
	case what != wire.SysCommit: // unknown: it will be checked back
		return c.ok(r)
	}
	m := h.m.clone()
	m.half = number
	m.NotBefore = h.m.NotBefore
	m.sysFlag = m.sysFlag&^wire.SysTransaction | wire.SysCommit
	m.properties = withProperties(m.properties, wire.PropPrepared, "")
	if h.t.dest.Send(&m.Message) == store.Full {
		x.mu.Lock() // it stays a half message, and will be checked back
		x.put(number, h)
		x.mu.Unlock()
		x.checkIn(x.s.o.TransactionCheck, number)
		return c.refuse(r, wire.ResSystemBusy, busy(h.t))
	}
	x.s.count(func(n *Stats) { n.Committed++ })
	_ = c.ok(r)
	if !c.s.store.Rejects() && !h.t.dest.Room() {
		return c.awaitRoom(h.t.dest) // clients do not wait for this answer: delay their connection
	}
	return nil
}
