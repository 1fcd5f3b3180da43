package amqp

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// tape is a connection whose peer has said all it will ever say.
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

// play serves what a peer says, and returns what it got and how it ended.
func play(t testing.TB, said []byte) (string, error) {
	t.Helper()
	nc := &tape{Reader: bytes.NewReader(said)}
	err := New(store.New(store.Config{Limit: 100}), Options{MaxMessage: 1 << 16}).Serve(t.Context(), nc)
	return nc.said.String(), err
}

func frameOf(channel uint16, descriptor uint64, payload []byte, fields ...func([]byte) []byte) []byte {
	b, frame := beginFrame(nil, frameAMQP, channel)
	b, at := beginDescribed(b, descriptor)
	for _, f := range fields {
		b = f(b)
	}
	return finishFrame(append(finish(b, at, len(fields)), payload...), frame)
}

func u(v uint32) func([]byte) []byte   { return func(b []byte) []byte { return appendUint(b, v) } }
func str(v string) func([]byte) []byte { return func(b []byte) []byte { return appendStr(b, v) } }
func null(b []byte) []byte             { return appendNull(b) }
func yes(b []byte) []byte              { return appendBool(b, true) }
func no(b []byte) []byte               { return appendBool(b, false) }

func ub(v byte) func([]byte) []byte {
	return func(b []byte) []byte { return append(b, codeUbyte, v) }
}

func term(v terminus) func([]byte) []byte {
	return func(b []byte) []byte { return appendTerminus(b, &v) }
}

// opening is a connection with a session, a sender on handle 0 and a receiver on handle 1, both of Q.
func opening() []byte {
	q := terminus{kind: descTarget, address: "Q", hasAddress: true, expiry: expireSessionEnd}
	src := q
	src.kind = descSource
	return bytes.Join([][]byte{
		[]byte(headerAMQP),
		frameOf(0, descOpen, nil, str("me")),
		frameOf(0, descBegin, nil, null, u(0), u(100), u(100)),
		frameOf(0, descAttach, nil, str("s"), u(0), no, ub(2), ub(0), null, term(q), null, null, u(0)),
		frameOf(0, descAttach, nil, str("r"), u(1), yes, ub(0), ub(0), term(src), term(q)),
	}, nil)
}

func message(t testing.TB) []byte {
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
	return frameOf(0, descTransfer, payload, u(0), u(id), func(b []byte) []byte { return appendBinary(b, []byte{1}) }, u(0))
}

// conversation is a bit of all that peers say.
func conversation(t testing.TB) []byte {
	m := message(t)
	accepted := func(b []byte) []byte { return append(b, acceptedState()...) }
	return bytes.Join([][]byte{
		opening(), send(0, m), send(1, m),
		frameOf(0, descFlow, nil, u(0), u(100), u(2), u(100), u(1), u(0), u(10), null, yes, yes),
		frameOf(0, descTransfer, m[:10], u(0), u(2), func(b []byte) []byte { return appendBinary(b, []byte{1}) }, u(0), no, yes),
		frameOf(0, descTransfer, m[10:], u(0)),
		frameOf(0, descDisposition, nil, yes, u(0), u(1<<31), yes, accepted),
		frameOf(0, descDetach, nil, u(0), yes),
		frameOf(0, descEnd, nil),
		frameOf(0, descClose, nil),
	}, nil)
}

func TestConversation(t *testing.T) {
	_, err := play(t, conversation(t))
	require.NoError(t, err)
}

// FuzzServe lets a connection end however it likes, but end.
func FuzzServe(f *testing.F) {
	f.Add([]byte(headerSASL))
	f.Add(opening())
	f.Add(conversation(f))
	f.Fuzz(func(t *testing.T, said []byte) {
		_, _ = play(t, said)
		_, _ = play(t, append(opening(), said...))
	})
}

