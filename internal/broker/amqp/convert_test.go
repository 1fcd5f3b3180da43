package amqp

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// TestConvert: an encoded message of another protocol has the same content when it is read.
func TestConvert(t *testing.T) {
	list := []store.Property{
		{Key: "s", Value: "text"},
		{Key: "b", Value: true},
		{Key: "i", Value: int64(math.MinInt64)},
		{Key: "f", Value: 1.5},
		{Key: "x", Value: []byte{0, 1}},
	}
	for name, c := range map[string]struct {
		content storetest.Content
		kind    wire.Descriptor
	}{
		"empty":        {storetest.Content{}, wire.DescData},
		"text":         {storetest.Content{Data: "täxt", IsText: true, List: list}, wire.DescValue},
		"binary":       {storetest.Content{Data: "\x00\xff", List: list}, wire.DescData},
		"not text":     {storetest.Content{Data: "\xff\xfe", IsText: true}, wire.DescData},
		"a large body": {storetest.Content{Data: strings.Repeat("x", 1000)}, wire.DescData},
	} {
		t.Run(name, func(t *testing.T) {
			m := &store.Message{Content: c.content, Group: "g", Expires: 1 << 40}
			var n message
			require.NoError(t, n.read(encoded(m), ""))
			assert.Equal(t, c.kind, n.bodyKind)
			assert.Equal(t, c.kind == wire.DescValue, n.Text())
			assert.Equal(t, c.content.Data, string(n.Body()))
			assert.Equal(t, "g", n.Group)
			assert.Equal(t, int64(1<<40), n.Expires)
			assert.ElementsMatch(t, c.content.List, n.Properties())
			for _, p := range c.content.List {
				assert.Equal(t, p.Value, n.Property(p.Key))
			}
			assert.Nil(t, n.Property("none"))
		})
	}
}

// TestAddressing: IDs of all types survive the way over another protocol.
func TestAddressing(t *testing.T) {
	uuid := append([]byte{wire.CodeUUID}, make([]byte, 16)...)
	for text, id := range map[string][]byte{
		"text":                               wire.AppendStr(nil, "text"),
		"AMQP:5307":                          wire.AppendUlong(nil, 7),
		"AMQP:a00100":                        wire.AppendBinary(nil, []byte{0}),
		"AMQP:98" + strings.Repeat("00", 16): uuid,
		"AMQP:":                              wire.AppendStr(nil, "AMQP:"),
		"AMQP:5307ff":                        wire.AppendStr(nil, "AMQP:5307ff"),
		"":                                   nil,
	} {
		a := store.Addressing{MessageID: text, CorrelationID: text, ReplyTo: "R"}
		var n message
		require.NoError(t, n.read(encoded(&store.Message{Content: storetest.Content{Address: a}}), ""))
		var p wire.Properties
		require.NoError(t, p.Decode(n.properties))
		assert.Equal(t, id, p.MessageID, text)
		assert.Equal(t, id, p.CorrelationID, text)
		assert.Equal(t, a, n.Addressing(), text)
	}
}

// TestBodies: how bodies of all kinds are shown to other protocols, and replaced.
func TestBodies(t *testing.T) {
	section := func(d wire.Descriptor, value []byte) []byte { return append(wire.AppendDescriptor(nil, d), value...) }
	text := wire.AppendStr(nil, "text")
	list := []byte{wire.CodeList8, 3, 2, wire.CodeTrue, wire.CodeFalse}
	for name, c := range map[string]struct {
		message []byte
		body    string
		text    bool
	}{
		"data":          {section(wire.DescData, wire.AppendBinary(nil, []byte("ab"))), "ab", false},
		"data in parts": {append(section(wire.DescData, wire.AppendBinary(nil, []byte("ab"))), section(wire.DescData, wire.AppendBinary(nil, []byte("cd")))...), "abcd", false},
		"text":          {section(wire.DescValue, text), "text", true},
		"binary value":  {section(wire.DescValue, wire.AppendBinary(nil, []byte("b"))), "b", false},
		"null":          {section(wire.DescValue, []byte{wire.CodeNull}), "", false},
		"another value": {section(wire.DescValue, list), string(list), false},
		"sequence":      {section(wire.DescSequence, list), string(list), false},
	} {
		t.Run(name, func(t *testing.T) {
			props := appendApplication(nil, []store.Property{{Key: "k", Value: "v"}})
			var n message
			require.NoError(t, n.read(append(props, c.message...), ""))
			assert.Equal(t, c.body, string(n.Body()))
			assert.Equal(t, c.text, n.Text())
			other := make([]byte, len(c.body))
			changed := n.WithBody(other)
			assert.Equal(t, string(other), string(changed.Body()))
			assert.Equal(t, c.text, changed.(*message).text)
			assert.Equal(t, "v", changed.(*message).Property("k"))
			assert.Equal(t, c.body, string(n.Body()), "the original is as it was")
		})
	}
}

// TestUnsettled: numbers are serial, and one that stays does not keep the rest.
func TestUnsettled(t *testing.T) {
	var s session
	u := &s.unsettled
	u.Next, u.First = 1<<32-3, 1<<32-3
	l := &outLink{}
	ids := func(first, last uint32) (list []uint64) {
		u.EachSerial(first, last, func(n uint64) { list = append(list, u.Get(n).id) })
		return list
	}
	for i := range uint64(6) {
		u.Add(delivered{l, i})
	}
	assert.Equal(t, []uint64{1, 2, 3, 4}, ids(1<<32-2, 1))
	assert.Equal(t, []uint64{3, 4, 5}, ids(0, 1<<31-1), "a range with an end far away")
	assert.Empty(t, ids(5, 0), "an end before the beginning")
	assert.Empty(t, ids(3, 100), "the future")
	for i := range uint64(10_000) {
		n := u.Next
		u.Add(delivered{l, 100 + i})
		u.Remove(n)
	}
	assert.LessOrEqual(t, u.Next-u.First, uint64(64))
	assert.ElementsMatch(t, []uint64{0, 1, 2, 3, 4, 5}, ids(1<<32-3, uint32(u.Next)-1))
	u.Remove(1<<32 - 3)
	s.forget(l)
	assert.Empty(t, ids(1<<32-3, uint32(u.Next)-1))
}
