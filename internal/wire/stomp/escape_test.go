package stomp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

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
