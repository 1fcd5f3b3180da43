package amqp_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/wire/amqp"
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// section is a section with a value.
func section(d amqp.Descriptor, value []byte) []byte {
	return append(amqp.AppendDescriptor(nil, d), value...)
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	return musttest.Get(amqp.AppendScalar(nil, v))(t)
}

// pairs is a map of properties.
func pairs(t testing.TB, list ...amqp.Property) []byte {
	t.Helper()
	b := amqp.BeginMap(nil)
	for _, p := range list {
		b = musttest.Get(amqp.AppendScalar(amqp.AppendStr(b, p.Key), p.Value))(t)
	}
	amqp.EndCompound(b, 0, 2*len(list))
	return b
}

func allProperties() amqp.Properties {
	return amqp.Properties{
		MessageID: []byte{amqp.CodeSmallUlong, 7}, To: []byte("to"), Subject: []byte("subject"),
		ReplyTo:            []byte("reply"),
		CorrelationID:      uuid,
		AbsoluteExpiryTime: amqp.Some[int64](1_800_000_000_000), GroupID: []byte(""),
	}
}

// messages are messages that go-amqp can read; their parts are read by TestMessages.
func messages(t testing.TB) []golden {
	header := amqp.Header{
		Durable: true, Priority: amqp.Some[uint8](9), TTL: amqp.Some[uint32](60000), FirstAcquirer: true, DeliveryCount: 3,
	}
	properties := allProperties()
	annotations := fields("x-opt-a", "b")
	list := encodedList(t, int64(1), "two")
	tmpl, err := amqp.NewTemplate(&amqp.Content{
		Header:      amqp.Header{Durable: true, TTL: amqp.Some[uint32](1)},
		Properties:  amqp.Properties{GroupID: []byte("group")},
		Application: []amqp.Property{{"s", "text"}, {"i", int64(300)}, {"b", true}, {"f", 1.5}},
		TimeKey:     "time", IDKey: "perfmq_id", Body: []byte("body"),
	})
	require.NoError(t, err)
	text := musttest.Get(amqp.NewTemplate(&amqp.Content{TimeKey: "time", Body: []byte("text"), Text: true}))(t)
	plain := musttest.Get(amqp.NewTemplate(&amqp.Content{Body: []byte(long)}))(t)
	return []golden{
		{"data", amqp.AppendData(nil, []byte("body"))},
		{"empty data", amqp.AppendData(nil, nil)},
		{"two data sections", join(amqp.AppendData(nil, []byte("bo")), amqp.AppendData(nil, []byte("dy")))},
		{"text", amqp.AppendTextValue(nil, "text")},
		{"binary value", section(amqp.DescValue, encoded(t, []byte{1, 2}))},
		{"null value", section(amqp.DescValue, []byte{amqp.CodeNull})},
		{"long value", section(amqp.DescValue, encoded(t, int64(1<<40)))},
		{"sequence", section(amqp.DescSequence, list)},
		{"all sections", join(header.AppendSection(nil), section(amqp.DescDeliveryAnnotations, fields("x-opt-d", "e")),
			section(amqp.DescMessageAnnotations, annotations), properties.AppendSection(nil),
			section(amqp.DescApplicationProperties, pairs(t, amqp.Property{Key: "k", Value: "v"})),
			amqp.AppendData(nil, []byte(long)), section(amqp.DescFooter, fields("x-opt-f", "g")))},
		{"least header", join((&amqp.Header{}).AppendSection(nil), amqp.AppendData(nil, nil))},
		{"template with an ID", tmpl.Append(nil, 1_700_000_000_123_456, []byte("1-2-3-4"), "", nil)},
		{"template without an ID", tmpl.Append(nil, 1, nil, "", nil)},
		{"template, time before 1970, long ID", tmpl.Append(nil, -1, []byte(long), "", nil)},
		{"template of text with a time", text.Append(nil, math.MaxInt64, []byte("no place for it"), "", nil)},
		{"template of a body alone", plain.Append(nil, 5, nil, "", nil)},
	}
}

