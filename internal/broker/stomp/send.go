package stomp

import (
	"bytes"
	"errors"
	"net"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// sending holds the headers of a SEND frame that are for the broker.
type sending struct {
	destination, kind, receipt, transaction []byte
	priority, expires, persistent, group    []byte
	delay, at                               []byte
	sized                                   bool // there is a content-length
}

// send handles SEND.
func (c *conn) send(f *frame) error {
	var s sending
	m, err := c.build(f, &s)
	if err != nil {
		return err
	}
	d, err := c.destination(s.destination, s.kind)
	if err != nil {
		return err
	}
	if s.transaction != nil {
		return c.sendLater(d, m, &s)
	}
	full, err := c.lacksRoom(d, 1)
	if err != nil {
		return err
	}
	if err := c.awaitStall(); err != nil {
		return err
	}
	switch d.Send(&m.Message) {
	case store.Stored:
		c.confirm(d, full, s.receipt, len(m.content.text))
	case store.Full:
		return refuse("%s is full", d.Address())
	case store.Withheld:
	}
	return nil
}

// lacksRoom tells whether d is too full for so many messages, which are stored nevertheless. It waits while the
// connection has brought too much beyond the limit, or could while the broker's memory is full.
func (c *conn) lacksRoom(d *store.Destination, messages int) (bool, error) {
	if c.rejects() || d.Room(nil) {
		return false, nil
	}
	c.server.store.CountFull(messages)
	if !c.gate.Shut() && (len(c.subs) > 0 || !c.server.store.Tight()) {
		return true, nil
	}
	if err := c.flush(); err != nil {
		return false, err
	}
	err := c.gate.Await(d, nil)
	if errors.Is(err, net.ErrClosed) {
		err = c.why()
	}
	return false, err
}

// confirm answers a SEND or COMMIT; if d was full, when that has room.
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

// rejects tells whether a full broker refuses messages rather than let senders wait.
func (c *conn) rejects() bool { return c.server.store.Config().Full == store.Reject }

// awaitStall waits for the end of a stall of the broker, or of the connection.
func (c *conn) awaitStall() error {
	over := c.server.store.Stalled()
	if over == nil {
		return nil
	}
	if err := c.flush(); err != nil {
		return err
	}
	select {
	case <-over:
		return nil
	case <-c.done:
		return c.why()
	}
}

// take keeps the value of a header for the broker. It returns false if it is the message's, to be passed on.
func (s *sending) take(h *field) (framing bool) {
	first := func(to *[]byte) {
		if *to == nil {
			*to = h.value
		}
	}
	switch string(h.key) { // does not allocate
	case "destination":
		first(&s.destination)
	case "destination-type":
		first(&s.kind)
	case "receipt":
		first(&s.receipt)
	case "transaction":
		first(&s.transaction)
	case "AMQ_SCHEDULED_DELAY":
		first(&s.delay)
	case "AMQ_SCHEDULED_TIME":
		first(&s.at)
	case "content-length":
		s.sized = true
	case "message-id", "subscription", "ack", "redelivered":
	case "priority":
		first(&s.priority)
		return false
	case "expires":
		first(&s.expires)
		return false
	case "persistent":
		first(&s.persistent)
		return false
	case "JMSXGroupID":
		first(&s.group)
		return false
	default:
		return false
	}
	return true
}

// build makes a message of a SEND frame: header lines and body in one piece of memory.
func (c *conn) build(f *frame, s *sending) (*message, error) {
	size := 0
	for i := range f.headers {
		h := &f.headers[i]
		if h.framing = s.take(h); h.framing {
			continue
		}
		size += len(h.key) + len(h.value) + 2
	}
	if s.destination == nil {
		return nil, refuse("invalid frame: SEND without destination")
	}
	m := &message{}
	m.Message = store.Message{Content: &m.content, Source: c.source, Priority: 4}
	if err := s.apply(c.version, &m.Message); err != nil {
		return nil, err
	}
	text := make([]byte, 0, size+len(f.body))
	for i := range f.headers {
		h := &f.headers[i]
		switch {
		case h.framing:
		case c.version == wire.V10:
			text = appendPlain(text, h)
		default:
			text = append(append(append(append(text, h.key...), ':'), h.value...), '\n')
		}
	}
	m.content = content{head: len(text), text: append(text, f.body...), plain: !s.sized}
	m.content.escaped = f.escaped || c.version == wire.V10 && bytes.IndexByte(text, '\\') >= 0
	return m, nil
}

// appendPlain appends a header line of STOMP 1.0, which knows no escapes.
func appendPlain(b []byte, h *field) []byte {
	if bytes.IndexByte(h.key, '\\') < 0 && bytes.IndexByte(h.value, '\\') < 0 && bytes.IndexByte(h.value, ':') < 0 {
		return append(append(append(append(b, h.key...), ':'), h.value...), '\n')
	}
	return wire.V12.AppendHeader(b, string(h.key), string(h.value))
}

// apply sets the message's fields from the headers.
func (s *sending) apply(v wire.Version, m *store.Message) error {
	if s.persistent != nil {
		m.Durable = string(s.persistent) == "true"
	}
	if s.priority != nil {
		n, ok := wire.ParseNumber(s.priority)
		if !ok || n > 9 {
			return refuse("invalid header: priority %.40q is not 0 to 9", s.priority)
		}
		m.Priority = uint8(n)
	}
	if s.expires != nil {
		n, ok := moment(s.expires, 1)
		if !ok {
			return refuse("invalid header: expires %.40q is not a time in milliseconds", s.expires)
		}
		m.Expires = n
	}
	if s.group != nil {
		group, _ := v.Unescape(s.group)
		m.Group = string(group)
	}
	if s.delay != nil || s.at != nil {
		return s.schedule(m)
	}
	return nil
}

// schedule sets the time before which the message is not delivered.
func (s *sending) schedule(m *store.Message) error {
	const ms = int64(time.Millisecond)
	if s.delay != nil {
		n, ok := moment(s.delay, ms)
		if !ok {
			return refuse("invalid header: AMQ_SCHEDULED_DELAY %.40q is not a time in milliseconds", s.delay)
		}
		m.NotBefore = saturate(time.Now().UnixNano(), n*ms)
		return nil
	}
	n, ok := moment(s.at, ms)
	if !ok {
		return refuse("invalid header: AMQ_SCHEDULED_TIME %.40q is not a time in milliseconds", s.at)
	}
	m.NotBefore = n * ms
	return nil
}

// moment reads a number that can be multiplied by unit.
func moment(b []byte, unit int64) (int64, bool) {
	n, ok := wire.ParseNumber(b)
	const largest = 1<<63 - 1
	return int64(n), ok && n <= uint64(largest/unit) //nolint:gosec // checked
}

func saturate(a, b int64) int64 {
	if a+b < a {
		return 1<<63 - 1
	}
	return a + b
}
