package stomp_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write the golden file anew")

// TestGolden holds frames against testdata/frames.golden, quoted, one a line.
func TestGolden(t *testing.T) {
	t.Parallel()
	frames := []*wire.Frame{
		wire.NewFrame(wire.CONNECT, "accept-version", wire.Version, "host", "/", "passcode", "a:b\\c"),
		wire.NewFrame(wire.CONNECTED, "version", "1.2", "server", "x:y"),
		wire.NewFrame(wire.SUBSCRIBE, "id", "0", "destination", "/queue/a b", "selector", "color = 'a:b\\c'\r\n"),
		{Command: wire.ERROR, Headers: []wire.Header{{Key: "message", Value: "a\nb\x00c"}, {Key: "k:y", Value: ""}}, Body: []byte("why\n")},
		wire.NewFrame(wire.DISCONNECT),
	}
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%q\n", f.Append(nil))
	}
	path := filepath.Join("testdata", "frames.golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644)) //nolint:gosec // a file of the source tree
	}
	want := musttest.Get(os.ReadFile(path))(t)
	require.Equal(t, string(want), b.String())
}

func TestCut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		line string
		size int
	}{
		"a:b\nc": {"a:b", 4}, "a\r\n": {"a", 3}, "\n": {"", 1}, "\r\n": {"", 2}, "a\r\r\n": {"a\r", 4}, "a": {"", 0}, "": {"", 0}, "a\r": {"", 0},
	} {
		line, size := wire.CutLine([]byte(text))
		assert.Equal(t, want.line, string(line), "%q", text)
		assert.Equal(t, want.size, size, "%q", text)
	}
	for text, want := range map[string][]string{
		"a:b": {"a", "b"}, "a:": {"a", ""}, "a:b:c": {"a", "b:c"}, "a: b ": {"a", " b "}, `a\c:b`: {`a\c`, "b"}, ":b": nil, "ab": nil, "": nil,
	} {
		key, value, ok := wire.CutHeader([]byte(text))
		assert.Equal(t, want != nil, ok, "%q", text)
		if ok {
			assert.Equal(t, want, []string{string(key), string(value)}, "%q", text)
		}
	}
}

func TestParseNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"0": 0, "7": 7, "007": 7, "9999999999999999999": 9999999999999999999} {
		n, ok := wire.ParseNumber(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "-1", "+1", "1 ", " 1", "1e3", "0x1", "a", "10000000000000000000", "00000000000000000001", "１"} {
		_, ok := wire.ParseNumber([]byte(text))
		assert.False(t, ok, text)
	}
}

func TestParseHeartBeat(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]time.Duration{
		"0,0": {}, "1000,20": {time.Second, 20 * time.Millisecond}, " 5 , 7 ": {5 * time.Millisecond, 7 * time.Millisecond},
		"9999999999999999999,1": {24 * time.Hour, time.Millisecond},
	} {
		can, wants, ok := wire.ParseHeartBeat(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, [2]time.Duration{can, wants}, text)
	}
	for _, text := range []string{"", "1", ",", "1,", ",1", "1,-1", "1,2,3", "a,b"} {
		_, _, ok := wire.ParseHeartBeat(text)
		assert.False(t, ok, text)
	}
}

func TestAccepts(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"1.2": true, "1.0,1.1,1.2": true, "1.1, 1.2 ,2.0": true, "": false, "1.0": false, "1.1,2.0": false, "12": false, ",": false,
	} {
		assert.Equal(t, want, wire.Accepts(accept), "%q", accept)
	}
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `a\\b\cc\nd\re  é`, string(wire.AppendEscaped(nil, "a\\b:c\nd\re\x00 é")))
	for in, want := range map[string]string{ // empty if it is refused
		`a\nb\cc\\d\re`: "a\nb:c\\d\re", `\\n`: `\n`, `a\tb`: "", `a\`: "",
	} {
		got, ok := wire.Unescape([]byte(in))
		assert.Equal(t, want != "", ok, in)
		assert.Equal(t, want, string(got), in)
	}
	assert.True(t, wire.Carries(" a:b\n\r é"))
	assert.False(t, wire.Carries("a\x00b"))
}

// FuzzEscapes: a text that a header carries comes back as it was, and no text ends the line that it is written in.
func FuzzEscapes(f *testing.F) {
	f.Add("a:b\\c\nd\re\\n é")
	f.Add("\x00")
	f.Fuzz(func(t *testing.T, text string) {
		escaped := wire.AppendEscaped(nil, text)
		require.NotContains(t, string(escaped), "\n")
		require.NotContains(t, string(escaped), "\r")
		require.NotContains(t, string(escaped), "\x00")
		back, ok := wire.Unescape(escaped)
		require.True(t, ok)
		if wire.Carries(text) {
			require.Equal(t, text, string(back))
		}
		_, _ = wire.Unescape([]byte(text)) // of anybody
	})
}

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
