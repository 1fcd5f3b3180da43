package stomp

import (
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// sendHeaders are the headers of a SEND frame by class. The first one of a name counts.
type sendHeaders [numHeaders][]byte

// send handles SEND.
func (c *conn) send(f *wire.Received) error {
	var s sendHeaders
	m, err := c.build(f, &s)
	if err != nil {
		return err
	}
	d, err := c.destination(s[destination])
	if err != nil {
		return err
	}
	if name := s[inTransaction]; name != nil {
		if err := c.sendIn(name, d, &m.Message); err != nil {
			return err
		}
		c.reply(s[receipt])
		return nil
	}
	full, err := c.lacksRoom(d)
	if err != nil {
		return err
	}
	if err := c.server.Store.AwaitStall(c.done, c.flush); err != nil {
		return err
	}
	switch d.Send(&m.Message) {
	case store.Stored:
		c.confirm(d, full, s[receipt], len(m.text))
	case store.Full:
		return refuse("%s", d.WhyFull())
	case store.Withheld:
	}
	return nil
}

// lacksRoom reports whether d has no room for a message, to be stored nevertheless. It waits for room above the gate's
// high-water mark, and, on a connection without consumers, while the broker's memory is full.
func (c *conn) lacksRoom(d *store.Destination) (bool, error) {
	if c.server.Store.Rejects() || d.Room(nil) {
		return false, nil
	}
	if !c.gate.Shut() && (len(c.subs) > 0 || !c.server.Store.Tight()) {
		return true, nil
	}
	if err := c.flush(); err != nil {
		return false, err
	}
	return false, c.gate.Await(d, nil)
}

// confirm answers a SEND or COMMIT; if d was full, when d has room.
func (c *conn) confirm(d *store.Destination, full bool, receipt []byte, size int) {
	if !full {
		c.reply(receipt)
		return
	}
	var b []byte
	if receipt != nil {
		b = appendReceipt(nil, receipt)
	}
	c.gate.Withhold(d, b, size+store.MessageSize)
}

// build makes a message of a SEND frame: header lines and body in one allocation.
func (c *conn) build(f *wire.Received, s *sendHeaders) (*message, error) {
	size := len(f.Body)
	c.headers = c.headers[:0]
	for _, h := range f.Headers {
		what := headerOf(h.Key)
		if s[what] == nil {
			s[what] = h.Value
		}
		if what < destination {
			c.headers = append(c.headers, h)
			size += len(h.Key) + len(h.Value) + 2
		}
	}
	if s[destination] == nil {
		return nil, missing("destination")
	}
	m := &message{plain: s[contentLength] == nil, escaped: f.Escaped()}
	m.Message = store.Message{Content: m, Source: c.source, Priority: 4}
	if err := s.apply(&m.Message); err != nil {
		return nil, err
	}
	text := make([]byte, 0, size)
	for i := range c.headers {
		h := &c.headers[i]
		text = append(append(append(append(text, h.Key...), ':'), h.Value...), '\n')
	}
	m.head, m.text = len(text), append(text, f.Body...)
	return m, nil
}

// apply sets the message's fields from the headers.
func (s *sendHeaders) apply(m *store.Message) (err error) {
	m.Durable = string(s[persistent]) == "true"
	if b := s[priority]; b != nil {
		n, ok := wire.ParseNumber(b)
		if !ok || n > 9 {
			return invalid("priority", b)
		}
		m.Priority = uint8(n)
	}
	if b := s[expires]; b != nil {
		if m.Expires, err = parseTime("expires", b); err != nil {
			return err
		}
	}
	if b := s[group]; b != nil {
		b, _ = wire.Unescape(b)
		m.Group = string(b)
	}
	if b := s[scheduledDelay]; b != nil {
		delay, err := parseTime("AMQ_SCHEDULED_DELAY", b)
		const longest = 100 * 365 * 24 * time.Hour
		m.NotBefore = time.Now().Add(min(time.Duration(delay), longest/time.Millisecond) * time.Millisecond).UnixNano()
		return err
	}
	return nil
}

// parseTime parses a time in milliseconds.
func parseTime(name string, b []byte) (int64, error) {
	n, ok := wire.ParseNumber(b)
	if !ok || n > 1<<63-1 {
		return 0, invalid(name, b)
	}
	return int64(n), nil //nolint:gosec // checked
}

// address parses a destination header; without a prefix it is a queue.
func address(name string) (driver.Destination, error) {
	a, _ := store.ParseAddress(name)
	if a.Name == "" {
		return a, missing("destination")
	}
	return a, nil
}

// maxKnown bounds conn.known.
const maxKnown = 1000

// destination returns the destination of a SEND frame.
func (c *conn) destination(name []byte) (*store.Destination, error) {
	if d := c.known[string(name)]; d != nil {
		return d, nil
	}
	plain, _ := wire.Unescape(name)
	a, err := address(string(plain))
	if err != nil {
		return nil, err
	}
	d, err := c.server.Store.Open(a)
	if err != nil {
		return nil, cannotOpen(a, err)
	}
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	c.known[string(name)] = d
	return d, nil
}

// header classifies the headers of SEND.
type header uint8

const (
	property header = iota // any other header: the user's
	// Headers of the message.
	persistent
	priority
	expires
	group
	// Headers of the frame and for the broker, not passed on.
	destination
	receipt
	inTransaction
	contentLength
	scheduledDelay
	framing // headers of other frames
	numHeaders
)

func headerOf[T string | []byte](key T) header {
	switch string(key) { // does not allocate
	case "persistent":
		return persistent
	case "priority":
		return priority
	case "expires":
		return expires
	case "JMSXGroupID":
		return group
	case "destination":
		return destination
	case "receipt":
		return receipt
	case "transaction":
		return inTransaction
	case "content-length":
		return contentLength
	case "AMQ_SCHEDULED_DELAY":
		return scheduledDelay
	case "message-id", "subscription", "ack", "redelivered":
		return framing
	}
	return property
}
