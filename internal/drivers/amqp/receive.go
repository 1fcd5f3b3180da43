package amqp

import (
	"math"
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// begin sets the peer's initial delivery count. The session's lock is held.
func (k *consumer) begin(initial uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deliveryCount, k.limit, k.granted = initial, initial, initial
}

// flowState returns delivery count and credit for a flow.
func (k *consumer) flowState() (count, credit wire.Opt[uint32]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return wire.Some(k.deliveryCount), wire.Some(k.creditLeft())
}

// creditLeft returns the peer's remaining credit. The lock is held.
func (k *consumer) creditLeft() uint32 {
	if n := int32(k.limit - k.deliveryCount); n > 0 { //nolint:gosec // serial numbers, and credit is at most 2^30
		return uint32(n)
	}
	return 0 // some deliveries were in flight when credit was withdrawn
}

// transfer processes a frame of a delivery. The reader calls it.
func (k *consumer) transfer(t *wire.Transfer, payload []byte) error {
	switch {
	case !k.partial && (!t.DeliveryID.OK || t.DeliveryTag == nil):
		return protocolError("a delivery without an ID or a tag")
	case !k.partial:
		k.partialID, k.presettle = t.DeliveryID.V, false
	case t.DeliveryID.OK && t.DeliveryID.V != k.partialID:
		return protocolError("a delivery before the one before it had ended")
	}
	k.presettle = k.presettle || t.Settled
	k.partial = t.More && !t.Aborted
	if k.parts++; k.parts > maxFrames {
		return protocolError("a message in more than %d frames", maxFrames)
	}
	if !k.partial {
		k.parts = 0
	}
	if t.Aborted {
		k.dropPieces()
		k.mu.Lock()
		err := k.countDelivery() // it is not delivered, but used up credit
		k.mu.Unlock()
		k.listForSettling()
		return err
	}
	if t.More || len(k.pieces) > 0 {
		if err := k.addPiece(payload); err != nil {
			return err
		}
		payload = k.pieces
	}
	if t.More {
		return nil
	}
	err := k.receiveMessage(k.partialID, k.presettle, payload)
	k.dropPieces()
	return err
}

const (
	// maxSections bounds the sections of a message without its body, in bytes.
	maxSections = 1 << 20
	// maxUnfinished bounds incomplete messages of all consumers of a connection together, without the largest one.
	maxUnfinished = 32 << 20
	// maxFrames bounds the frames of one message, which keep the reader busy. A frame of the smallest size that a peer may
	// demand has room for about 400 bytes.
	maxFrames = 1 << 20
)

// addPiece adds a part of a message.
func (k *consumer) addPiece(payload []byte) error {
	c := k.lease.Conn
	limit := c.driver.cfg.MaxBody + maxSections
	size := len(k.pieces) + len(payload)
	if size > limit {
		return tooLarge(c.driver.cfg.MaxBody, size)
	}
	if c.unfinished += len(payload); c.unfinished > limit+maxUnfinished {
		return driver.Errorf(driver.ClassTooLarge, "", "use more connections, or smaller messages",
			"the broker has unfinished messages of more than %d bytes together", limit+maxUnfinished)
	}
	if size > cap(k.pieces) { // at most twice the bytes that have arrived
		k.pieces = append(c.driver.largeBuffer(min(max(2*size, firstPieces), limit)), k.pieces...)
	}
	k.pieces = append(k.pieces, payload...)
	return nil
}

// firstPieces is the smallest buffer for a message of several frames.
const firstPieces = 64 << 10

// dropPieces drops a message that was processed, or aborted.
func (k *consumer) dropPieces() {
	k.lease.Conn.unfinished -= len(k.pieces)
	if cap(k.pieces) > maxScratch {
		b := k.pieces
		k.lease.Conn.driver.large.Put(&b)
		k.pieces = nil
	}
	k.pieces = k.pieces[:0]
}

func tooLarge(limit, size int) error {
	return transport.TooLarge("", "a message of at least", size, limit)
}

// countDelivery counts a new delivery and checks that it had credit. The lock is held. The tolerance is the credit once
// more, because some brokers lose count.
func (k *consumer) countDelivery() error {
	k.deliveryCount++
	if over := int32(k.deliveryCount - k.granted); over > 0 && uint32(over) > k.credit { //nolint:gosec // serial numbers
		return protocolError("more than twice as many messages as it had credit for")
	}
	return nil
}

// listForSettling schedules a settlement for when the reader has nothing more to read.
func (k *consumer) listForSettling() {
	if !k.listed {
		k.listed = true
		k.lease.Conn.settle = append(k.lease.Conn.settle, k)
	}
}

// receiveMessage processes a complete message. The reader calls it.
func (k *consumer) receiveMessage(id uint32, settled bool, payload []byte) error {
	if len(payload) == 0 {
		return protocolError("a delivery without a message")
	}
	c := k.lease.Conn
	k.mu.Lock()
	for k.full() { // until Run makes room
		k.mu.Unlock()
		select {
		case <-k.room:
		case <-c.Over():
			return c.Why()
		}
		k.mu.Lock()
	}
	err := k.countDelivery()
	k.unsettled++
	k.since++
	due := false
	switch {
	case err != nil:
	case k.state != stateRunning:
		k.recordVerdict(id, settled, driver.Release)
		due = true
	case !k.holdsMessages():
		var d *driver.Delivery
		if d, err = k.decoder.decode(c, payload); err == nil {
			k.recordVerdict(id, settled, k.deliver(d))
		}
		due = k.since >= max(k.credit/4, 1)
	default:
		err = k.holdMessage(id, settled, payload)
	}
	k.mu.Unlock()
	switch {
	case err != nil:
		return err
	case due:
		k.settleAll()
		c.Out.Flush()
	default:
		k.listForSettling()
	}
	return nil
}

// holdsMessages reports whether messages are held for Run. The lock is held.
func (k *consumer) holdsMessages() bool {
	select {
	case <-k.over: // the last delivery has ended Run
		return true
	default:
	}
	return k.spec.TransactionSize > 0 || k.waiting > 0 || k.lease.Conn.WasShared.Load()
}

const (
	// maxHeld bounds the bytes of held messages of a consumer, above which the reader waits for Run.
	maxHeld = 16 << 20
	// maxTransacted is the bound where the reader must not wait, because Run waits for the broker's answers.
	maxTransacted = 96 << 20
)

// full reports whether the reader must wait until Run has delivered held messages. The lock is held.
func (k *consumer) full() bool {
	return k.waitingBytes >= maxHeld && k.spec.TransactionSize == 0 && k.state == stateRunning && k.err == nil
}

// holdMessage stores a copy of a message for Run. The lock is held.
func (k *consumer) holdMessage(id uint32, settled bool, payload []byte) error {
	if limit := k.lease.Conn.driver.cfg.MaxBody; len(payload) > limit+maxSections {
		return tooLarge(limit, len(payload))
	}
	if k.waitingBytes > maxTransacted {
		return driver.Errorf(driver.ClassTooLarge, "", "use a smaller --credit",
			"the messages sent ahead have more than %d bytes", maxTransacted)
	}
	h := k.spare
	if h != nil {
		k.spare = h.next
	} else {
		h = new(held)
	}
	*h = held{id: id, settled: settled, text: append(h.text[:0], payload...)}
	if k.last == nil {
		k.first = h
	} else {
		k.last.next = h
	}
	k.last = h
	k.waiting++
	k.waitingBytes += len(payload)
	transport.Notify(k.arrived)
	return nil
}

// releaseHeld removes a held message after its delivery. The lock is held.
func (k *consumer) releaseHeld(h *held) {
	k.waiting--
	k.waitingBytes -= len(h.text)
	if cap(h.text) > keptText {
		h.text = nil
	}
	h.next, k.spare = k.spare, h
	transport.Notify(k.room)
}

// keptText is the largest buffer of a held message that is reused.
const keptText = 16 << 10

// decoder decodes messages. It is for one goroutine, and a decoded message is valid until the next call.
type decoder struct {
	message  wire.Message
	delivery driver.Delivery
	joined   []byte // a body of several sections
	ids      driver.IDReader
	// correlated: deliveries have reply-to and IDs; texts of these that are not in the message.
	correlated bool
	idTexts    [2][]byte
}

// decode decodes a message in place.
func (dec *decoder) decode(c *connection, payload []byte) (*driver.Delivery, error) {
	m, d := &dec.message, &dec.delivery
	if err := m.Decode(payload); err != nil {
		return nil, unreadable("a message", err)
	}
	*d = driver.Delivery{Redelivered: c.redelivered(&m.Header)}
	if dec.correlated {
		if err := dec.readCorrelation(m.Properties); err != nil {
			return nil, err
		}
	}
	properties := wire.NewDecoder(m.ApplicationProperties)
	pairs, _ := properties.Map()
	for pairs.More() {
		key, _ := pairs.Text()
		switch string(key) {
		case driver.TimeProperty:
			d.Time, d.HasTime = microseconds(&pairs)
		case driver.IDProperty:
			if text, ok := pairs.Text(); !ok {
				d.ID = driver.GarbledID()
			} else if text != nil {
				d.ID = dec.ids.Read(text)
			}
		default:
			pairs.Skip()
		}
	}
	if err := pairs.Err(); err != nil {
		return nil, unreadable("application properties", err)
	}
	if m.BodySections > 1 {
		dec.joined = m.Payload(dec.joined)
		d.Body = dec.joined
	} else {
		d.Body = m.Payload(nil)
	}
	if limit := c.driver.cfg.MaxBody; len(d.Body) > limit {
		return nil, tooLarge(limit, len(d.Body))
	}
	return d, nil
}

// microseconds decodes the time property of perfmq and `artemis perf` (a long) and the forms that other tools, and
// brokers that convert between protocols, make of it: all integer types, decimal text, timestamps.
func microseconds(d *wire.Decoder) (int64, bool) {
	switch d.Peek() {
	case wire.CodeTimestamp:
		ms := d.Timestamp()
		const most = math.MaxInt64 / 1000
		return ms.V * 1000, ms.OK && ms.V <= most && ms.V >= -most
	case wire.CodeStr8, wire.CodeStr32:
		text, _ := d.Text()
		n, err := strconv.ParseInt(string(text), 10, 64)
		return n, err == nil
	default:
		return d.Integer()
	}
}

// recordVerdict records the verdict on a message for its settlement. The lock is held.
func (k *consumer) recordVerdict(id uint32, settled bool, v driver.Verdict) {
	switch {
	case settled, v == driver.Release && !k.lease.Conn.releases():
		k.unsettled--
	case v != driver.Accept:
		state := wire.State{Kind: wire.DescReleased}
		if v == driver.Reject {
			state.Kind = wire.DescRejected
		}
		d := wire.Disposition{Role: wire.RoleReceiver, First: id, Last: id, Settled: true, State: state.Append(nil)}
		k.others = d.AppendFrame(k.others, k.session.channel)
		k.unsettled--
	case id == k.acceptedFrom+k.accepted:
		k.accepted++
	default:
		k.others = k.appendAccepted(k.others)
		k.acceptedFrom, k.accepted = id, 1
	}
}

// appendAccepted settles the range of accepted messages, if it is not empty. The lock is held.
func (k *consumer) appendAccepted(b []byte) []byte {
	if n := k.accepted; n > 0 {
		b = wire.AppendAccepted(b, k.session.channel, k.acceptedFrom, k.acceptedFrom+n-1)
		k.unsettled -= n
		k.accepted = 0
	}
	return b
}

// settleAll settles the delivered messages, and gives new credit. It does not wait. The frames leave with the next
// flush, which the reader makes before it waits.
func (k *consumer) settleAll() {
	k.settling.Lock()
	defer k.settling.Unlock()
	flow := k.session.flowState()
	k.mu.Lock()
	b := append(k.frames[:0], k.others...)
	k.others, k.since = k.others[:0], 0
	b = k.appendCredit(k.appendAccepted(b), &flow)
	k.frames = b
	k.mu.Unlock()
	if len(b) > 0 {
		_ = k.lease.Conn.Gather(k.copyFrames) // an error means that the connection has ended, which Run also reports
	}
}

func (k *consumer) copyFrames(b []byte) []byte { return append(b, k.frames...) }

// appendCredit gives credit once half of it is used up: it raises the link's credit to the consumer's credit minus the
// unsettled messages. The lock is held.
func (k *consumer) appendCredit(b []byte, f *wire.Flow) []byte {
	if k.state != stateRunning {
		return b
	}
	left := k.creditLeft()
	want := k.credit - min(k.unsettled, k.credit)
	if want <= left || left > k.credit/2 || k.rounds && left > 0 {
		return b
	}
	k.limit = k.deliveryCount + want
	if int32(k.limit-k.granted) > 0 { //nolint:gosec // serial numbers
		k.granted = k.limit
	}
	f.Handle, f.DeliveryCount, f.LinkCredit = wire.Some(k.link.handle), wire.Some(k.deliveryCount), wire.Some(want)
	return f.AppendFrame(b, k.session.channel)
}

// withdraw withdraws the credit: the consumer wants no more messages.
func (k *consumer) withdraw() {
	s := k.session
	k.mu.Lock()
	k.limit = k.deliveryCount
	k.mu.Unlock()
	_ = k.lease.Conn.Gather(func(b []byte) []byte { return s.appendFlow(b, &k.link, false) })
}
