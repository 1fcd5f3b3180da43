package stomp_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// FuzzGoStomp compares our syntax with github.com/go-stomp/stomp/v3/frame, which knows STOMP 1.2: it writes the same
// bytes, and reads ours.
func FuzzGoStomp(f *testing.F) {
	f.Add("destination", "/queue/a:b", "body")
	f.Add("k:e\\y\n", "\r\n:\\c\\n", "a\nb")
	f.Add("x", "", "")
	f.Fuzz(func(t *testing.T, key, value, body string) {
		if key == "" || !wire.Carries(key) || !wire.Carries(value) || strings.Contains(body, "\x00") || key == frame.ContentLength {
			return // such a NUL is written as it is by theirs, and ends a body without a length, as that header does
		}
		ours := wire.NewFrame(wire.SEND, key, value)
		ours.Body = []byte(body)
		theirs := frame.New(frame.SEND, key, value)
		theirs.Body = []byte(body)
		var written bytes.Buffer
		require.NoError(t, frame.NewWriter(&written).Write(theirs))
		got := ours.Append(nil)
		require.Equal(t, written.String(), string(got))

		read := musttest.Get(frame.NewReader(bytes.NewReader(got)).Read())(t)
		require.Equal(t, frame.SEND, read.Command)
		require.Equal(t, value, read.Header.Get(key))
		require.Equal(t, body, string(read.Body))

		line, _ := wire.CutLine(got[len("SEND\n"):])
		k, v, ok := wire.CutHeader(line)
		require.True(t, ok)
		k, _ = wire.Unescape(k)
		v, _ = wire.Unescape(v)
		require.Equal(t, key, string(k))
		require.Equal(t, value, string(v))
	})
}