// FuzzPerformatives reads all performatives from the same bytes.
func FuzzPerformatives(f *testing.F) {
	for b := conversation(f)[headerSize:]; len(b) > 0; {
		size := binary.BigEndian.Uint32(b)
		f.Add(b[frameHeader:size])
		b = b[size:]
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, read := range []func(*fields){
			func(f *fields) { f.open() }, func(f *fields) { f.begin() }, func(f *fields) { f.attach() }, func(f *fields) { f.flow() },
			func(f *fields) { f.transfer() }, func(f *fields) { f.disposition() }, func(f *fields) { f.detach() },
			func(f *fields) { f.terminus() }, func(f *fields) { f.outcome(true) }, func(f *fields) { f.filters() },
			func(f *fields) { f.symbols() }, func(f *fields) { f.scalar() },
		} {
			in := values(b)
			_, list := in.performative()
			read(&list)
			in = values(b)
			read(&in)
		}
		if n := valueSize(b); n > len(b) {
			t.Fatalf("a value of %d bytes within %d", n, len(b))
		}
	})
}

// FuzzMessage reads messages; what was read once is read again from what is kept of it.
func FuzzMessage(f *testing.F) {
	f.Add(message(f))
	f.Add(encoded(&store.Message{Content: &content{}}))
	text := appendSized(appendDescriptor(nil, descValue), codeStr8, "text")
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		var n, again node
		if _, ok := n.read(b, ""); !ok {
			return
		}
		h := n.content.Header()
		for _, p := range h.Properties {
			n.content.Property(p.Key)
		}
		_, ok := again.read(n.content.bare, "")
		require.True(t, ok)
		assert.Equal(t, n.content.body, again.content.body)
		body := bytes.Repeat([]byte{'x'}, len(n.content.Body()))
		changed := n.content.WithBody(body)
		assert.Equal(t, string(body), string(changed.Body()))
		assert.Len(t, changed.Header().Properties, len(h.Properties))
	})
}

// TestMalformed: each of these ends the connection with the error, and with nothing else.
func TestMalformed(t *testing.T) {
	m := message(t)
	for name, c := range map[string]struct {
		said []byte
		want string
	}{
		"no performative":          {append(opening(), 0, 0, 0, 9, 2, 0, 0, 0, 0x40), condDecode},
		"frame too large":          {append(opening(), 0xff, 0, 0, 0, 2, 0, 0, 0), condFraming},
		"frame too small":          {append(opening(), 0, 0, 0, 7, 2, 0, 0, 0), condFraming},
		"header beyond the frame":  {append(opening(), 0, 0, 0, 8, 3, 0, 0, 0), condFraming},
		"type of a frame":          {append(opening(), 0, 0, 0, 8, 2, 7, 0, 0), condFraming},
		"second open":              {append(opening(), frameOf(0, descOpen, nil, str("me"))...), condFraming},
		"no open":                  {append([]byte(headerAMQP), frameOf(0, descBegin, nil, null, u(0), u(1), u(1))...), condFraming},
		"no session":               {append(opening(), frameOf(7, descEnd, nil)...), condNotAllowed},
		"session twice":            {append(opening(), frameOf(0, descBegin, nil, null, u(0), u(1), u(1))...), condNotAllowed},
		"unknown performative":     {append(opening(), frameOf(0, 0x60, nil)...), condDecode},
		"wrong type of a field":    {append(opening(), frameOf(0, descFlow, nil, str("x"))...), condDecode},
		"transfer without number":  {append(opening(), frameOf(0, descTransfer, m, u(0))...), condDecode},
		"malformed message":        {append(opening(), send(0, m[:len(m)-1])...), condDecode},
		"no message":               {append(opening(), send(0, nil)...), condDecode},
		"malformed state":          {append(opening(), frameOf(0, descDisposition, nil, yes, u(0), u(0), yes, u(5))...), condDecode},
		"handle beyond the limit":  {append(opening(), frameOf(0, descAttach, nil, str("x"), u(1<<31), yes)...), condFraming},
		"unattached handle":        {append(opening(), frameOf(0, descDetach, nil, u(9))...), condUnattached},
		"handle in use":            {append(opening(), frameOf(0, descAttach, nil, str("x"), u(0), yes)...), condHandleInUse},
		"transfer to a receiver":   {append(opening(), frameOf(0, descTransfer, m, u(1), u(0))...), condUnattached},
		"acknowledged in no txn":   {append(opening(), frameOf(0, descDisposition, nil, yes, u(0), u(0), yes, func(b []byte) []byte { return appendTxState(b, []byte{1}, nil) })...), condTxUnknown},
		"message beyond the limit": {append(opening(), send(0, append(m, make([]byte, 1<<16)...))...), condMessageSize},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := play(t, c.said)
			require.Error(t, err)
			assert.Contains(t, got, c.want)
		})
	}
}

