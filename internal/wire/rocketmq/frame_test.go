package rocketmq_test

import (
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// jsonFrame is a frame without its length.
func jsonFrame(header, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(header)))
	return append(append(b, header...), body...)
}

func TestJSONHeaders(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]struct {
		code           int
		opaque         uint32
		version        int
		remark, fields string
		none           bool
	}{
		`{}`: {},
		`{"code":17,"extFields":{"queueId":"3","msgId":"7F00"},"flag":1,"opaque":-5,"version":513}`: {
			code: 17, opaque: 1<<32 - 5, version: 513, fields: "queueId=3 msgId=7F00",
		},
		" { \"code\" : 1 ,\r\n\t\"extFields\" : { \"a\" : \"b\" } , \"remark\" : null } ": {code: 1, fields: "a=b"},
		`{"extFields":null,"opaque":4294967295}`:                                          {opaque: 1<<32 - 1},
		`{"extFields":{"n":5,"f":-1.5e3,"t":true,"z":null,"e":""}}`:                       {fields: "n=5 f=-1.5e3 t=true e="},
		`{"extFields":{"a":"\u0001\\\/\"\b\f\n\r\tü\ud83d\ude00"}}`:                       {fields: "a=\x01\\/\"\b\f\n\r\tü😀"},
		`{"extFields":{"\u0061":"x\ud83d","b":"\ud83d\u0041\udc00"}}`:                     {fields: "a=x\uFFFD b=\uFFFDA\uFFFD"},
		`{"remark":"a\"b\u00fc","x":[1,{"y":[]}," ]"],"z":{},"\u0063ode":9}`:              {remark: `a"bü`, code: 9},
		`{"extFields":{"a":"1"},"x":"\\","extFields":{"a":"2"}}`:                          {fields: "a=1 a=2"},

		``: {none: true}, `{`: {none: true}, `[]`: {none: true}, `{}x`: {none: true}, `{"code":"1"}`: {none: true}, `{"code":1.5}`: {none: true},
		`{"code":4294967296}`: {none: true}, `{"code":}`: {none: true}, `{"code":1,}`: {none: true}, `{"code" 1}`: {none: true}, `{,}`: {none: true},
		`{"a":"\x"}`: {none: true}, `{"a":"\u12g4"}`: {none: true}, `{"a":"\`: {none: true}, `{"a":"x`: {none: true}, `{"a":[1,2}`: {none: true},
		`{"extFields":{"a":[1]}}`: {none: true}, `{"extFields":[]}`: {none: true}, `{"extFields":{"a"}}`: {none: true},
		`{"extFields":{"` + strings.Repeat("k", 1<<15) + `":"1"}}`:                       {none: true},
		`{"extFields":{` + strings.Repeat(`"a":"",`, wire.MaxFields) + `"z":""}}`:        {none: true},
		`{"extFields":{` + strings.TrimSuffix(strings.Repeat(`"a":"",`, 10), ",") + `}}`: {fields: strings.TrimSpace(strings.Repeat("a= ", 10))},
	} {
		var f wire.Frame
		err := f.Parse(jsonFrame(header, "body"))
		if want.none {
			assert.ErrorIs(t, err, wire.ErrFrame, "%.80s", header)
			continue
		}
		require.NoError(t, err, header)
		assert.Equal(t, want.code, f.Code, header)
		assert.Equal(t, want.opaque, f.Opaque, header)
		assert.Equal(t, want.version, f.Version, header)
		assert.Equal(t, want.remark, string(f.Remark), header)
		assert.Equal(t, "body", string(f.Body), header)
		var list []string
		for b := f.Fields; len(b) > 0; {
			key, value, rest := wire.CutField(b)
			list, b = append(list, string(key)+"="+string(value)), rest
		}
		assert.Equal(t, want.fields, strings.Join(list, " "), header)
	}
}

func TestFramesThatAreNone(t *testing.T) {
	t.Parallel()
	fields := func(n int) []byte {
		b := wire.BeginFrame(nil, 1, 0, 0, "")
		for i := range n {
			b = wire.AppendInt(b, "k", int64(i))
		}
		wire.EndFrame(b, 0)
		return b[wire.LengthSize:]
	}
	short := fields(1)
	binary.BigEndian.PutUint32(short[len(short)-5:], 2) // the value
	var f wire.Frame
	require.NoError(t, f.Parse(fields(wire.MaxFields)))
	for _, b := range [][]byte{
		nil,
		{0, 0, 0},
		{0, 0, 0, 9, '{'},
		{7, 0, 0, 0},
		{wire.Binary, 0, 0, 2, 1, 1},
		append([]byte{wire.Binary, 0, 0, 17}, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255),
		append([]byte{wire.Binary, 0, 0, 21}, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 255, 255, 255),
		short,
		fields(wire.MaxFields + 1),
	} {
		require.ErrorIs(t, f.Parse(b), wire.ErrFrame, "%q", b)
	}
	large := make([]byte, wire.MaxHeader+5)
	binary.BigEndian.PutUint32(large, wire.MaxHeader+1)
	err := f.Parse(large)
	require.ErrorIs(t, err, wire.ErrFrame)
	require.ErrorContains(t, err, "a header of 1048577 bytes")
}

