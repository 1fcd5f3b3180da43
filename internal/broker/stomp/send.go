package stomp

import (
	"bytes"
	"errors"
	"strconv"
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
	if d == nil { // as in RabbitMQ: the responder is not to blame for a requester that has gone
		c.reply(s[receipt])
		return nil
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
	if c.server.Store.Rejects() || d.Room() {
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
		if what == replyTo && bytes.HasPrefix(h.Value, []byte(temporaryPrefix)) {
			var err error
			if h.Value, err = c.replyAddress(h.Value); err != nil {
				return nil, err
			}
		}
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

// destination returns the destination of a SEND frame; nil for a temporary one that is no more.
func (c *conn) destination(name []byte) (*store.Destination, error) {
	if d := c.known[string(name)]; d != nil {
		return d, nil
	}
	plain, _ := wire.Unescape(name)
	a := c.server.Store.Resolve(string(plain))
	if a.Name == "" {
		return nil, missing("destination")
	}
	if t, err := c.temporary(string(plain)); err != nil {
		return nil, err
	} else if t != nil {
		return t, nil
	}
	d, err := c.server.Store.Open(a)
	if errors.Is(err, store.ErrGone) {
		return nil, nil
	}
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
	replyTo
	correlation
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
	case "reply-to":
		return replyTo
	case "correlation-id":
		return correlation
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

// message is the message of a SEND frame, its own [store.Content]: the header lines in the encoding of STOMP 1.2, each
// with its line feed, and the body.
type message struct {
	store.Message
	text    []byte
	head    int  // bytes of the header lines
	escaped bool // a header line has a backslash
	plain   bool // the body is text: no content-length
}

func (c *message) Size() int { return cap(c.text) }

func (c *message) Body() []byte { return c.text[c.head:] }

func (c *message) WithBody(body []byte) store.Content {
	text := append(bytes.Clone(c.text[:c.head]), body...)
	return &message{text: text, head: c.head, escaped: c.escaped, plain: c.plain}
}

// each calls f with the unescaped header lines until it returns false.
func (c *message) each(f func(key, value []byte) bool) {
	for rest := c.text[:c.head]; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		colon := bytes.IndexByte(rest[:end], ':')
		key, value := rest[:colon], rest[colon+1:end]
		if c.escaped {
			key, _ = wire.Unescape(key) // checked on arrival
			value, _ = wire.Unescape(value)
		}
		if !f(key, value) {
			return
		}
		rest = rest[end+1:]
	}
}

func (c *message) Property(name string) (found any) {
	if headerOf(name) != property {
		return nil
	}
	c.each(func(key, value []byte) bool {
		if string(key) == name {
			found = string(value)
		}
		return found == nil
	})
	return found
}

func (c *message) Text() bool { return c.plain }

// Addressing implements [store.Content].
func (c *message) Addressing() (a store.Addressing) {
	c.each(func(key, value []byte) bool {
		switch header := headerOf(key); {
		case header == replyTo && a.ReplyTo == "":
			a.ReplyTo = string(value)
		case header == correlation && a.CorrelationID == "":
			a.CorrelationID = string(value)
		}
		return true
	})
	return a
}

func (c *message) Properties() (list []store.Property) {
	c.each(func(key, value []byte) bool {
		if headerOf(key) == property && store.Lookup(list, string(key)) == nil {
			list = append(list, store.Property{Key: string(key), Value: string(value)})
		}
		return true
	})
	return list
}

// appendHead appends the header lines of m. A text without NUL has no content-length, as in ActiveMQ.
func appendHead(b []byte, m *store.Message) []byte {
	if body := m.Content.Body(); !m.Content.Text() || bytes.IndexByte(body, 0) >= 0 {
		b = append(strconv.AppendInt(append(b, "content-length:"...), int64(len(body)), 10), '\n')
	}
	if c, ok := m.Content.(*message); ok {
		return append(b, c.text[:c.head]...)
	}
	return appendForeign(b, m)
}

// appendForeign appends the header lines of a message of another protocol. Properties become text: numbers in decimal,
// booleans as true and false, bytes in base64. Properties with the name of a STOMP header are left out.
func appendForeign(b []byte, m *store.Message) []byte {
	if m.Group != "" {
		b = wire.AppendHeader(b, "JMSXGroupID", m.Group)
	}
	if m.Expires != 0 {
		b = wire.AppendHeader(b, "expires", strconv.FormatInt(m.Expires, 10))
	}
	a := m.Content.Addressing()
	if a.ReplyTo != "" {
		b = wire.AppendHeader(b, "reply-to", a.ReplyTo)
	}
	if a.CorrelationID != "" {
		b = wire.AppendHeader(b, "correlation-id", a.CorrelationID)
	}
	b = wire.AppendHeader(b, "priority", strconv.Itoa(int(m.Priority)))
	b = wire.AppendHeader(b, "persistent", strconv.FormatBool(m.Durable))
	for _, p := range m.Content.Properties() {
		if p.Key != "" && headerOf(p.Key) == property {
			b = wire.AppendHeader(b, p.Key, store.Text(p.Value))
		}
	}
	return b
}
