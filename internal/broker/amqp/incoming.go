package amqp

import (
	"bytes"
	"slices"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// The credit window of a sender shrinks with the size of its messages, so that the overshoot of a queue's limit is, for
// each link, at most windowBytes or minWindow messages.
const (
	firstWindow = 100 // for an unknown size
	maxWindow   = 2000
	minWindow   = 2
	windowBytes = 8 << 20
)

// inLink is a link of a sending peer. It is the reader's.
type inLink struct {
	s           *session
	handle      uint32
	coordinator bool
	anonymous   bool               // each message names its destination
	dest        *store.Destination // nil: of a coordinator; if anonymous, of the last message
	own         *store.Destination // the temporary one of the link
	source      uint64
	group       string // of the last message

	count, credit uint32 // delivery-count and link-credit
	window        uint32
	size          int  // average size of messages
	queued        bool // in conn.lowCredit
	detached      bool // by us
	gone          bool

	// The current delivery.
	partly  bool // not its last frame yet
	id      uint32
	settled bool
	state   []byte
	partial []byte
	held    int64 // bytes of partial on the connection's account
}

func (s *session) onTransfer(f *wire.Decoder, payload []byte) error {
	var t wire.Transfer
	if err := t.Decode(f); err != nil {
		return failDecode(err)
	}
	if s.windowLeft == 0 {
		return fail(wire.CondWindow, "more transfers than the window had")
	}
	s.windowLeft--
	s.nextIncoming++
	l := s.in[t.Handle]
	if l == nil {
		return failHandle(t.Handle)
	}
	if s.windowLeft < ourIncomingWindow/2 {
		s.sendFlow(nil)
	}
	if l.detached {
		return nil
	}
	return l.onTransfer(&t, payload)
}

func (l *inLink) onTransfer(t *wire.Transfer, payload []byte) error {
	if !l.partly {
		if !t.DeliveryID.OK {
			return fail(wire.CondDecode, "a delivery without a number")
		}
		if l.credit == 0 {
			l.detach(fail(wire.CondTransferLimit, "there was no credit"))
			return nil
		}
		l.partly, l.id, l.settled, l.state, l.partial = true, t.DeliveryID.V, false, nil, nil
	} else if t.DeliveryID.OK && t.DeliveryID.V != l.id {
		return fail(wire.CondDecode, "delivery %d begins within delivery %d", t.DeliveryID.V, l.id)
	}
	l.settled = l.settled || t.Settled
	if t.State != nil {
		l.state = append([]byte(nil), t.State...)
	}
	if t.Aborted {
		l.dropPartial()
		l.used(0)
		return nil
	}
	if len(l.partial)+len(payload) > l.s.c.srv.MaxMessage {
		l.detach(fail(wire.CondMessageSize, "a message of more than %d bytes", l.s.c.srv.MaxMessage))
		return nil
	}
	if t.More {
		if !l.s.c.account.Take(int64(len(payload))) {
			l.detach(fail(wire.CondResourceLimit, "%v", store.ErrNoMemory))
			return nil
		}
		l.held += int64(len(payload))
		l.partial = append(l.partial, payload...)
		return nil
	}
	n, text := l.s.c.keep(l.partial, payload)
	l.dropPartial()
	return l.complete(n, text)
}

// dropPartial ends the current delivery.
func (l *inLink) dropPartial() {
	l.partly, l.partial = false, nil
	l.s.c.account.Give(l.held)
	l.held = 0
}

// complete sends a complete message to its destination.
func (l *inLink) complete(n *message, b []byte) error {
	if err := n.read(b, l.group); err != nil {
		return failDecode(err)
	}
	state, err := wire.ParseState(l.state)
	if err != nil {
		return failDecode(err)
	}
	l.group, n.Source = n.Group, l.source
	defer l.used(len(b)) // after the disposition, for one write of both
	if l.coordinator {
		return l.coordinate(n)
	}
	if l.anonymous {
		if refused := l.address(n); refused != nil {
			l.reject(refused)
			return nil
		}
	}
	if state.Transactional {
		return l.sendInTxn(state.TxnID, &n.Message)
	}
	switch l.dest.Send(&n.Message) {
	case store.Stored:
		l.accept()
	case store.Full:
		l.reject(fail(wire.CondResourceLimit, "%s", l.dest.WhyFull()))
	case store.Withheld:
	}
	return nil
}

// address opens the destination of a message over a link without one.
func (l *inLink) address(n *message) *wire.Error {
	to := n.to()
	if to == "" {
		return fail(wire.CondPrecondition, "a message over a link without an address needs the property to")
	}
	addr := l.s.c.srv.Store.Resolve(to)
	d, err := l.s.c.srv.Store.Open(addr)
	if err != nil {
		return cannotOpen(addr, err)
	}
	l.dest = d
	return nil
}

// accept settles the delivery as accepted, in a range with others if possible.
func (l *inLink) accept() {
	if l.settled {
		return
	}
	c := l.s.c
	p := &c.pending
	if p.s == l.s && p.last+1 == l.id {
		p.last = l.id
		return
	}
	c.sendAccepted()
	p.s, p.first, p.last = l.s, l.id, l.id
}

// sendAccepted sends the pending range, if there is one.
func (c *conn) sendAccepted() {
	p := c.pending
	if p.s == nil {
		return
	}
	c.pending.s = nil
	c.send(func(b []byte) []byte { return wire.AppendAccepted(b, p.s.channel, p.first, p.last) })
}

// answer sends a disposition of the delivery.
func (l *inLink) answer(state []byte) {
	if l.settled {
		return
	}
	l.s.c.sendAccepted()
	d := wire.Disposition{Role: wire.RoleReceiver, First: l.id, Last: l.id, Settled: true, State: state}
	l.s.c.send(func(b []byte) []byte { return d.AppendFrame(b, l.s.channel) })
}

func (l *inLink) reject(f *wire.Error) {
	l.answer((&wire.State{Kind: wire.DescRejected, Error: f}).Append(nil))
}

// used counts a delivery against the credit, and puts the link on lowCredit at half of its window.
func (l *inLink) used(size int) {
	if l.gone {
		return
	}
	l.count++
	l.credit--
	if l.size == 0 {
		l.size = size
	}
	l.size += (size - l.size) / 8
	if l.credit <= l.window/2 {
		l.needCredit()
	}
}

func (l *inLink) needCredit() {
	if !l.queued {
		l.queued = true
		l.s.c.lowCredit = append(l.s.c.lowCredit, l)
	}
}

// grant grants credit, or returns false as long as the destination has no room.
func (l *inLink) grant() bool {
	srv := l.s.c.srv
	if !l.gone && !srv.Store.Rejects() && l.dest != nil && !l.dest.Room() {
		return false
	}
	l.queued = false
	if l.window = srv.window(l.size); l.credit < l.window && !l.gone {
		l.credit = l.window
		l.s.sendFlow(l)
	}
	return true
}

// window returns a link's credit window for a size of messages, 0 if unknown. It is at most a tenth of a queue's
// limits, but at least minWindow for the limit of bytes and 1 for the limit of messages.
func (s *Server) window(size int) uint32 {
	cfg := s.Store.Config()
	n := int64(firstWindow)
	if size > 0 {
		n = min(max(min(windowBytes, cfg.LimitBytes/10)/int64(size), minWindow), maxWindow)
	}
	return uint32(max(min(n, cfg.Limit/10), 1)) //nolint:gosec // bounded
}

// detach ends the link because of an error; further frames over it are ignored.
func (l *inLink) detach(f *wire.Error) {
	l.s.c.flush()
	l.end()
	l.detached = true
	l.s.detach(l.handle, true, f)
}

// end ends the link's delivery, transactions and temporary destination.
func (l *inLink) end() {
	l.dropPartial()
	l.gone = true
	if l.own != nil {
		l.own.Delete()
	}
	if l.coordinator {
		l.endCoordinator()
	}
}

const (
	slabSize  = 4 << 10
	slabFit   = 512 // messages up to this size share slabs
	nodeChunk = 16
)

// keep copies a message out of the read buffer. A few small messages share an allocation, which lives as long as one of
// them: hence only a few.
func (c *conn) keep(partial, payload []byte) (*message, []byte) {
	if len(c.nodes) == 0 {
		c.nodes = make([]message, nodeChunk)
	}
	n := &c.nodes[0]
	c.nodes = c.nodes[1:]
	size := len(partial) + len(payload)
	switch {
	case size > slabFit && len(partial) == 0:
		return n, bytes.Clone(payload) // avoids clearing the memory
	case size > slabFit:
		return n, slices.Concat(partial, payload)
	case size > len(c.slab):
		c.slab = make([]byte, slabSize)
	}
	b := append(append(c.slab[:0:size], partial...), payload...)
	c.slab = c.slab[size:]
	return n, b
}
