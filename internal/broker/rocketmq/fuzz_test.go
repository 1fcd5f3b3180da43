package rocketmq

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

func binaryFrame(code uint16, body string, fields ...string) []byte {
	w := frameWriter{}
	w.begin(codecBinary, int(code), 1, 0, "")
	for i := 0; i < len(fields); i += 2 {
		w.text(fields[i], fields[i+1])
	}
	w.endHeader()
	w.b = append(w.b, body...)
	w.end()
	return w.b
}

func jsonFrame(header string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(header)))
	return append(b, header...)
}

// FuzzParse: no frame makes the decoder fail otherwise than with an error, and what it takes can be written again.
func FuzzParse(f *testing.F) {
	f.Add(binaryFrame(310, "body", "a", "b", "i", "x\x01y\x02")[4:])
	f.Add(jsonFrame(`{"code":310,"extFields":{"a":"\u0001\\ü\ud83d\ude00","n":5,"b":true,"z":null},"flag":0,"opaque":-3,"x":[1,{"y":2}]}`))
	f.Add([]byte{1, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r request
		if r.parse(b) != nil {
			return
		}
		for _, codec := range []byte{codecJSON, codecBinary} {
			w := frameWriter{}
			w.begin(codec, r.code, r.opaque, r.flag, "")
			for _, x := range r.fields {
				if len(x.key) > 1<<15 || codec == codecJSON && bytes.ContainsAny(x.key, "\"\\") {
					return
				}
				w.text(string(x.key), string(x.value))
			}
			w.endHeader()
			w.b = append(w.b, r.body...)
			w.end()
			var again request
			if codec == codecJSON && !keysPlain(&r) {
				continue
			}
			require.NoError(t, again.parse(w.b[4:]))
			require.Equal(t, r.opaque, again.opaque)
			require.Len(t, again.fields, len(r.fields))
			for i := range r.fields {
				require.Equal(t, string(r.fields[i].value), string(again.fields[i].value))
			}
			require.True(t, bytes.Equal(r.body, again.body))
		}
	})
}

// keysPlain tells whether the keys are such as we write ourselves, without escaping them.
func keysPlain(r *request) bool {
	for _, x := range r.fields {
		for _, c := range x.key {
			if c < 0x20 || c == '"' || c == '\\' {
				return false
			}
		}
	}
	return true
}

// FuzzJSON: what we read in a header is what the standard library reads.
func FuzzJSON(f *testing.F) {
	f.Add(`{"code":310,"extFields":{"a":"\u0001\\ü\ud83d\ude00x\ud83d"},"flag":0,"opaque":-3}`)
	f.Add(` { "extFields" : { } , "code" : 1 , "remark":null, "l":[[],[1,"]"]] } `)
	f.Fuzz(func(t *testing.T, text string) {
		var want struct {
			Code   int32             `json:"code"`
			Fields map[string]string `json:"extFields"`
		}
		if !utf8.ValidString(text) || json.Unmarshal([]byte(text), &want) != nil {
			return
		}
		var r request
		if r.parse(jsonFrame(text)) != nil {
			return // a number such as 1e3, or a depth, that we do not take
		}
		seen := map[string]string{}
		for _, x := range r.fields {
			seen[string(x.key)] = string(x.value)
		}
		for key, value := range want.Fields {
			if value != "" && !bytes.Contains([]byte(text), []byte(`EXTFIELDS`)) && len(seen) == len(want.Fields) {
				require.Equal(t, value, seen[key])
			}
		}
	})
}

// FuzzBatch: the parts of a batch lie within it.
func FuzzBatch(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x1a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04body\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			m, rest, ok := cutBatched(b)
			if !ok {
				return
			}
			require.Less(t, len(rest), len(b))
			require.LessOrEqual(t, len(m.body)+len(m.properties)+len(rest), len(b))
			b = rest
		}
	})
}

// FuzzProperties: properties are read, replaced and converted without end or failure.
func FuzzProperties(f *testing.F) {
	f.Add([]byte("TAGS\x01a\x02DELAY\x0118\x02x\x01"), "x")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		m := (&message{properties: b}).complete()
		m.Header()
		ownProperties(b)
		if v := m.Property(name); v != nil {
			require.LessOrEqual(t, len(v.(string)), len(b))
		}
		require.Nil(t, property(withProperties(b, "gone", ""), "gone"))
	})
}

// FuzzServer: whatever comes over a connection, the server lives on and serves others.
func FuzzServer(f *testing.F) {
	f.Add(binaryFrame(310, "body", "b", "T", "e", "0", "i", "DELAY\x011\x02"))
	f.Add(binaryFrame(11, "", "topic", "T", "queueId", "0", "queueOffset", "-1", "maxMsgNums", "999999999", "sysFlag", "7", "subscription", "a||b"))
	f.Add(binaryFrame(34, `{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T","expressionType":"SQL92","subString":"a >"}]}]}`))
	f.Add(binaryFrame(36, "", "group", "g", "offset", "17592186044416"))
	f.Add(binaryFrame(37, "", "commitLogOffset", "1", "commitOrRollback", "8"))
	f.Add(binaryFrame(41, `{"consumerGroup":"g","mqSet":[{"topic":"T","queueId":-1}]}`))
	for _, code := range []uint16{10, 14, 15, 17, 28, 29, 30, 31, 32, 33, 35, 38, 42, 46, 105, 106, 200, 201, 202, 206, 207, 208, 215, 216, 320, 400} {
		f.Add(binaryFrame(code, "", "topic", "T", "queueId", "0", "consumerGroup", "g"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(store.New(store.Config{Limit: 100}), Options{MaxMessage: 1 << 16})
		defer s.Close()
		s.makeTopic("T", 2).dest.Send(other("x"))
		client, server := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(t.Context(), server) }()
		go func() {
			buf := make([]byte, 64<<10)
			for {
				if _, err := client.Read(buf); err != nil {
					return
				}
			}
		}()
		_ = client.SetWriteDeadline(time.Now().Add(5 * time.Second))
		_, _ = client.Write(b)
		_ = client.Close()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			require.Fail(t, "the connection does not end")
		}
	})
}
