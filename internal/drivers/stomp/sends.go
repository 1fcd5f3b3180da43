package stomp

import (
	"bytes"
	"iter"
	"strconv"
	"sync/atomic"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	chunkBits = 8
	chunkSize = 1 << chunkBits

	// A place holds the generation of its message, with one of these marks, or without a mark when it is free.
	inFlight = 1 << 32 // it was sent and has not ended
	ending   = 1 << 33 // its end is being reported
)

// sends are the messages of a producer in flight, by the index of their slots. The goroutine that changes a place from
// inFlight to ending reports the end of its message: exactly one does.
type sends struct {
	chunks []atomic.Pointer[[chunkSize]atomic.Uint64] // allocated on first use
	// givenUp counts sends that lost their places to others before their ends: each may get a late answer.
	givenUp atomic.Int64
}

func newSends(maxPending int) sends {
	return sends{chunks: make([]atomic.Pointer[[chunkSize]atomic.Uint64], (max(maxPending, 1)+chunkSize-1)>>chunkBits)}
}

// place returns the place of a slot, or nil, which an invalid receipt of a broker may name.
func (s *sends) place(slot driver.Slot) *atomic.Uint64 {
	index := slot.Index()
	if int(index>>chunkBits) >= len(s.chunks) {
		return nil
	}
	c := s.chunks[index>>chunkBits].Load()
	if c == nil {
		return nil
	}
	return &c[index%chunkSize]
}

// begin marks a slot as sent. Only Send calls it.
func (s *sends) begin(slot driver.Slot) {
	at := &s.chunks[slot.Index()>>chunkBits]
	c := at.Load()
	if c == nil {
		c = new([chunkSize]atomic.Uint64)
		at.Store(c)
	}
	if c[slot.Index()%chunkSize].Swap(inFlight|uint64(slot.Generation()))&inFlight != 0 {
		s.givenUp.Add(1)
	}
}

// undo undoes begin; it returns false if the end of that send was reported meanwhile.
func (s *sends) undo(slot driver.Slot) bool {
	return s.place(slot).CompareAndSwap(inFlight|uint64(slot.Generation()), 0)
}

// claim claims the right to report the end of a send; it returns false if the end was reported before.
func (s *sends) claim(slot driver.Slot) bool {
	generation, at := uint64(slot.Generation()), s.place(slot)
	return at != nil && at.CompareAndSwap(inFlight|generation, ending|generation)
}

