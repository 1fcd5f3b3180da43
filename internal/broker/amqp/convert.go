package amqp

import (
	"strings"
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// encoded returns the sections of a message that came over another protocol, from the properties on.
func encoded(m *store.Message) []byte {
	h, body := m.Content.Header(), m.Content.Body()
	b := make([]byte, 0, len(body)+256)
	b = appendProperties(b, &h, m)
	if len(h.Properties) > 0 {
		b = appendApplication(b, h.Properties)
	}
	if strings.HasPrefix(h.ContentType, "text/") && utf8.Valid(body) {
		return appendSized(appendDescriptor(b, descValue), codeStr8, body)
	}
	return appendBinary(appendDescriptor(b, descData), body)
}

func appendProperties(b []byte, h *store.Header, m *store.Message) []byte {
	if h.MessageID == "" && h.Subject == "" && h.ReplyTo == "" && h.CorrelationID == "" && h.ContentType == "" &&
		h.Created == 0 && m.Expires == 0 && m.Group == "" {
		return b
	}
	b, at := beginDescribed(b, descProperties)
	b = appendText(b, h.MessageID)
	b = appendNull(appendNull(b)) // user-id, to
	b = appendText(appendText(appendText(b, h.Subject), h.ReplyTo), h.CorrelationID)
	if h.ContentType == "" {
		b = appendNull(b)
	} else {
		b = appendSymbol(b, h.ContentType)
	}
	b = appendNull(b) // content-encoding
	for _, t := range []int64{m.Expires, h.Created} {
		if t == 0 {
			b = appendNull(b)
		} else {
			b = appendTimestamp(b, t)
		}
	}
	return finish(appendText(b, m.Group), at, 11)
}

func appendApplication(b []byte, list []store.Property) []byte {
	b, at := begin(appendDescriptor(b, descAppProperties), codeMap32)
	for _, p := range list {
		b = appendStr(b, p.Key)
		switch v := p.Value.(type) {
		case string:
			b = appendStr(b, v)
		case bool:
			b = appendBool(b, v)
		case int64:
			b = appendLong(b, v)
		case float64:
			b = appendDouble(b, v)
		case []byte:
			b = appendBinary(b, v)
		default:
			b = appendNull(b)
		}
	}
	return finish(b, at, 2*len(list))
}
