package amqp

import (
	"strings"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// encoded returns the sections of a message that came over another protocol, from the properties on.
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
	if h.MessageID == "" && h.Subject == "" && h.ReplyTo == "" && h.CorrelationID == "" && h.ContentType == "" &&
		h.Created == 0 && m.Expires == 0 && m.Group == "" {
		return b
	}
	b = wire.AppendDescriptor(b, wire.DescProperties)
	at := len(b)
	b = wire.BeginList(b)
	b = appendText(b, h.MessageID)
	b = wire.AppendNull(wire.AppendNull(b)) // user-id, to
	b = appendText(appendText(appendText(b, h.Subject), h.ReplyTo), h.CorrelationID)
	if h.ContentType == "" {
		b = wire.AppendNull(b)
	} else {
		b = wire.AppendSymbol(b, h.ContentType)
	}
	b = wire.AppendNull(b) // content-encoding
	for _, t := range []int64{m.Expires, h.Created} {
		if t == 0 {
			b = wire.AppendNull(b)
		} else {
			b = wire.AppendTimestamp(b, t)
		}
	}
	b = appendText(b, m.Group)
	wire.EndCompound(b, at, 11)
	return b
}

// appendText appends a string, or null if it is empty.
func appendText(b []byte, v string) []byte {
	if v == "" {
		return wire.AppendNull(b)
	}
	return wire.AppendStr(b, v)
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
