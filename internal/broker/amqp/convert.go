package amqp

import (
	"unicode/utf8"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// encoded encodes a message of another protocol, from the properties on.
func encoded(m *store.Message) []byte {
	body := m.Content.Body()
	p := wire.Properties{AbsoluteExpiryTime: wire.Opt[int64]{V: m.Expires, OK: m.Expires != 0}}
	if m.Group != "" {
		p.GroupID = []byte(m.Group)
	}
	b := p.AppendSection(make([]byte, 0, len(body)+256))
	if list := m.Content.Properties(); len(list) > 0 {
		b = appendApplication(b, list)
	}
	if m.Content.Text() && utf8.Valid(body) {
		return wire.AppendTextValue(b, body)
	}
	return wire.AppendData(b, body)
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