func encodedList(t testing.TB, values ...any) []byte {
	b := amqp.BeginList(nil)
	for _, v := range values {
		b = append(b, encoded(t, v)...)
	}
	amqp.EndCompound(b, 0, len(values))
	return b
}

// TestMessages: messages are written as the golden file has them, and read as they were meant.
func TestMessages(t *testing.T) {
	checkGolden(t, "messages.golden", messages(t))
	read := map[string]amqp.Message{}
	for _, g := range readGolden(t, "messages.golden") {
		var m amqp.Message
		require.NoError(t, m.Decode(g.bytes), g.name)
		read[g.name] = m
	}
	payload := func(name string) any {
		m := read[name]
		if b := m.Payload(nil); b != nil {
			return string(b)
		}
		return nil
	}
	for name, want := range map[string]any{
		"data": "body", "empty data": "", "two data sections": "body", "text": "text", "binary value": "\x01\x02", "null value": nil,
		"long value": nil, "sequence": nil, "all sections": long, "least header": "", "template with an ID": "body",
		"template without an ID": "body", "template, time before 1970, long ID": "body", "template of text with a time": "text",
		"template of a body alone": long,
	} {
		assert.Equal(t, want, payload(name), name)
	}
	require.Len(t, read, 15)

	all := read["all sections"]
	assert.Equal(t, amqp.Header{
		Durable: true, Priority: amqp.Some[uint8](9), TTL: amqp.Some[uint32](60000), FirstAcquirer: true, DeliveryCount: 3,
	}, all.Header)
	var p amqp.Properties
	require.NoError(t, p.Decode(all.Properties))
	assert.Equal(t, allProperties(), p)
	assert.Equal(t, fields("x-opt-a", "b"), all.MessageAnnotations)
	assert.Equal(t, pairs(t, amqp.Property{Key: "k", Value: "v"}), all.ApplicationProperties)
	assert.Equal(t, amqp.DescData, all.BodyKind)
	assert.True(t, bytes.HasPrefix(all.Forward, section(amqp.DescMessageAnnotations, nil)))
	assert.True(t, bytes.HasSuffix(all.Forward, fields("x-opt-f", "g")))

	data := read["data"]
	assert.Equal(t, amqp.Header{}, data.Header)
	assert.Equal(t, amqp.NormalPriority, data.Header.Priority.Or(amqp.NormalPriority))
	assert.Nil(t, data.Properties)
	require.NoError(t, p.Decode(data.Properties))
	assert.Equal(t, amqp.Properties{}, p)
	assert.Empty(t, p.AppendSection(nil), "no properties are no section")
	assert.Equal(t, amqp.AppendData(nil, []byte("body")), data.Forward)
	two := read["two data sections"]
	assert.Equal(t, "bo", string(two.Body))
	assert.Equal(t, 2, two.BodySections)
	scratch := make([]byte, 3, 10)
	assert.Same(t, &scratch[0], &two.Payload(scratch)[0])
	var empty amqp.Message
	require.NoError(t, empty.Decode(join(amqp.AppendData(nil, nil), amqp.AppendData(nil, nil))))
	assert.Equal(t, []byte{}, empty.Payload(nil), "a body without bytes is a body")
	value, sequence := read["long value"], read["sequence"]
	assert.Equal(t, encoded(t, int64(1<<40)), value.Body)
	assert.Equal(t, encodedList(t, int64(1), "two"), sequence.Body)
	null := read["null value"]
	assert.Equal(t, []byte{amqp.CodeNull}, null.Body)

	for name, c := range map[string]struct {
		time any
		id   any
	}{
		"template with an ID":                 {int64(1_700_000_000_123_456), "1-2-3-4"},
		"template without an ID":              {int64(1), nil},
		"template, time before 1970, long ID": {int64(-1), long},
		"template of text with a time":        {int64(math.MaxInt64), nil},
		"template of a body alone":            {nil, nil},
	} {
		d := amqp.Lookup(read[name].ApplicationProperties, "time")
		assert.Equal(t, c.time, d.Scalar(), name)
		d = amqp.Lookup(read[name].ApplicationProperties, "perfmq_id")
		assert.Equal(t, c.id, d.Scalar(), name)
	}
	with := read["template with an ID"]
	for key, want := range map[string]any{"s": "text", "i": int64(300), "b": true, "f": 1.5} {
		d := amqp.Lookup(with.ApplicationProperties, key)
		assert.Equal(t, want, d.Scalar(), key)
	}
}