func TestFields(t *testing.T) {
	t.Parallel()
	b := wire.AppendInt(wire.AppendField(wire.BeginFrame(nil, 1, 0, 0, "remark"), "a", "x"), "n", -7)
	b = wire.AppendField(wire.AppendField(b, "a", "y"), "e", []byte{})
	wire.EndFrame(b, 0)
	var f wire.Frame
	require.NoError(t, f.Parse(b[wire.LengthSize:]))
	require.Equal(t, "x", string(f.Get("a")), "the first counts")
	require.Nil(t, f.Get("b"))
	require.NotNil(t, f.Get("e"))
	n, ok := f.Number("n")
	require.True(t, ok)
	require.EqualValues(t, -7, n)
	_, ok = f.Number("a")
	require.False(t, ok)
	require.EqualValues(t, -7, f.NumberOr("n", 3))
	require.EqualValues(t, 3, f.NumberOr("x", 3))
	c := f.Clone()
	clear(b)
	require.Equal(t, "remark", string(c.Remark))
	require.Equal(t, "x", string(c.Get("a")))
}

func TestParseInt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"0", "-0", "7", "-7", "007", "9223372036854775807", "-9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"", "-", "+1", " 1", "1 ", "1e3", "0x1", "--1", "99999999999999999999", "00000000000000000001", "１",
	} {
		want, err := strconv.ParseInt(text, 10, 64)
		n, ok := wire.ParseInt([]byte(text))
		if text == "+1" || len(text) > 20 {
			assert.False(t, ok, text) // no peer writes these
			continue
		}
		assert.Equal(t, err == nil, ok, text)
		if ok {
			assert.Equal(t, want, n, text)
		}
	}
}

func TestSigner(t *testing.T) {
	t.Parallel()
	require.Nil(t, wire.NewSigner("", ""))
	var none *wire.Signer
	require.Equal(t, "x", string(none.Sign(none.Begin([]byte("x")), nil)))
	require.False(t, none.Verify(&wire.Frame{}))

	s := wire.NewSigner("key", "secret")
	signed := func(s *wire.Signer, body string) *wire.Frame {
		b := s.Sign(wire.AppendField(s.Begin(wire.BeginFrame(nil, 1, 0, 0, "")), "a", "1"), []byte(body))
		wire.EndFrame(b, len(body))
		f := new(wire.Frame)
		require.NoError(t, f.Parse(append(b, body...)[wire.LengthSize:]))
		return f
	}
	require.True(t, s.Verify(signed(s, "body")))
	require.True(t, s.Verify(signed(s, "")))
	require.False(t, s.Verify(signed(wire.NewSigner("key", "other"), "body")))
	require.False(t, s.Verify(signed(nil, "body")), "there is no signature")
	f := signed(s, "body")
	f.Body[0] = 'B'
	require.False(t, s.Verify(f))

	var jumbled wire.Frame // the order of the fields does not matter
	f = signed(s, "body")
	require.NoError(t, jumbled.Parse(jsonFrame(`{"extFields":{"a":"1","Signature":"`+string(f.Get(wire.FieldSignature))+`","AccessKey":"key"}}`, "body")))
	require.True(t, s.Verify(&jumbled))
}

// TestAllocations: neither writing nor reading allocates.
func TestAllocations(t *testing.T) {
	golden := readGolden(t)
	var f wire.Frame
	var m wire.Message
	var out []byte
	var w wire.Writer
	s := wire.NewSigner("key", "secret")
	usual := jsonFrame(`{"code":0,"extFields":{"queueId":"3","TRACE_ON":"true","properties":"a\u0001b","queueOffset":"12"},"flag":1,"language":"JAVA","opaque":-5,"serializeTypeCurrentRPC":"JSON","version":513}`, "")
	for name, do := range map[string]func() bool{
		"JSON":   func() bool { return f.Parse(usual) == nil && len(f.Get("queueOffset")) == 2 },
		"binary": func() bool { return f.Parse(golden["frame send binary"][4:]) == nil && len(f.Get("b")) == 5 },
		"message": func() bool {
			_, err := m.Cut(golden["message v4"])
			return err == nil && len(wire.Property(m.Properties, "color")) == 3
		},
		"append message": func() bool {
			out = wire.AppendMessage(out[:0], &m.MessageHead, m.Body, m.Topic, m.Properties)
			return len(out) == len(golden["message v4"])
		},
		"batch": func() bool {
			b, _, ok := wire.CutBatched(golden["batch"])
			return ok && len(b.Body) == 5
		},
		"signature": func() bool {
			out = s.Begin(wire.BeginFrame(out[:0], 1, 0, 0, ""))
			out = s.Sign(wire.AppendInt(out, "a", 1234567), usual)
			wire.EndFrame(out, len(usual))
			return f.Parse(out[4:]) != nil // its body is not there
		},
		"writer": func() bool {
			w.B = w.B[:0]
			w.Begin(17, wire.FlagAnswer, 5, "no \"topic\"")
			w.Text("a", "x\x01y")
			w.Int("n", 1234567)
			w.End(0)
			return len(w.B) > 0
		},
	} {
		_, err := m.Cut(golden["message v4"])
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if !do() && name != "signature" {
				panic(name)
			}
		}), name)
	}
}
