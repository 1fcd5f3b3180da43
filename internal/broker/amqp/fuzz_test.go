package amqp

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// tape is a connection with recorded input.
type tape struct {
	io.Reader
	said bytes.Buffer
}

func (t *tape) Write(b []byte) (int, error)      { return t.said.Write(b) }
func (*tape) Close() error                       { return nil }
func (*tape) LocalAddr() net.Addr                { return nil }
func (*tape) RemoteAddr() net.Addr               { return nil }
func (*tape) SetDeadline(time.Time) error        { return nil }
func (*tape) SetReadDeadline(time.Time) error    { return nil }
func (*tape) SetWriteDeadline(t time.Time) error { return nil }

// play serves a connection with that input, and returns the output.
func play(t testing.TB, said []byte) string {
	t.Helper()
	nc := &tape{Reader: bytes.NewReader(said)}
	Server{Store: store.New(store.Config{Limit: 100}), MaxMessage: 1 << 15}.Serve(nc)
	return nc.said.String()
}

func frameOf(channel uint16, d wire.Descriptor, payload []byte, fields ...func([]byte) []byte) []byte {
	b := wire.AppendDescriptor(wire.BeginFrame(nil, wire.FrameAMQP, channel), d)
	at := len(b)
	b = wire.BeginList(b)
	for _, f := range fields {
		b = f(b)
	}
	wire.EndCompound(b, at, len(fields))
	b = append(b, payload...)
	wire.EndFrame(b, 0)
	return b
}

func u(v uint32) func([]byte) []byte { return func(b []byte) []byte { return wire.AppendUint(b, v) } }

func str(v string) func([]byte) []byte { return func(b []byte) []byte { return wire.AppendStr(b, v) } }
func null(b []byte) []byte             { return wire.AppendNull(b) }
func yes(b []byte) []byte              { return wire.AppendBool(b, true) }
func no(b []byte) []byte               { return wire.AppendBool(b, false) }
func tag(b []byte) []byte              { return wire.AppendBinary(b, []byte{1}) }
func accepted(b []byte) []byte         { return append(b, wire.Accepted...) }

// atQ is a source or target.
func atQ(kind wire.Descriptor) wire.Terminus {
	return wire.Terminus{Kind: kind, Address: wire.Some("Q")}
}

// attachSender and attachReceiver attach links of the peer's.
func attachSender(name string, handle uint32, target wire.Terminus) []byte {
	a := wire.Attach{
		Name: name, Handle: handle, SenderSettleMode: wire.SenderMixed, Target: target, InitialDeliveryCount: wire.Some[uint32](0),
	}
	return a.AppendFrame(nil, 0)
}

func attachReceiver(name string, handle uint32, source, target wire.Terminus) []byte {
	a := wire.Attach{Name: name, Handle: handle, Role: wire.RoleReceiver, Source: source, Target: target}
	return a.AppendFrame(nil, 0)
}

// inTxn appends a state in a transaction; kind is its outcome, or 0.
func inTxn(txn []byte, kind wire.Descriptor) func([]byte) []byte {
	return (&wire.State{Kind: kind, Transactional: true, TxnID: txn}).Append
}

// opening is a connection with a session, a sender on handle 0 and a receiver on handle 1, both of Q.
func opening() []byte {
	return bytes.Join([][]byte{
		[]byte(wire.HeaderAMQP),
		frameOf(0, wire.DescOpen, nil, str("me")),
		frameOf(0, wire.DescBegin, nil, null, u(0), u(100), u(100)),
		attachSender("s", 0, atQ(wire.DescTarget)),
		attachReceiver("r", 1, atQ(wire.DescSource), atQ(wire.DescTarget)),
	}, nil)
}

func sample(t testing.TB) []byte {
	t.Helper()
	subject, group := "s", "g"
	b, err := (&client.Message{
		Header:                &client.MessageHeader{Durable: true, TTL: time.Hour},
		Annotations:           client.Annotations{"x-opt-delivery-delay": int64(1), "x-opt-jms-dest": int8(1)},
		Properties:            &client.MessageProperties{MessageID: "m", Subject: &subject, GroupID: &group},
		ApplicationProperties: map[string]any{"a": int64(1), "b": "c", "d": 1.5},
		Data:                  [][]byte{[]byte("body")},
	}).MarshalBinary()
	require.NoError(t, err)
	return b
}

func send(id uint32, payload []byte) []byte {
	return frameOf(0, wire.DescTransfer, payload, u(0), u(id), tag, u(0))
}

// conversation is a bit of all that peers say.
func conversation(t testing.TB) []byte {
	m := sample(t)
	return bytes.Join([][]byte{
		opening(), send(0, m), send(1, m),
		frameOf(0, wire.DescFlow, nil, u(0), u(100), u(2), u(100), u(1), u(0), u(10), null, yes, yes),
		frameOf(0, wire.DescTransfer, m[:10], u(0), u(2), tag, u(0), no, yes),
		frameOf(0, wire.DescTransfer, m[10:], u(0)),
		frameOf(0, wire.DescDisposition, nil, yes, u(0), u(1<<31), yes, accepted),
		frameOf(0, wire.DescDetach, nil, u(0), yes),
		frameOf(0, wire.DescEnd, nil),
		frameOf(0, wire.DescClose, nil),
	}, nil)
}

