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

// FuzzMessageBesideGoAMQP: a message that we and go-amqp can read is the same to both. Which malformed ones are refused may differ.
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

// plain tells whether what is in a message are values that both sides can show: no lists, arrays and other values within, no
// key twice, and nothing between the end of the last value of a list and the end of the list, where go-amqp goes on reading.
func plain(t testing.TB, b []byte) bool {
	t.Helper()
	d := amqp.NewDecoder(b)
	for d.More() {
		section := d.Descriptor()
		at := d
		if section == amqp.DescData {
			d.Skip()
			continue
		}
		list, isList := at.List()
		if section == amqp.DescValue || !isList {
			at = d
			list, _ = at.Map()
		}
		if section == amqp.DescValue {
			at = d
			v := at.Scalar()
			if !shown(v) {
				return false
			}
			d.Skip()
			continue
		}
		seen := map[any]bool{}
		for i := 0; list.More(); i++ {
			v := list.Scalar()
			_, isBytes := v.([]byte)
			if !shown(v) || section != amqp.DescSequence && isList && i > 12 {
				return false
			}
			if !isList && i%2 == 0 {
				if isBytes || seen[clientValue(t, v)] {
					return false
				}
				seen[clientValue(t, v)] = true
			}
		}
		if list.Err() != nil || len(list.Rest()) > 0 {
			return false
		}
		d.Skip()
	}
	return d.Err() == nil
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

// FuzzMessageOfGoAMQP: we read what go-amqp writes, and go-amqp reads what we write of the same content.
func FuzzMessageOfGoAMQP(f *testing.F) {
	f.Add(
		true,
		uint8(9),
		uint32(1000),
		uint32(3),
		"text",
		"key",
		int64(-5),
		1.5,
		[]byte("body"),
		uint8(0),
		uint16(0xffff),
	)
	f.Add(false, uint8(4), uint32(0), uint32(0), "", "", int64(math.MaxInt64), -1e-300, []byte{}, uint8(1), uint16(0))
	f.Add(
		false,
		uint8(0),
		uint32(1),
		uint32(math.MaxUint32),
		long,
		"k",
		int64(1<<40),
		math.MaxFloat64,
		[]byte(long),
		uint8(2),
		uint16(0x0505),
	)
	f.Fuzz(
		func(t *testing.T, durable bool, priority uint8, ttl, number uint32, text, key string, n int64, x float64, body []byte, kind uint8, set uint16) {
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
		},
	)
}

// FuzzTalkWithGoAMQP: a connection from open to close, with names, numbers, messages and errors of all kinds. Each side reads what
// the other meant.
func FuzzTalkWithGoAMQP(f *testing.F) {
	f.Add(
		"container",
		"queue",
		"key",
		"amqp:not-found",
		"why",
		[]byte("body"),
		uint32(1000),
		uint16(600),
		uint64(1<<40),
	)
	f.Add(long, "q/ü", "", "x", "", []byte{}, uint32(1), uint16(0), uint64(0))
	f.Add("", long, long, long, long, []byte(long+long+long), uint32(255), uint16(255), uint64(255))
	f.Fuzz(
		func(t *testing.T, container, address, key, condition, description string, body []byte, number uint32, maxFrame uint16, limit uint64) {
			for _, s := range []string{container, address, key, condition, description} {
				if !utf8.ValidString(s) {
					return
				}
			}
			if address == "" || condition == "" || limit > 0 && limit < uint64(len(body)+200) ||
				len(body)+len(key) > 60_000 {
				return // go-amqp takes it for something else, or does not send it
			}
			tmpl, err := amqp.NewTemplate(
				&amqp.Content{
					TimeKey:     "time",
					IDKey:       "perfmq_id",
					Body:        body,
					Application: []amqp.Property{{Key: key, Value: number}},
				},
			)
			require.NoError(t, err)
			message := tmpl.Append(nil, int64(limit>>1), []byte(description))
			fake := peer()
			largest := max(uint32(maxFrame), amqp.MinMaxFrameSize)
			window := number | 1<<10
			fake.open = amqp.Open{
				ContainerID: container, Hostname: address, MaxFrameSize: amqp.Some(largest), IdleTimeout: number | 1<<16, Properties: fields(key+"!", container),
				OfferedCapabilities: []string{key, address},
			}
			fake.begin = amqp.Begin{
				NextOutgoingID: number,
				IncomingWindow: window,
				OutgoingWindow: window,
				HandleMax:      amqp.Some(number | 1),
			}
			fake.credit = 1
			fake.attach = func(a *amqp.Attach) amqp.Attach {
				answer := echo(a)
				answer.MaxMessageSize = limit
				answer.InitialDeliveryCount = amqp.Some(uint32(0))
				return answer
			}
			reason := &amqp.Error{Condition: condition, Description: description, Info: fields("k", description)}
			fake.flow = func(w *amqp.Flow) []byte {
				if !w.Handle.OK || w.LinkCredit.V == 0 {
					return nil
				}
				fake.flow = nil
				return deliver(w.Handle.V, number, message, 512)
			}
			fake.transfer = func(tr *amqp.Transfer, _ []byte) []frame {
				if tr.More {
					return nil
				}
				return []frame{
					&amqp.Disposition{
						Role:    amqp.RoleReceiver,
						Settled: true,
						State:   state(amqp.State{Kind: amqp.DescRejected, Error: reason}),
					},
				}
			}
			var rejected amqp.State
			settled := make(chan struct{}, 1)
			fake.settle = func(d *amqp.Disposition) {
				assert.Equal(t, number, d.First)
				rejected, err = amqp.ParseState(d.State)
				settled <- struct{}{}
			}
			want := &client.Error{
				Condition:   client.ErrCond(condition),
				Description: description,
				Info:        map[string]any{"k": description},
			}
			var sent client.Message
			require.NoError(t, sent.UnmarshalBinary(message))
			talk(
				t,
				fake,
				&client.ConnOptions{ContainerID: address, MaxFrameSize: largest},
				func(ctx context.Context, c *client.Conn) {
					assert.Equal(t, map[string]any{key + "!": container}, c.Properties())
					s, err := c.NewSession(ctx, nil)
					require.NoError(t, err)
					r, err := s.NewReceiver(ctx, address, &client.ReceiverOptions{Name: key + "?", Credit: 1})
					require.NoError(t, err)
					assert.Equal(t, address, r.Address())
					got, err := r.Receive(ctx, nil)
					require.NoError(t, err)
					sameMessage(t, message, got)
					require.NoError(t, r.RejectMessage(ctx, got, want))
					<-settled
					l, err := s.NewSender(ctx, address, nil)
					require.NoError(t, err)
					assert.Equal(t, limit, l.MaxMessageSize())
					receipt, err := l.SendWithReceipt(ctx, &sent, nil)
					require.NoError(t, err)
					outcome, err := receipt.Wait(ctx)
					require.NoError(t, err)
					assert.Equal(t, &client.StateRejected{Error: want}, outcome)
				},
			)
			require.NoError(t, err)
			assert.Equal(t, condition, rejected.Error.Condition)
			assert.Equal(t, description, rejected.Error.Description)
			checkTalk(t, fake, address, key, message)
		},
	)
}

// checkTalk holds what go-amqp has said against what it was told to.
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
