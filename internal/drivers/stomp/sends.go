package stomp

import (
	"bytes"
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

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
		c.of.sends.Report(c.slots, driver.Outcome{})
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
	for i := range f.Headers {
		value, into := f.Headers[i].Value, (*[]byte)(nil)
		switch string(f.Headers[i].Key) { // does not allocate
		case "subscription":
			if n, ok := wire.ParseNumber(value); ok && m.sub < 0 {
				m.sub = int64(n) //nolint:gosec // at most 19 digits: fits except for a sign, which no subscription has
			}
		case "message-id":
			into = &m.id
		case headerReplyTo:
			into = &m.replyTo
		case headerCorrelation:
			into = &m.correlation
		case "ack":
			into = &m.ack
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
		if into != nil && len(*into) == 0 {
			*into = value
		}
	}
	if len(m.ack) == 0 {
		m.ack = m.id
	}
}