func TestConversation(t *testing.T) {
	said := play(t, conversation(t))
	assert.True(t, strings.HasSuffix(said, string((&wire.End{}).AppendClose(nil))), "%q: a close without an error", said)
}

// FuzzServe lets a connection end however it likes, but end.
func FuzzServe(f *testing.F) {
	f.Add([]byte(wire.HeaderSASL))
	f.Add(opening())
	f.Add(conversation(f))
	f.Fuzz(func(t *testing.T, said []byte) {
		play(t, said)
		play(t, append(opening(), said...))
	})
}

// FuzzMessage reads messages, and reads the kept part of a message again.
func FuzzMessage(f *testing.F) {
	f.Add(sample(f))
	f.Add(encoded(&store.Message{Content: &message{}}))
	f.Add(wire.AppendTextValue(nil, "text"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var n, again message
		if err := n.read(b, ""); err != nil {
			return
		}
		properties := n.Properties()
		for _, p := range properties {
			n.Property(p.Key)
		}
		require.NoError(t, again.read(n.bare, ""))
		assert.Equal(t, n.body, again.body)
		body := bytes.Repeat([]byte{'x'}, len(n.Body()))
		changed := n.WithBody(body)
		assert.Equal(t, string(body), string(changed.Body()))
		assert.Len(t, changed.Properties(), len(properties))
	})
}

// TestMalformed: each of these ends the connection with the error, and with nothing else.
func TestMalformed(t *testing.T) {
	m := sample(t)
	for name, c := range map[string]struct {
		said []byte
		want string
	}{
		"no performative":          {append(opening(), 0, 0, 0, 9, 2, 0, 0, 0, 0x40), wire.CondDecode},
		"frame too large":          {append(opening(), 0xff, 0, 0, 0, 2, 0, 0, 0), wire.CondFraming},
		"frame too small":          {append(opening(), 0, 0, 0, 7, 2, 0, 0, 0), wire.CondFraming},
		"header beyond the frame":  {append(opening(), 0, 0, 0, 8, 3, 0, 0, 0), wire.CondFraming},
		"type of a frame":          {append(opening(), 0, 0, 0, 8, 2, 7, 0, 0), wire.CondFraming},
		"second open":              {append(opening(), frameOf(0, wire.DescOpen, nil, str("me"))...), wire.CondFraming},
		"no open":                  {append([]byte(wire.HeaderAMQP), frameOf(0, wire.DescBegin, nil, null, u(0), u(1), u(1))...), wire.CondFraming},
		"no session":               {append(opening(), frameOf(7, wire.DescEnd, nil)...), wire.CondNotAllowed},
		"session twice":            {append(opening(), frameOf(0, wire.DescBegin, nil, null, u(0), u(1), u(1))...), wire.CondNotAllowed},
		"unknown performative":     {append(opening(), frameOf(0, 0x60, nil)...), wire.CondDecode},
		"wrong type of a field":    {append(opening(), frameOf(0, wire.DescFlow, nil, str("x"))...), wire.CondDecode},
		"transfer without number":  {append(opening(), frameOf(0, wire.DescTransfer, m, u(0))...), wire.CondDecode},
		"malformed message":        {append(opening(), send(0, m[:len(m)-1])...), wire.CondDecode},
		"no message":               {append(opening(), send(0, nil)...), wire.CondDecode},
		"malformed state":          {append(opening(), frameOf(0, wire.DescDisposition, nil, yes, u(0), u(0), yes, u(5))...), wire.CondDecode},
		"handle beyond the limit":  {append(opening(), frameOf(0, wire.DescAttach, nil, str("x"), u(1<<31), yes)...), wire.CondFraming},
		"unattached handle":        {append(opening(), frameOf(0, wire.DescDetach, nil, u(9))...), wire.CondUnattachedHandle},
		"handle in use":            {append(opening(), frameOf(0, wire.DescAttach, nil, str("x"), u(0), yes)...), wire.CondHandleInUse},
		"transfer to a receiver":   {append(opening(), frameOf(0, wire.DescTransfer, m, u(1), u(0))...), wire.CondUnattachedHandle},
		"acknowledged in no txn":   {append(opening(), frameOf(0, wire.DescDisposition, nil, yes, u(0), u(0), yes, inTxn([]byte{1}, 0))...), wire.CondUnknownTxn},
		"message beyond the limit": {append(opening(), send(0, append(m, make([]byte, 1<<15)...))...), wire.CondMessageSize},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, play(t, c.said), c.want)
		})
	}
}

// TestDeep: values nested as deep as a frame allows are passed over without a stack to match.
func TestDeep(t *testing.T) {
	deep := bytes.Repeat([]byte{wire.CodeDescribed, wire.CodeSmallUlong, 1}, 20_000)
	said := frameOf(0, wire.DescFlow, nil, func(b []byte) []byte { return append(b, deep...) })
	assert.Contains(t, play(t, append(opening(), said...)), wire.CondDecode)
}
