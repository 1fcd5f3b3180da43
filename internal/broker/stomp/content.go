package stomp

import (
	"bytes"
	"strconv"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

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
	b = wire.AppendHeader(b, "priority", strconv.Itoa(int(m.Priority)))
	b = wire.AppendHeader(b, "persistent", strconv.FormatBool(m.Durable))
	for _, p := range m.Content.Properties() {
		if p.Key != "" && headerOf(p.Key) == property {
			b = wire.AppendHeader(b, p.Key, store.Text(p.Value))
		}
	}
	return b
}
