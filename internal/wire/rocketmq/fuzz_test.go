package rocketmq_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

func addGolden(f *testing.F, prefix string, skip int) {
	for name, b := range readGolden(f) {
		if len(name) >= len(prefix) && name[:len(prefix)] == prefix {
			f.Add(b[skip:])
		}
	}
}

// FuzzFrame: no bytes make the parser fail otherwise than with ErrFrame, and frames that it takes can be written again.
func FuzzFrame(f *testing.F) {
	addGolden(f, "frame ", wire.LengthSize)
	f.Add(jsonFrame(`{"code":310,"extFields":{"a":"\u0001\\ü\ud83d\ude00","n":5,"b":true,"z":null},"flag":0,"opaque":-3}`, "body"))
	f.Add([]byte{1, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r wire.Frame
		if err := r.Parse(b); err != nil {
			require.ErrorIs(t, err, wire.ErrFrame)
			return
		}
		var w wire.Writer
		w.Begin(r.Code, r.Flag, r.Opaque, string(r.Remark))
		for b := r.Fields; len(b) > 0; {
			key, value, rest := wire.CutField(b)
			require.NotNil(t, r.Get(string(key)))
			w.Text(string(key), string(value))
			b = rest
		}
		w.End(len(r.Body))
		w.B = append(w.B, r.Body...)
		if len(w.B) > wire.MaxHeader {
			return
		}
		var again wire.Frame
		require.NoError(t, again.Parse(w.B[wire.LengthSize:]))
		require.Equal(t, r.Code, again.Code)
		require.Equal(t, r.Opaque, again.Opaque)
		require.Equal(t, r.Flag, again.Flag)
		require.Equal(t, string(r.Remark), string(again.Remark))
		require.Equal(t, string(r.Fields), string(again.Fields))
		require.Equal(t, string(r.Body), string(again.Body))
	})
}

// FuzzJSON: we read a header as encoding/json reads it.
func FuzzJSON(f *testing.F) {
	f.Add(`{"code":310,"extFields":{"a":"\u0001\\ü\ud83d\ude00x\ud83d"},"flag":0,"opaque":-3,"remark":"\u00fc"}`)
	f.Add(` { "extFields" : { } , "code" : 1 , "remark":null, "l":"]" } `)
	f.Fuzz(func(t *testing.T, text string) {
		var want struct {
			Code    int32              `json:"code"`
			Remark  string             `json:"remark"`
			Version int32              `json:"version"`
			Fields  map[string]*string `json:"extFields"`
		}
		if !utf8.ValidString(text) || json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		var keys map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &keys))
		for key := range keys {
			switch key {
			case "code", "remark", "version", "extFields", "flag", "opaque":
			default:
				return // encoding/json takes CODE for code
			}
		}
		var r wire.Frame
		if r.Parse(jsonFrame(text, "")) != nil {
			return // a number such as 1e3, or one that is null, that we do not take
		}
		seen := fieldsOf(t, &r)
		given := 0
		for _, value := range want.Fields {
			if value != nil {
				given++
			}
		}
		if bytes.Count([]byte(text), []byte(`"`)) > 2*(len(keys)+len(want.Fields)+given+1) || len(seen) != given {
			return // a key comes twice: encoding/json takes the last
		}
		require.EqualValues(t, want.Code, int32(r.Code)) //nolint:gosec // a code of 32 bits
		require.Equal(t, want.Remark, string(r.Remark))
		for key, value := range want.Fields {
			if value != nil {
				require.Equal(t, *value, seen[key])
			}
		}
	})
}

// FuzzMessage: the parts of stored messages lie within them, and a message that was cut can be appended again.
func FuzzMessage(f *testing.F) {
	addGolden(f, "message ", 0)
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			var m, again wire.Message
			rest, err := m.Cut(b)
			if err != nil {
				require.ErrorIs(t, err, wire.ErrMessage)
				return
			}
			require.Less(t, len(rest), len(b))
			require.LessOrEqual(t, len(m.Body)+len(m.Topic)+len(m.Properties)+len(m.BornHost)+len(m.StoreHost)+len(rest), len(b))
			if b = rest; len(m.BornHost)+len(m.StoreHost) > 16 {
				continue // of IPv6, which is not written
			}
			out := wire.AppendMessage(nil, &m.MessageHead, m.Body, m.Topic, m.Properties)
			over := musttest.Get(again.Cut(out))(t)
			require.Empty(t, over)
			m.Checksum = again.Checksum
			require.Equal(t, m, again)
		}
	})
}

// FuzzProperties: both ways to find a property agree, and reading ends.
func FuzzProperties(f *testing.F) {
	f.Add([]byte("TAGS\x01a\x02DELAY\x0118\x02x\x01"), "x")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		want := wire.Property(b, name)
		for rest := b; len(rest) > 0; {
			var key, value []byte
			before := len(rest)
			if key, value, rest = wire.CutProperty(rest); string(key) == name && name != "" {
				require.Equal(t, string(want), string(value))
				return
			}
			require.Less(t, len(rest), before)
		}
		require.True(t, want == nil || name == "" || !wire.CarriesProperty(name))
	})
}

// FuzzInflate: no output is longer than its limit, and compressed bytes come back.
func FuzzInflate(f *testing.F) {
	f.Add([]byte("hello"), 100)
	f.Add(wire.Deflate([]byte("hello")), 3)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		limit = min(max(limit, 0), 1<<16)
		var i wire.Inflater
		if got, err := i.Inflate(0, b, limit); err == nil {
			require.LessOrEqual(t, len(got), limit)
		}
		got, err := i.Inflate(wire.SysCompressionZlib, wire.Deflate(b), limit)
		if len(b) > limit {
			require.ErrorIs(t, err, wire.ErrTooLong)
			return
		}
		require.NoError(t, err)
		require.Equal(t, string(b), string(got))
	})
}

// FuzzUnmarshalJSON: putting quotes around keys changes nothing in JSON that is right, and ends in all else.
func FuzzUnmarshalJSON(f *testing.F) {
	f.Add([]byte(`{"x":{-1:"{0:"},"y":[1,2,{3:4}]}`))
	f.Add([]byte(`{"a\"{1:":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var ours, theirs any
		err := wire.UnmarshalJSON(b, &ours)
		if json.Unmarshal(b, &theirs) == nil {
			require.NoError(t, err)
			require.Equal(t, theirs, ours)
		}
	})
}
