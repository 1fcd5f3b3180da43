package amqp

import (
	"math"
	"strconv"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// decoder reads messages. It is for one goroutine, and a decoded message is valid until the decoder is used again.
type decoder struct {
	message  wire.Message
	delivery driver.Delivery
	joined   []byte // a body of several sections
	ids      driver.IDReader
}

// decode reads a message in place.
func (dec *decoder) decode(c *connection, payload []byte) (*driver.Delivery, error) {
	m, d := &dec.message, &dec.delivery
	if err := m.Decode(payload); err != nil {
		return nil, protocolError("a message that cannot be read: %w", err)
	}
	*d = driver.Delivery{Redelivered: c.redelivered(&m.Header)}
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
		return nil, protocolError("application properties that cannot be read: %w", err)
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

// microseconds understands the time property of perfmq and `artemis perf` (a long) and the forms into which other tools
// and brokers that convert between protocols turn it: all integer types, decimal text, timestamps.
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
