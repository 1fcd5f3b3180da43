package rocketmq5

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
)

// TestFrames compares our frames with those of golang.org/x/net/http2.
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
	got = append(AppendHead(got, 8, http2.FramePing, http2.FlagPingAck, 0), 1, 0, 0, 0, 0, 0, 0, 0)
	got = append(AppendHead(got, 4, http2.FrameData, http2.FlagDataEndStream, 3), "data"...)
	assert.Equal(t, want.Bytes(), got)
}

func TestHostileHeaders(t *testing.T) {
	_, err := NewHeaders().Read([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
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
	})
}