// TestDeep: values nested as deep as a frame allows are passed over without a stack to match.
func TestDeep(t *testing.T) {
	deep := bytes.Repeat([]byte{codeDescribed, codeSmallUlong, 1}, 30_000)
	said := frameOf(0, descFlow, nil, func(b []byte) []byte { return append(b, deep...) })
	got, err := play(t, append(opening(), said...))
	require.Error(t, err)
	assert.Contains(t, got, condDecode)
}

// TestSoleConnection: of two connections that each want to be the only one of their container, the second is refused.
func TestSoleConnection(t *testing.T) {
	srv := New(store.New(store.Config{}), Options{})
	desired := func(b []byte) []byte { return appendSymbols(b, []string{capSole}) }
	said := append([]byte(headerAMQP), frameOf(0, descOpen, nil, str("me"), null, null, null, null, null, null, null, desired)...)
	here, there := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(t.Context(), there) }()
	_, err := here.Write(said)
	require.NoError(t, err)
	_, err = io.ReadFull(here, make([]byte, headerSize+frameHeader)) // our open has begun: it is in
	require.NoError(t, err)
	second := &tape{Reader: bytes.NewReader(said)}
	require.Error(t, srv.Serve(t.Context(), second))
	assert.Contains(t, second.said.String(), condInvalidField)
	assert.Contains(t, second.said.String(), "container-id")
	require.NoError(t, here.Close())
	require.Error(t, <-ended)
	third := &tape{Reader: bytes.NewReader(append(said, frameOf(0, descClose, nil)...))}
	require.NoError(t, srv.Serve(t.Context(), third), "the name is free again")
}

// TestLookUp: a receiver without a source is shown the subscription of its name, and may remove it.
func TestLookUp(t *testing.T) {
	srv := New(store.New(store.Config{}), Options{})
	durable := terminus{
		kind: descSource, address: "T", hasAddress: true, durability: unsettledState, expiry: expireNever, capabilities: []string{capTopic},
	}
	dialogue := func(frames ...[]byte) string {
		frames = append([][]byte{
			[]byte(headerAMQP), frameOf(0, descOpen, nil, str("me")), frameOf(0, descBegin, nil, null, u(0), u(100), u(100)),
		}, append(frames, frameOf(0, descClose, nil))...)
		nc := &tape{Reader: bytes.NewReader(bytes.Join(frames, nil))}
		require.NoError(t, srv.Serve(t.Context(), nc))
		return nc.said.String()
	}
	lookUp := frameOf(0, descAttach, nil, str("sub"), u(0), yes, ub(0), ub(0), null, term(terminus{kind: descTarget}))
	closing := frameOf(0, descDetach, nil, u(0), yes)
	assert.Contains(t, dialogue(lookUp), condNotFound)
	dialogue(frameOf(0, descAttach, nil, str("sub"), u(0), yes, ub(0), ub(0), term(durable), term(terminus{kind: descTarget})))
	assert.NotContains(t, dialogue(lookUp), condNotFound, "the end of the connection has kept it")
	dialogue(lookUp, closing)
	assert.Contains(t, dialogue(lookUp), condNotFound, "a closing detach has removed it")
}