// TestTemplate: a message is as long as Size says, whatever is before it.
func TestTemplate(t *testing.T) {
	for _, c := range []amqp.Content{
		{TimeKey: "time", IDKey: "perfmq_id", Body: make([]byte, 1024), Application: []amqp.Property{{"k", "v"}}},
		{IDKey: "perfmq_id", Body: []byte("x")},
		{TimeKey: "time"},
		{},
	} {
		tmpl := musttest.Get(amqp.NewTemplate(&c))(t)
		for _, n := range []int{0, 1, 7, 79, 255, 256, 1000} {
			id := bytes.Repeat([]byte{'9'}, n)
			before := []byte("before")
			b := tmpl.Append(before, 42, id, "", nil)[len(before):]
			assert.Len(t, b, tmpl.Size(n, nil))
			var m amqp.Message
			require.NoError(t, m.Decode(b))
			assert.Equal(t, c.Body, append([]byte(nil), m.Payload(nil)...))
			d := amqp.Lookup(m.ApplicationProperties, "perfmq_id")
			text, _ := d.Text()
			if c.IDKey == "" || n == 0 {
				assert.Nil(t, text)
			} else {
				assert.Equal(t, id, text)
			}
			d = amqp.Lookup(m.ApplicationProperties, "time")
			time, ok := d.Integer()
			assert.Equal(t, c.TimeKey != "", ok)
			assert.Equal(t, ok, time == 42)
		}
		for i := range c.Body {
			c.Body[i] = '!'
		}
		var m amqp.Message
		require.NoError(t, m.Decode(tmpl.Append(nil, 1, nil, "", nil)))
		assert.Equal(t, string(c.Body), string(m.Payload(nil)), "producers share the body")
	}
	varying := amqp.Content{
		TimeKey: "time", IDKey: "perfmq_id", Body: []byte("body"), Application: []amqp.Property{{"k", "v"}},
		Varying: []string{"color", "empty"},
	}
	tmpl := musttest.Get(amqp.NewTemplate(&varying))(t)
	for _, color := range []string{"", "red", strings.Repeat("x", 300)} {
		for _, id := range []string{"", "1-2"} {
			values := [][]byte{[]byte(color), {}}
			b := tmpl.Append(nil, 42, []byte(id), "", nil, values...)
			require.LessOrEqual(t, len(b), tmpl.Size(len(id), nil, values...))
			var m amqp.Message
			require.NoError(t, m.Decode(b))
			require.Equal(t, "body", string(m.Payload(nil)))
			for key, want := range map[string]string{"k": "v", "color": color, "empty": "", "perfmq_id": id} {
				d := amqp.Lookup(m.ApplicationProperties, key)
				text, _ := d.Text()
				require.Equal(t, want, string(text), key)
			}
			d := amqp.Lookup(m.ApplicationProperties, "time")
			time, _ := d.Integer()
			require.EqualValues(t, 42, time)
		}
	}
	_, err := amqp.NewTemplate(&amqp.Content{Application: []amqp.Property{{"k", struct{}{}}}})
	require.ErrorIs(t, err, amqp.ErrEncode)
	require.EqualError(t, err, `property "k": no AMQP type stands for this value: struct {}`)
}

