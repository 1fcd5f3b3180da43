package stomp

import (
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

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
}

// read extracts the values that the driver needs. The first of several headers with one name counts (STOMP 1.2,
// "Repeated Header Entries").
func (m *message) read(f *wire.Received) {
	m.Delivery, m.sub, m.ack = driver.Delivery{Body: f.Body}, -1, nil
	var id, ack []byte
	for i := range f.Headers {
		value := f.Headers[i].Value
		switch string(f.Headers[i].Key) { // does not allocate
		case "subscription":
			if n, ok := wire.ParseNumber(value); ok && m.sub < 0 {
				m.sub = int64(n) //nolint:gosec // at most 19 digits: fits except for a sign, which no subscription has
			}
		case "message-id":
			if len(id) == 0 {
				id = value
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
	if m.ack = id; len(ack) > 0 {
		m.ack = ack
	}
}
