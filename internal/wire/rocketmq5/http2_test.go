package rocketmq5

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
)

// TestFrames compares our frames with those of golang.org/x/net/http2, both ways.
func TestFrames(t *testing.T) {
	var want bytes.Buffer
	framer := http2.NewFramer(&want, nil)
	require.NoError(t, framer.WriteSettingsAck())
	require.NoError(t, framer.WriteWindowUpdate(5, 77))
	require.NoError(t, framer.WriteRSTStream(5, http2.ErrCodeCancel))
	require.NoError(t, framer.WritePing(true, [8]byte{1}))
	require.NoError(t, framer.WriteData(3, true, []byte("data")))
	got := AppendHead(nil, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	got = AppendWord(got, http2.FrameWindowUpdate, 5, 77)
	got = AppendWord(got, http2.FrameRSTStream, 5, uint32(http2.ErrCodeCancel))
	got = append(AppendHead(got, PingSize, http2.FramePing, http2.FlagPingAck, 0), 1, 0, 0, 0, 0, 0, 0, 0)
	got = append(AppendHead(got, 4, http2.FrameData, http2.FlagDataEndStream, 3), "data"...)
	assert.Equal(t, want.Bytes(), got)

	want.Reset()
	require.NoError(t, framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 7}))
	assert.Equal(t, http2.FrameHeader{Length: 12, Type: http2.FrameSettings}, ParseHead(want.Bytes()))
	settings := map[http2.SettingID]uint32{}
	require.NoError(t, EachSetting(want.Bytes()[HeadSize:], func(s http2.Setting) { settings[s.ID] = s.Val }))
	assert.Equal(t, map[http2.SettingID]uint32{http2.SettingEnablePush: 0, http2.SettingInitialWindowSize: 7}, settings)

	want.Reset()
	require.NoError(t, framer.WriteDataPadded(3, false, []byte("data"), []byte{0, 0, 0}))
	h := ParseHead(want.Bytes())
	data, err := Payload(h, want.Bytes()[HeadSize:])
	require.NoError(t, err)
	assert.Equal(t, "data", string(data))

	want.Reset()
	require.NoError(t, framer.WriteGoAway(9, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings")))
	last, code, words, err := GoAway(want.Bytes()[HeadSize:])
	require.NoError(t, err)
	assert.Equal(t, "9 11 too_many_pings", strings.Join([]string{"9", "11", string(words)}, " "))
	assert.Equal(t, [2]uint32{9, 11}, [2]uint32{last, code})
}

func TestHostileFrames(t *testing.T) {
	const whole, padded = http2.FlagHeadersEndHeaders, http2.FlagDataPadded
	for _, h := range []http2.FrameHeader{
		{Type: http2.FrameData, Flags: padded},
		{Type: http2.FrameHeaders},
		{Type: http2.FrameHeaders, Flags: whole | http2.FlagHeadersPriority},
		{Type: http2.FrameHeaders, Flags: whole | padded},
	} {
		for _, b := range [][]byte{{}, {9}, {9, 1, 2, 3}} {
			_, err := Payload(h, b)
			require.ErrorIs(t, err, ErrFrame, "%v %v", h, b)
		}
	}
	require.ErrorIs(t, EachSetting(make([]byte, 7), func(http2.Setting) {}), ErrFrame)
	_, err := ParseWord(make([]byte, 3))
	require.ErrorIs(t, err, ErrFrame)
	_, _, _, err = GoAway(make([]byte, 7))
	require.ErrorIs(t, err, ErrFrame)
	_, err = NewHeaders().Read([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	require.ErrorIs(t, err, ErrHeaders)
	_, err = NewHeaders().Read([]byte{0xbe}) // an entry that is not in the table
	require.ErrorIs(t, err, ErrHeaders)
}

func TestHeaders(t *testing.T) {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	encode := func(pairs ...string) []byte {
		block.Reset()
		for i := 0; i < len(pairs); i += 2 {
			require.NoError(t, e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}))
		}
		return bytes.Clone(block.Bytes())
	}
	h := NewHeaders()
	for range 2 { // the second time from the table
		a, err := h.Read(encode(":status", "200", "content-type", "application/grpc+proto"))
		require.NoError(t, err)
		assert.Equal(t, Answer{HTTP: "200", GRPC: true}, *a)
		a, err = h.Read(encode("grpc-status", "12", "grpc-message", "Method not found: 100%25 %zz %e4%BD%a0 %"))
		require.NoError(t, err)
		assert.Equal(t, Answer{Ended: true, Status: codes.Unimplemented, Message: "Method not found: 100% %zz 你 %"}, *a)
	}
	a, err := h.Read(encode("grpc-status", "many"))
	require.NoError(t, err)
	assert.True(t, a.Broken)
	_, ok := ParsePrefix([]byte{1, 0, 0, 0, 1})
	assert.False(t, ok)
}

func FuzzHeaders(f *testing.F) {
	f.Add([]byte{0x88, 0x5f})
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := NewHeaders().Read(b); err == nil {
			require.NotNil(t, a)
		}
		h := ParseHead(append(b, make([]byte, HeadSize)...))
		if p, err := Payload(h, b); err == nil {
			require.LessOrEqual(t, len(p), len(b))
		}
	})
}