// TestTransactionMessages: messages to a coordinator are read as the declare or discharge that they carry.
func TestTransactionMessages(t *testing.T) {
	parse := func(b []byte) amqp.Body {
		var m amqp.Message
		require.NoError(t, m.Decode(b))
		assert.Equal(t, amqp.DescValue, m.BodyKind)
		return musttest.Get(amqp.ParseBody(m.Body))(t)
	}
	assert.Equal(t, amqp.DescDeclare, parse(amqp.AppendDeclare(nil)).Kind)
	for _, want := range []*amqp.Discharge{{TxnID: []byte{1, 2, 3}}, {TxnID: []byte{}, Fail: true}} {
		p := parse(want.AppendMessage(nil))
		assert.Equal(t, amqp.DescDischarge, p.Kind)
		var got amqp.Discharge
		require.NoError(t, got.Decode(&p.Fields))
		assert.Equal(t, want, &got)
	}
}

// TestMalformedMessages: errors name the section.
func TestMalformedMessages(t *testing.T) {
	header := (&amqp.Header{}).AppendSection(nil)
	data := amqp.AppendData(nil, []byte("x"))
	value := amqp.AppendTextValue(nil, "x")
	empty := []byte{amqp.CodeMap8, 1, 0}
	for _, c := range []struct {
		name  string
		bytes []byte
		says  string
		want  error
	}{
		{"no section", []byte{amqp.CodeNull}, "message: an unexpected descriptor", amqp.ErrDescriptor},
		{"no described value", []byte{amqp.CodeTrue}, "message: a value of another type was expected", amqp.ErrType},
		{"another type", section(amqp.DescOpen, []byte{amqp.CodeList0}), "message: an unexpected descriptor", amqp.ErrDescriptor},
		{"an unknown section", section(0x79, []byte{amqp.CodeList0}), "message: an unexpected descriptor", amqp.ErrDescriptor},
		{"no value", section(amqp.DescData, nil), "data: a value is longer than the data that contains it", amqp.ErrTruncated},
		{"cut", data[:len(data)-1], "data: a value is longer than the data that contains it", amqp.ErrTruncated},
		{"header twice", join(header, header, data), "message: message sections are out of order", amqp.ErrSections},
		{"header behind the body", join(data, header), "message: message sections are out of order", amqp.ErrSections},
		{"two values", join(value, value), "message: message sections are out of order", amqp.ErrSections},
		{"data and value", join(data, value), "message: message sections are out of order", amqp.ErrSections},
		{"data behind value", join(value, data), "message: message sections are out of order", amqp.ErrSections},
		{"data and sequence", join(data, section(amqp.DescSequence, []byte{amqp.CodeList0})), "message: message sections are out of order", amqp.ErrSections},
		{"null header", section(amqp.DescHeader, []byte{amqp.CodeNull}), "header: a value of another type was expected", amqp.ErrType},
		{"header of a string", section(amqp.DescHeader, []byte{amqp.CodeList8, 3, 1, amqp.CodeStr8, 0}), "header, field 1: a value of another type was expected", amqp.ErrType},
		{"null properties", section(amqp.DescProperties, []byte{amqp.CodeNull}), "properties: a value of another type was expected", amqp.ErrType},
		{"properties in a map", section(amqp.DescProperties, empty), "properties: a value of another type was expected", amqp.ErrType},
		{"properties' count", section(amqp.DescProperties, []byte{amqp.CodeList8, 1, 1}), "properties: the number of values cannot be right", amqp.ErrCount},
		{"null properties of the application", section(amqp.DescApplicationProperties, []byte{amqp.CodeNull}), "application-properties: a value of another type was expected", amqp.ErrType},
		{"odd map", section(amqp.DescApplicationProperties, []byte{amqp.CodeMap8, 2, 1, amqp.CodeNull}), "application-properties: the number of values cannot be right", amqp.ErrCount},
		{"annotations in a list", section(amqp.DescMessageAnnotations, []byte{amqp.CodeList0}), "message-annotations: a value of another type was expected", amqp.ErrType},
		{"delivery annotations' count", section(amqp.DescDeliveryAnnotations, []byte{amqp.CodeMap8, 1, 2}), "delivery-annotations: the number of values cannot be right", amqp.ErrCount},
		{"footer in a list", join(data, section(amqp.DescFooter, []byte{amqp.CodeList0})), "footer: a value of another type was expected", amqp.ErrType},
		{"null data", section(amqp.DescData, []byte{amqp.CodeNull}), "data: a value of another type was expected", amqp.ErrType},
		{"map as sequence", section(amqp.DescSequence, empty), "amqp-sequence: a value of another type was expected", amqp.ErrType},
		{"sequence's count", section(amqp.DescSequence, []byte{amqp.CodeList8, 1, 1}), "amqp-sequence: the number of values cannot be right", amqp.ErrCount},
		{"no such value", section(amqp.DescValue, []byte{0x30}), "amqp-value: a value of another type was expected", amqp.ErrType},
	} {
		var m amqp.Message
		err := m.Decode(c.bytes)
		require.EqualError(t, err, c.says, c.name)
		require.ErrorIs(t, err, c.want)
	}
	for _, list := range []string{"c0 02 01 42", "c0 03 01 a3 00", "c0 04 03 40 40 43"} {
		var p amqp.Properties
		err := p.Decode(unhex(t, list))
		require.ErrorIs(t, err, amqp.ErrType, list)
		require.ErrorContains(t, err, "properties, field ")
	}
	for _, list := range [][]byte{{}, {amqp.CodeMap8, 1, 0}} {
		var p amqp.Properties
		require.Error(t, p.Decode(list))
	}
	var m amqp.Message
	require.NoError(t, m.Decode(nil), "a message of no sections is for others to judge")
	assert.Equal(t, amqp.Message{}, m)
	assert.Nil(t, m.Payload(nil))
	require.NoError(t, m.Decode(join(header, section(amqp.DescApplicationProperties, empty))))
	assert.Equal(t, amqp.Descriptor(0), m.BodyKind)
}

