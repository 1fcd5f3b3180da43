package amqp

import (
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// Credit for senders: a window of messages that shrinks with their size, so that the overshoot of a queue's limit
// stays, for each link, below windowBytes, or minWindow messages.
const (
	firstWindow = 100 // until the size is known
	maxWindow   = 2000
	minWindow   = 2
	windowBytes = 8 << 20
)

// inLink is a link over which the peer sends. It is the reader's.
type inLink struct {
	s           *session
	handle      uint32
	coordinator bool
	second      bool               // the peer settles after us
	dest        *store.Destination // nil: the messages say where
	defaultKind store.Kind
	temporary   *store.Address // to be deleted with the link
	source      uint64
	group       string // of the last message

	count, credit uint32 // deliveries so far, and deliveries that may still come
	window        uint32
	size          int  // of messages, on average
	queued        bool // on the list of links that want credit
	waiting       bool // for room at the destination
	starved       bool // has no credit by the fault of being full, and was counted
	detached      bool // by us
	gone          bool

	// The delivery that is under way.
	busy    bool
	id      uint32
	settled bool
	format  uint32
	state   []byte
	partial []byte
	held    int64 // bytes that partial counts against the broker's memory
}

// receipts are dispositions that are still to be sent: all accepted and settled, one after the other.
type receipts struct {
	s           *session // nil: none
	second      bool
	first, last uint32
}

func (s *session) onTransfer(f *wire.Decoder, payload []byte) error {
	var t wire.Transfer
	if err := t.Decode(f); err != nil {
		return failDecode(err)
	}
	if s.windowLeft == 0 {
		return failSession(wire.CondWindow, "more transfers than the window had")
	}
	s.windowLeft--
	s.nextIncoming++
	l := s.in[t.Handle]
	if l == nil {
		return failSession(wire.CondUnattachedHandle, "handle %d is not attached for sending", t.Handle)
	}
	if s.windowLeft < ourIncomingWindow/2 {
		s.sendFlow()
	}
	if l.detached {
		return nil
	}
	return l.onTransfer(&t, payload)
}

func (l *inLink) onTransfer(t *wire.Transfer, payload []byte) error {
	if !l.busy {
		if !t.DeliveryID.OK {
			return fail(wire.CondDecode, "a delivery without a number")
		}
		if l.credit == 0 {
			l.detach(fail(wire.CondTransferLimit, "there was no credit"))
			return nil
		}
		l.busy, l.id, l.settled, l.format, l.state, l.partial = true, t.DeliveryID.V, false, t.MessageFormat.V, nil, nil
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
	if len(l.partial)+len(payload) > l.s.c.srv.opts.MaxMessage {
		l.detach(fail(wire.CondMessageSize, "a message of more than %d bytes", l.s.c.srv.opts.MaxMessage))
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

// dropPartial ends the delivery that is under way.
func (l *inLink) dropPartial() {
	l.busy, l.partial = false, nil
	l.s.c.account.Give(l.held)
	l.held = 0
}

// complete takes over a whole message.
func (l *inLink) complete(n *node, b []byte) error {
	a, err := n.read(b, l.group)
	if err != nil {
		return failDecode(err)
	}
	state, err := wire.ParseState(l.state)
	if err != nil {
		return failDecode(err)
	}
	l.group, n.content.format, n.msg.Source = n.msg.Group, l.format, l.source
	defer l.used(len(b)) // after the answer, so that it is credited together
	if l.coordinator {
		return l.coordinate(n)
	}
	dest := l.dest
	if dest == nil {
		var f *failure
		if dest, f = l.lookup(&a); f != nil {
			l.reject(f)
			return nil
		}
	}
	if deleted(dest) {
		f := errDeleted(dest)
		l.reject(f) // so that the sender learns the outcome
		if l.dest != nil {
			l.detach(f) // Transport, section 2.8.15
		}
		return nil
	}
	if state.Transactional {
		return l.sendInTxn(state.TxnID, dest, &n.msg, len(b))
	}
	verdict := dest.Send(&n.msg)
	if c := l.s.c; l.dest == nil && c.srv.blocks && !l.waiting && !dest.Room(func() { c.tellRoom(l) }) {
		l.waiting = true
	}
	switch verdict {
	case store.Stored:
		l.accept()
	case store.Full:
		l.reject(fail(wire.CondResourceLimit, "%s is full", dest.Address()))
	case store.Withheld:
	}
	return nil
}

// lookup returns where a message to an anonymous terminus goes.
func (l *inLink) lookup(a *arrival) (*store.Destination, *failure) {
	if len(a.to) == 0 {
		return nil, fail(wire.CondNotFound, "the message does not say where it is to go")
	}
	kind := l.defaultKind
	if a.hasKind {
		kind = a.kind
	}
	addr := parseAddress(string(a.to), kind)
	dest, err := l.s.c.srv.store.Open(addr)
	if err != nil {
		return nil, cannotOpen(addr, err)
	}
	return dest, nil
}

// accept answers the delivery, together with others if it can.
func (l *inLink) accept() {
	if l.settled {
		return
	}
	c := l.s.c
	p := &c.pending
	if p.s == l.s && p.second == l.second && p.last+1 == l.id {
		p.last = l.id
		return
	}
	c.sendReceipts()
	*p = receipts{s: l.s, second: l.second, first: l.id, last: l.id}
}

// sendReceipts sends the pending receipts, if there are some.
func (c *conn) sendReceipts() {
	p := c.pending
	if p.s == nil {
		return
	}
	c.pending.s = nil
	if !p.s.ended {
		c.send(func(b []byte) []byte { return wire.AppendAccepted(b, p.s.channel, p.first, p.last, !p.second) })
	}
}

// answer sends a state for the delivery.
func (l *inLink) answer(state []byte) {
	if l.settled {
		return
	}
	l.s.c.sendReceipts()
	d := wire.Disposition{Role: wire.RoleReceiver, First: l.id, Last: l.id, Settled: !l.second, State: state}
	l.s.c.send(func(b []byte) []byte { return d.AppendFrame(b, l.s.channel) })
}

func (l *inLink) reject(f *failure) {
	l.answer((&wire.State{Kind: wire.DescRejected, Error: f}).Append(nil))
}

// used counts a delivery against the credit, and asks for more when half of it is used up.
func (l *inLink) used(size int) {
	if l.gone {
		return
	}
	l.count++
	l.credit--
	if l.waiting {
		l.starve()
	}
	if l.size == 0 {
		l.size = size
	}
	l.size += (size - l.size) / 8
	if !l.waiting && !l.queued && l.credit <= l.window/2 {
		l.queued = true
		l.s.c.topUps = append(l.s.c.topUps, l)
	}
}

// grant gives credit if the destination has room; otherwise it is done when it has.
func (l *inLink) grant() {
	if l.gone || l.waiting {
		return
	}
	c := l.s.c
	if l.dest != nil && deleted(l.dest) { // it waited for room
		c.sendReceipts() // not all of flush: it may be the caller
		l.part(errDeleted(l.dest))
		return
	}
	if c.srv.blocks && l.dest != nil && !l.dest.Room(func() { c.tellRoom(l) }) {
		l.waiting = true
		l.starve()
		return
	}
	l.starved = false
	l.window = c.srv.window(l.size)
	if l.credit >= l.window {
		return
	}
	l.credit = l.window
	l.sendFlow()
}

// starve counts a link that the fault of being full has left without credit, once until it gets some: whatever the peer
// sends next has to wait on its side.
func (l *inLink) starve() {
	if l.credit == 0 && !l.starved {
		l.starved = l.s.c.srv.store.CountFull(1)
	}
}

// window returns how many messages of a size may be under way on a link; the size is 0 if it is not known. It is at
// most a tenth of a queue's limits, but at least minWindow for the limit of bytes and 1 for that of messages.
func (s *Server) window(size int) uint32 {
	cfg := s.store.Config()
	n := int64(firstWindow)
	if size > 0 {
		n = min(max(min(windowBytes, cfg.LimitBytes/10)/int64(size), minWindow), maxWindow)
	}
	return uint32(max(min(n, cfg.Limit/10), 1)) //nolint:gosec // bounded
}

func (l *inLink) sendFlow() {
	c := l.s.c
	c.send(func(b []byte) []byte {
		l.s.renew()
		state := l.s.state()
		state.Handle, state.DeliveryCount, state.LinkCredit = wire.Some(l.handle), wire.Some(l.count), wire.Some(l.credit)
		return state.AppendFrame(b, l.s.channel)
	})
}

// detach ends the link because of an error; frames that still come over it are ignored.
func (l *inLink) detach(f *failure) {
	l.s.c.flush()
	l.part(f)
}

// part is detach when all answers are under way.
func (l *inLink) part(f *failure) {
	l.end()
	l.detached = true
	l.s.detach(l.handle, true, f)
}

// deleted tells whether messages sent to a destination are lost, because it is a queue that was deleted (a temporary
// one, with its link). A topic comes into being anew.
func deleted(dest *store.Destination) bool {
	return dest.Gone() && dest.Address().Kind == store.KindQueue
}

func errDeleted(dest *store.Destination) *failure {
	return fail(wire.CondResourceDeleted, "%s was deleted", dest.Address())
}

// end releases all that the link had.
func (l *inLink) end() {
	l.dropPartial()
	l.gone = true
	if l.coordinator {
		l.endCoordinator()
	}
	if l.temporary != nil {
		l.s.c.srv.store.Delete(*l.temporary)
		l.temporary = nil
	}
}

const (
	slabSize  = 4 << 10
	slabFit   = 512 // messages up to this size share slabs
	nodeChunk = 16
)

// keep copies a message out of the read buffer. Small ones share an allocation with a few others: more would keep too
// much alive for one that stays.
func (c *conn) keep(partial, payload []byte) (*node, []byte) {
	if len(c.nodes) == 0 {
		c.nodes = make([]node, nodeChunk)
	}
	n := &c.nodes[0]
	c.nodes = c.nodes[1:]
	size := len(partial) + len(payload)
	if size > slabFit {
		if len(partial) == 0 {
			return n, append([]byte(nil), payload...) // it is not cleared before
		}
		b := make([]byte, size)
		copy(b[copy(b, partial):], payload)
		return n, b
	}
	if size > len(c.slab) {
		c.slab = make([]byte, slabSize)
	}
	b := c.slab[:size:size]
	c.slab = c.slab[size:]
	copy(b[copy(b, partial):], payload)
	return n, b
}
