package amqp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// TestMessageIDs: a reply has the ID of its request, of the same type, whatever that is.
func TestMessageIDs(t *testing.T) {
	uuid := append([]byte{wire.CodeUUID}, "0123456789abcdef"...)
	for _, v := range []struct {
		encoded []byte
		text    string
	}{
		{wire.AppendStr(nil, "ID:spring-1"), "ID:spring-1"},
		{wire.AppendStr(nil, strings.Repeat("x", 300)), strings.Repeat("x", 300)},
		{wire.AppendUlong(nil, 7), "AMQP:5307"},
		{wire.AppendUlong(nil, 1<<63), "AMQP:808000000000000000"},
		{uuid, "AMQP:9830313233343536373839616263646566"},
		{wire.AppendBinary(nil, []byte{0, 255}), "AMQP:a00200ff"},
		{nil, ""},
	} {
		text, _ := wire.MessageIDText(nil, v.encoded)
		require.Equal(t, v.text, string(text))
		if v.encoded != nil {
			require.Equal(t, v.encoded, wire.AppendMessageID(nil, text))
		}
	}
	for _, text := range []string{"AMQP:", "AMQP:zz", "AMQP:5", "AMQP:5307ff", "AMQP:a1", "AMQP:40", "AMQP:c00100"} { // no IDs: strings
		require.Equal(t, wire.AppendStr(nil, text), wire.AppendMessageID(nil, []byte(text)))
	}
}

// TestRequests: a request has its message ID and correlation ID, a reply has the correlation ID alone; group and
// address are kept; the next message of the producer has none of these.
func TestRequests(t *testing.T) {
	p := producer{}
	require.NoError(t, p.encodeVariants(&driver.ProducerSpec{Variants: []driver.Variant{{Body: []byte("b"), Group: "group-1", Priority: -1}}}, nil))
	properties := func(m *driver.Message) (got wire.Properties) {
		own := bytes.Clone(p.propertiesOf(m))
		b := p.kinds[0].Append(nil, 1, nil, m.Group, own)
		require.Len(t, b, p.kinds[0].Size(0, own))
		var whole wire.Message
		require.NoError(t, whole.Decode(b))
		require.NoError(t, got.Decode(whole.Properties))
		require.Equal(t, "b", string(whole.Payload(nil)))
		return got
	}
	id := wire.AppendStr(nil, "1-2-3-4")
	p.requests = true
	require.Equal(t, wire.Properties{MessageID: id, ReplyTo: []byte("r"), CorrelationID: id, GroupID: []byte("group-2")},
		properties(&driver.Message{ReplyTo: "r", Correlation: []byte("1-2-3-4"), Group: "group-2"}))
	p.requests = false
	require.Equal(t, wire.Properties{To: []byte("r2"), CorrelationID: wire.AppendUlong(nil, 7), GroupID: []byte("group-2")},
		properties(&driver.Message{To: []byte("r2"), Correlation: []byte("AMQP:5307"), Group: "group-2"}))
	require.Equal(t, wire.Properties{GroupID: []byte("group-1")}, properties(&driver.Message{}))
	m := driver.Message{ReplyTo: "r", Correlation: []byte("1-2-3-4")}
	require.Zero(t, testing.AllocsPerRun(100, func() { p.propertiesOf(&m) }))
}

// TestCorrelation: a consumer reads what a reply needs, if it is asked to.
func TestCorrelation(t *testing.T) {
	c := &connection{driver: newDriver(transport.Settings[Options]{MaxBody: 100})}
	sent := wire.Properties{MessageID: wire.AppendUlong(nil, 7), ReplyTo: []byte("replies")}
	message := wire.AppendData(sent.AppendSection(nil), []byte("x"))
	dec := decoder{correlated: true}
	d := musttest.Get(dec.decode(c, message))(t)
	require.Equal(t, "replies", string(d.ReplyTo))
	require.Empty(t, d.Correlation)
	require.Equal(t, "AMQP:5307", string(d.ReplyID()))
	sent.CorrelationID = wire.AppendStr(nil, "own")
	d = musttest.Get(dec.decode(c, wire.AppendData(sent.AppendSection(nil), []byte("x"))))(t)
	require.Equal(t, "own", string(d.ReplyID()))
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = dec.decode(c, message) }))
	dec.correlated = false
	require.Empty(t, musttest.Get(dec.decode(c, message))(t).ReplyTo)
}