// Properties of its own take the place of the template's, whatever comes before and after them.
func TestPropertiesOfTemplate(t *testing.T) {
	own := amqp.Properties{
		MessageID: amqp.AppendStr(nil, "1-2"), To: []byte("service"), ReplyTo: []byte("replies"),
		CorrelationID: amqp.AppendStr(nil, "1-2"), GroupID: []byte("key-2"),
	}
	for _, before := range []amqp.Properties{{}, {GroupID: []byte("key-1")}} {
		c := amqp.Content{Properties: before, TimeKey: "time", IDKey: "id", Body: []byte("body")}
		c.Application = []amqp.Property{{Key: "color", Value: "red"}}
		tmpl := musttest.Get(amqp.NewTemplate(&c))(t)
		section := own.AppendSection(nil)
		got := tmpl.Append([]byte("before"), 7, []byte("id"), "", section)
		require.Len(t, got, len("before")+tmpl.Size(2, section))
		c.Properties = own
		want := musttest.Get(amqp.NewTemplate(&c))(t).Append([]byte("before"), 7, []byte("id"), "", nil)
		require.Equal(t, want, got)
	}
}

// A group takes the place of the template's, behind whatever comes before the message.
func TestGroupOfTemplate(t *testing.T) {
	for _, c := range []*amqp.Content{
		{Properties: amqp.Properties{GroupID: []byte("key-1")}, TimeKey: "key-1", Body: []byte("key-1")},
		{Properties: amqp.Properties{To: []byte("key-1"), GroupID: []byte("key-1")}, IDKey: "key-1", Text: true},
	} {
		tmpl := musttest.Get(amqp.NewTemplate(c))(t)
		require.Equal(t, tmpl.Append(nil, 7, []byte("id"), "", nil), tmpl.Append(nil, 7, []byte("id"), "key-1", nil))
		got := tmpl.Append([]byte("before"), 7, []byte("id"), "key-2", nil)
		c.Properties.GroupID = []byte("key-2")
		want := musttest.Get(amqp.NewTemplate(c))(t).Append([]byte("before"), 7, []byte("id"), "", nil)
		require.Equal(t, want, got)
	}
}
