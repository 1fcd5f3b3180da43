package amqp_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"
	"unicode/utf8"

	client "github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/wire/amqp"
)

// FuzzMessageBesideGoAMQP: a message that we and go-amqp can read is the same to both. Which malformed ones are refused
// may differ.
func FuzzMessageBesideGoAMQP(f *testing.F) {
	for _, g := range readGolden(f, "messages.golden") {
		f.Add(g.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m amqp.Message
		var p amqp.Properties
		if m.Decode(b) != nil || p.Decode(m.Properties) != nil || !plain(t, b) {
			return
		}
		var theirs client.Message
		if err := theirs.UnmarshalBinary(b); err != nil {
			return
		}
		sameMessage(t, b, &theirs)
		again, err := theirs.MarshalBinary()
		if err != nil || m.BodyKind == amqp.DescValue && theirs.Value == nil {
			return // it has no UTF-8, or go-amqp drops a null
		}
		sameMessage(t, again, &theirs)
	})
}

// plain tells whether both sides can show the content of a message: no lists, arrays and other values within values, no
// key twice, no more properties than there are, nothing behind the last value of a list, where go-amqp goes on reading,
// and no malformed value in a body, which we read only when we are asked to: a boolean of neither 0 nor 1.
func plain(t testing.TB, b []byte) bool {
	t.Helper()
	for d := amqp.NewDecoder(b); d.More(); {
		switch section := d.Descriptor(); section {
		case amqp.DescData:
			d.Skip()
		case amqp.DescValue:
			if !shown(d.Scalar()) || d.Err() != nil {
				return false
			}
		case amqp.DescHeader, amqp.DescProperties, amqp.DescSequence:
			list, _ := d.List()
			if section != amqp.DescSequence && list.Len() > 13 || !plainValues(t, &list, false) {
				return false
			}
		default:
			pairs, _ := d.Map()
			if !plainValues(t, &pairs, true) {
				return false
			}
		}
	}
	return true
}

// plainValues reads a list or a map.
func plainValues(t testing.TB, in *amqp.Decoder, isMap bool) bool {
	t.Helper()
	keys := map[any]bool{}
	for i := 0; in.More(); i++ {
		v := in.Scalar()
		if !shown(v) {
			return false
		}
		if isMap && i%2 == 0 {
			if _, isBytes := v.([]byte); isBytes || keys[clientValue(t, v)] {
				return false
			}
			keys[clientValue(t, v)] = true
		}
	}
	return in.Err() == nil && len(in.Rest()) == 0
}

// shown tells whether go-amqp has a value of that type, and it can be compared.
func shown(v any) bool {
	switch v := v.(type) {
	case amqp.Encoded, amqp.Char, amqp.Decimal32, amqp.Decimal64, amqp.Decimal128:
		return false
	case float32:
		return !math.IsNaN(float64(v))
	case float64:
		return !math.IsNaN(v)
	}
	return true
}

// FuzzMessageOfGoAMQP: we read messages of go-amqp, and go-amqp reads our messages of the same content.
func FuzzMessageOfGoAMQP(f *testing.F) {
	f.Add(true, uint8(9), uint32(1000), uint32(3), "text", "key", int64(-5), 1.5, []byte("body"), uint8(0), uint16(0xffff))
	f.Add(false, uint8(4), uint32(0), uint32(0), "", "", int64(math.MaxInt64), -1e-300, []byte{}, uint8(1), uint16(0))
	f.Add(false, uint8(0), uint32(1), uint32(math.MaxUint32), long, "k", int64(1<<40), math.MaxFloat64, []byte(long), uint8(2), uint16(0x0505))
	f.Fuzz(func(t *testing.T, durable bool, priority uint8, ttl, number uint32, text, key string, n int64, x float64, body []byte, kind uint8, set uint16) {
		if !utf8.ValidString(text) || !utf8.ValidString(key) || x != x {
			return
		}
		c := content{durable, priority, ttl, number, text, key, n, x, body, kind % 4, set}
		theirs := c.theirs()
		b, err := theirs.MarshalBinary()
		require.NoError(t, err)
		sameMessage(t, b, theirs)
		var read client.Message
		require.NoError(t, read.UnmarshalBinary(c.ours(t)))
		sameMessage(t, b, &read)
		sameMessage(t, c.ours(t), theirs)
	})
}

// FuzzTalkWithGoAMQP: a connection from open to close, with names, numbers, messages and errors of all kinds. Each side
// reads the values that the other wrote.
func FuzzTalkWithGoAMQP(f *testing.F) {
	f.Add("container", "queue", "key", "amqp:not-found", "why", []byte("body"), uint32(1000), uint16(600), uint64(1<<40))
	f.Add(long, "q/ü", "", "x", "", []byte{}, uint32(1), uint16(0), uint64(0))
	f.Add("", long, long, long, long, []byte(long+long+long), uint32(255), uint16(255), uint64(255))
	f.Fuzz(func(t *testing.T, container, address, key, condition, reason string, body []byte, n uint32, frame uint16, limit uint64) {
		for _, s := range []string{container, address, key, condition, reason} {
			if !utf8.ValidString(s) {
				return
			}
		}
		if address == "" || condition == "" || len(body)+len(key) > 60_000 {
			return // go-amqp takes it for something else, or does not send it
		}
		tmpl, err := amqp.NewTemplate(&amqp.Content{
			TimeKey: "time", IDKey: "perfmq_id", Body: body, Application: []amqp.Property{{Key: key, Value: n}},
		})
		require.NoError(t, err)
		message := tmpl.Append(nil, int64(limit>>1), []byte(reason))
		if limit > 0 && limit < uint64(len(message))+64 { // the message of go-amqp may be a little longer
			return
		}
		texts := len(container) + len(address) + len(key) + len(condition) + len(reason)
		frames := max(uint32(frame), uint32(amqp.MinMaxFrameSize+3*texts)) // go-amqp sends no attach that is larger
		c := conversationWith{container, address, key, condition, reason, message, n, frames, limit}
		c.hold(t)
	})
}

