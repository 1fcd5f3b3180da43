package amqp

import (
	"strings"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// encoded encodes a message of another protocol, from the properties on.
func encoded(m *store.Message) []byte {
	h, body := m.Content.Header(), m.Content.Body()
	b := make([]byte, 0, len(body)+256)
	b = appendProperties(b, &h, m)
	if len(h.Properties) > 0 {
		b = appendApplication(b, h.Properties)
	}
	if (h.Text || strings.HasPrefix(h.ContentType, "text/")) && utf8.Valid(body) {
		return wire.AppendTextValue(b, body)
	}
	return wire.AppendData(b, body)
}

func appendProperties(b []byte, h *store.Header, m *store.Message) []byte {
	p := wire.Properties{
		Subject: nonEmpty(h.Subject), ReplyTo: nonEmpty(h.ReplyTo), ContentType: nonEmpty(h.ContentType),
		GroupID:            nonEmpty(m.Group),
		AbsoluteExpiryTime: wire.Opt[int64]{V: m.Expires, OK: m.Expires != 0},
		CreationTime:       wire.Opt[int64]{V: h.Created, OK: h.Created != 0},
	}
	if h.MessageID != "" {
		p.MessageID = wire.AppendStr(nil, h.MessageID)
	}
	if h.CorrelationID != "" {
		p.CorrelationID = wire.AppendStr(nil, h.CorrelationID)
	}
	return p.AppendSection(b)
}

// nonEmpty returns a text, or nil if it is empty.
func nonEmpty(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

func appendApplication(b []byte, list []store.Property) []byte {
	b = wire.AppendDescriptor(b, wire.DescApplicationProperties)
	at := len(b)
	b = wire.BeginMap(b)
	for _, p := range list {
		b = wire.AppendStr(b, p.Key)
		var err error
		if b, err = wire.AppendScalar(b, p.Value); err != nil {
			b = wire.AppendNull(b)
		}
	}
	wire.EndCompound(b, at, 2*len(list))
	return b
}