// overtaken reports whether the place of a slot was reused before the end of its send: the engine had given the send
// up. It is true for as many answers as there were such sends, so that a broker cannot invent them.
func (s *sends) overtaken(slot driver.Slot) bool {
	at := s.place(slot)
	if at == nil || int32(uint32(at.Load())-slot.Generation()) <= 0 { //nolint:gosec // generations are serial numbers
		return false
	}
	for n := s.givenUp.Load(); n > 0; n = s.givenUp.Load() {
		if s.givenUp.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// free marks a claimed send as reported, unless its place has been reused already.
func (s *sends) free(slot driver.Slot) {
	s.place(slot).CompareAndSwap(ending|uint64(slot.Generation()), uint64(slot.Generation()))
}

// places iterates over the places used so far, by the indexes of their slots.
func (s *sends) places() iter.Seq2[int, *atomic.Uint64] {
	return func(yield func(int, *atomic.Uint64) bool) {
		for i := range s.chunks {
			c := s.chunks[i].Load()
			for j := 0; c != nil && j < len(c); j++ {
				if !yield(i<<chunkBits+j, &c[j]) {
					return
				}
			}
		}
	}
}

// claimAll claims all messages in flight.
func (s *sends) claimAll() (slots []driver.Slot) {
	for i, at := range s.places() {
		state := at.Load()
		slot := driver.NewSlot(uint32(i), uint32(state)) //nolint:gosec // the lower half is the generation
		if state&inFlight != 0 && s.claim(slot) {
			slots = append(slots, slot)
		}
	}
	return slots
}

// none reports whether no send is in flight.
func (s *sends) none() bool {
	for _, at := range s.places() {
		if at.Load()&inFlight != 0 {
			return false
		}
	}
	return true
}

// await waits until no send is in flight or being reported; changed gets a signal after each report. It returns false
// when giveUp comes first.
func (s *sends) await(changed, giveUp <-chan struct{}) bool {
	for _, at := range s.places() {
		for at.Load()&(inFlight|ending) != 0 {
			select {
			case <-changed:
			case <-giveUp:
				return false
			}
		}
	}
	return true
}

// confirmations gathers sends that the broker has confirmed in a row, to report them together: with one read of the
// clock, and before any of them has waited longer than it takes to read a few more.
type confirmations struct {
	of    *producer
	slots []driver.Slot
}

// maxConfirmations bounds the number of gathered confirmations.
const maxConfirmations = 64

// add adds a confirmed and claimed send.
func (c *confirmations) add(p *producer, slot driver.Slot) {
	if c.of != p || len(c.slots) == maxConfirmations {
		c.report()
		c.of = p
	}
	c.slots = append(c.slots, slot)
}

// report reports the gathered confirmations.
func (c *confirmations) report() {
	if len(c.slots) > 0 {
		c.of.report(c.slots, driver.Outcome{})
		c.of, c.slots = nil, c.slots[:0]
	}
}

const (
	// maxHead bounds the header lines of a frame, in bytes. Brokers send about 14 headers of a few bytes each, and the
	// properties of the message.
	maxHead = 1 << 20
)

// message has the parts of a MESSAGE frame that the driver uses. It is valid as long as the frame.
type message struct {
	driver.Delivery
	sub int64  // the subscription; -1 if it is not one of ours
	ack []byte // the value for the ACK, escaped as received
	ids driver.IDReader

	// The headers of requests and replies, escaped as received.
	id, replyTo, correlation []byte
	unescaped                []byte // memory for them
}

// correlate sets what replies need.
func (m *message) correlate() {
	b := m.unescaped[:0]
	plain := func(header []byte) []byte {
		if bytes.IndexByte(header, '\\') < 0 {
			return header
		}
		at := len(b)
		longer, ok := wire.AppendUnescaped(b, header)
		if !ok {
			return header
		}
		b = longer
		return b[at:len(b):len(b)]
	}
	m.ReplyTo, m.Correlation, m.MessageID = plain(m.replyTo), plain(m.correlation), plain(m.id)
	m.unescaped = b
}

// read extracts the values that the driver needs. The first of several headers with one name counts (STOMP 1.2,
// "Repeated Header Entries").
func (m *message) read(f *wire.Received) {
	m.Delivery, m.sub, m.ack = driver.Delivery{Body: f.Body}, -1, nil
	m.id, m.replyTo, m.correlation = nil, nil, nil
	var ack []byte
	for i := range f.Headers {
		value := f.Headers[i].Value
		switch string(f.Headers[i].Key) { // does not allocate
		case "subscription":
			if n, ok := wire.ParseNumber(value); ok && m.sub < 0 {
				m.sub = int64(n) //nolint:gosec // at most 19 digits: fits except for a sign, which no subscription has
			}
		case "message-id":
			if len(m.id) == 0 {
				m.id = value
			}
		case headerReplyTo:
			if len(m.replyTo) == 0 {
				m.replyTo = value
			}
		case headerCorrelation:
			if len(m.correlation) == 0 {
				m.correlation = value
			}
		case "ack":
			if len(ack) == 0 {
				ack = value
			}
		case timeHeader:
			if !m.HasTime {
				n, err := strconv.ParseInt(string(value), 10, 64) // allocates nothing for a number
				m.Time, m.HasTime = n, err == nil
			}
		case driver.IDProperty:
			if m.ID == (driver.ID{}) {
				m.ID = m.ids.Read(value)
			}
		case "redelivered":
			m.Redelivered = m.Redelivered || string(value) == "true"
		}
	}
	if m.ack = m.id; len(ack) > 0 {
		m.ack = ack
	}
}