type conversationWith struct {
	container, address, key string
	condition, reason       string
	message                 []byte
	number, maxFrame        uint32
	maxMessage              uint64
}

// fake returns a peer that plays its side of the conversation.
func (c *conversationWith) fake() *fake {
	f := peer()
	window := c.number | 1<<10
	f.open = amqp.Open{
		ContainerID: c.container, Hostname: c.address, MaxFrameSize: amqp.Some(c.maxFrame), IdleTimeout: c.number | 1<<16,
		Properties: fields(c.key+"!", c.container), OfferedCapabilities: []string{c.key, c.address},
	}
	f.begin = amqp.Begin{
		NextOutgoingID: c.number, IncomingWindow: window, OutgoingWindow: window, HandleMax: amqp.Some(c.number | 1),
	}
	f.credit = 1
	f.attach = func(a *amqp.Attach) amqp.Attach {
		answer := echo(a)
		answer.MaxMessageSize = c.maxMessage
		return answer
	}
	f.flow = func(w *amqp.Flow) []byte {
		if !w.Handle.OK || w.LinkCredit.V == 0 {
			return nil
		}
		f.flow = nil
		return deliver(w.Handle.V, c.number, c.message, amqp.MinMaxFrameSize)
	}
	failure := &amqp.Error{Condition: c.condition, Description: c.reason, Info: fields("k", c.reason)}
	f.transfer = func(tr *amqp.Transfer, _ []byte) []frame {
		if tr.More {
			return nil
		}
		s := amqp.State{Kind: amqp.DescRejected, Error: failure}
		return []frame{&amqp.Disposition{Role: amqp.RoleReceiver, Settled: true, State: state(s)}}
	}
	return f
}

// hold has go-amqp receive a message and reject it, and send it and have it rejected.
func (c *conversationWith) hold(t *testing.T) {
	f := c.fake()
	settled := make(chan amqp.State, 1)
	f.settle = func(d *amqp.Disposition) {
		assert.Equal(t, c.number, d.First)
		s, err := amqp.ParseState(d.State)
		assert.NoError(t, err)
		settled <- s
	}
	want := &client.Error{
		Condition: client.ErrCond(c.condition), Description: c.reason, Info: map[string]any{"k": c.reason},
	}
	var message client.Message
	require.NoError(t, message.UnmarshalBinary(c.message))
	o := &client.ConnOptions{ContainerID: c.address, MaxFrameSize: c.maxFrame}
	talk(t, f, o, func(ctx context.Context, conn *client.Conn) {
		assert.Equal(t, map[string]any{c.key + "!": c.container}, conn.Properties())
		s, err := conn.NewSession(ctx, nil)
		require.NoError(t, err)
		r, err := s.NewReceiver(ctx, c.address, &client.ReceiverOptions{Name: c.key + "?", Credit: 1})
		require.NoError(t, err)
		assert.Equal(t, c.address, r.Address())
		got, err := r.Receive(ctx, nil)
		require.NoError(t, err)
		sameMessage(t, c.message, got)
		require.NoError(t, r.RejectMessage(ctx, got, want))
		rejected := <-settled
		require.NotNil(t, rejected.Error)
		assert.Equal(t, c.condition, rejected.Error.Condition)
		assert.Equal(t, c.reason, rejected.Error.Description)
		l, err := s.NewSender(ctx, c.address, nil)
		require.NoError(t, err)
		assert.Equal(t, c.maxMessage, l.MaxMessageSize())
		receipt, err := l.SendWithReceipt(ctx, &message, nil)
		require.NoError(t, err)
		outcome, err := receipt.Wait(ctx)
		require.NoError(t, err)
		assert.Equal(t, &client.StateRejected{Error: want}, outcome)
	})
	checkTalk(t, f, c.address, c.key, c.message)
}

// checkTalk compares the frames of go-amqp with the values that it was told to send.
func checkTalk(t testing.TB, f *fake, address, key string, message []byte) {
	t.Helper()
	assert.Equal(t, address, of[*amqp.Open](f)[0].ContainerID)
	links := of[*amqp.Attach](f)
	require.Len(t, links, 2)
	assert.Equal(t, key+"?", links[0].Name)
	assert.Equal(t, amqp.Some(address), links[0].Source.Address)
	assert.Equal(t, amqp.Some(address), links[1].Target.Address)
	transfers := of[*amqp.Transfer](f)
	assert.Equal(t, amqp.Some[uint32](0), transfers[0].DeliveryID)
	assert.Equal(t, binary.BigEndian.AppendUint64(nil, 0), transfers[0].DeliveryTag)
	var whole []byte
	for i, p := range f.payloads {
		assert.Equal(t, i < len(transfers)-1, transfers[i].More)
		whole = append(whole, p...)
	}
	var theirs client.Message
	require.NoError(t, theirs.UnmarshalBinary(whole))
	sameMessage(t, message, &theirs)
}
