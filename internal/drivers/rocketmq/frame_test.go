package rocketmq

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func jsonFrame(header string, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, codecJSON<<24|uint32(len(header)))
	return append(append(b, header...), body...)
}

func TestReplyIsReadInBothCodecs(t *testing.T) {
	binary := appendField(beginFrame(nil, 17, flagResponse), "queueId", "3")
	binary = appendField(binary, "msgId", "7F00")
	endFrame(binary, 2)
	binary = append(binary, []byte("xy")...)
	for name, frame := range map[string][]byte{
		"binary": binary[4:],
		"plain":  jsonFrame(`{"code":17,"extFields":{"queueId":"3","msgId":"7F00"},"flag":1,"language":"JAVA","opaque":0,"version":513}`, []byte("xy")...),
		"spaced": jsonFrame(`{ "code": 17, "extFields": {"queueId": "3", "msgId": "7F00"}, "flag": 1, "remark": "a\"b"}`, []byte("xy")...),
	} {
		var r reply
		require.NoError(t, r.parse(frame), name)
		require.Equal(t, 17, r.code, name)
		require.Equal(t, uint32(flagResponse), r.flag, name)
		require.Equal(t, "3", string(r.get("queueId")), name)
		require.Equal(t, "7F00", string(r.get("msgId")), name)
		require.Nil(t, r.get("msg"), name)
		require.Equal(t, "xy", string(r.body), name)
		n, ok := r.number("queueId")
		require.True(t, ok)
		require.EqualValues(t, 3, n)
		_, ok = r.number("msgId")
		require.False(t, ok)
	}
}

func TestUsualAnswerIsReadWithoutAllocation(t *testing.T) {
	frame := jsonFrame(`{"code":0,"extFields":{"queueId":"3","TRACE_ON":"true","MSG_REGION":"DefaultRegion","msgId":"7F00","queueOffset":"12"},"flag":1,"language":"JAVA","opaque":-5,"serializeTypeCurrentRPC":"JSON","version":513}`)
	var r reply
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if r.parse(frame) != nil || int32(r.opaque) != -5 || len(r.get("queueOffset")) != 2 {
			panic("misread")
		}
	}))
}

func TestFramesThatAreNone(t *testing.T) {
	for _, b := range [][]byte{
		nil,
		{0, 0, 0},
		{0, 0, 0, 9, '{'},
		{7, 0, 0, 0},
		{codecBinary, 0, 0, 2, 1, 1},
		jsonFrame(`{"code":"x"}`), jsonFrame(`[]`), jsonFrame(`{`),
		append([]byte{codecBinary, 0, 0, 17}, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255),
	} {
		var r reply
		require.ErrorIs(t, r.parse(b), errFrame, "%q", b)
	}
}

func TestKeysWithoutQuotes(t *testing.T) {
	for given, want := range map[string]string{
		`{0:"a:1",1:"b"}`:                  `{"0":"a:1","1":"b"}`,
		`{"x":{-1:"{0:"},"y":[1,2,{3:4}]}`: `{"x":{"-1":"{0:"},"y":[1,2,{"3":4}]}`,
		`{"a\"{1:":2}`:                     `{"a\"{1:":2}`,
	} {
		require.Equal(t, want, string(quoteKeys([]byte(given))))
	}
	var v struct {
		A map[string]string `json:"brokerAddrs"`
	}
	require.NoError(t, unmarshalJSON([]byte(`{"brokerAddrs":{0:"127.0.0.1:10911"}}`), &v))
	require.Equal(t, map[string]string{"0": "127.0.0.1:10911"}, v.A)
	require.Error(t, unmarshalJSON([]byte(`{"brokerAddrs":`), &v))
}

// FuzzReply checks that nothing makes the parser fail badly, and that its short way reads what the standard library does.
func FuzzReply(f *testing.F) {
	f.Add(jsonFrame(`{"code":17,"extFields":{"queueId":"3"},"flag":1,"opaque":-2147483648,"remark":"no","version":513}`, 1, 2))
	f.Add(jsonFrame(`{"code":01}`))
	frame := appendField(beginFrame(nil, 17, flagResponse), "k", "v")
	endFrame(frame, 0)
	f.Add(frame[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var r reply
		if r.parse(b) != nil {
			return
		}
		for _, key := range []string{"k", "queueId", ""} {
			_ = r.get(key)
		}
		if b[0] != codecJSON || r.fieldsJSON == nil {
			return
		}
		header := b[4 : len(b)-len(r.body)]
		var h struct {
			Code   int64
			Flag   int64
			Opaque int64
			Remark string
			Fields map[string]string `json:"extFields"`
		}
		require.NoError(t, json.Unmarshal(header, &h), "%s", header)
		for key, value := range h.Fields {
			if got := r.get(key); string(got) != value {
				// With a key that comes twice, the short way finds the first.
				require.Contains(t, string(r.fieldsJSON), `"`+key+`":"`+string(got)+`"`)
			}
		}
	})
}
