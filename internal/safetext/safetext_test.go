package safetext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain text, 100% \"quoted\" \\n", "plain text, 100% \"quoted\" \\n"},
		{"\x1b[2J\x1b]0;owned\x07", `\x1b[2J\x1b]0;owned\a`},
		{"a\nerror: all is well\r\n\t at b", "a; error: all is well; at b"},
		{"\n\n a \n", "a"},
		{"a\tb\x00c\x7f", `a\tb\x00c\x7f`},
		{"c1 \u009b31m", `c1 \u009b31m`},
		{"bidi \u202eevil\u2066\u200f", `bidi \u202eevil\u2066\u200f`},
		{"line \u2028 paragraph \u2029 nbsp \u00a0", `line \u2028 paragraph \u2029 nbsp \u00a0`},
		{"tag \U000e0041 bom \ufeff", `tag \U000e0041 bom \ufeff`},
		{"bad \xff\xc3( utf-8", `bad \xff\xc3( utf-8`},
		{"Grüße, 世界 €", "Grüße, 世界 €"},
		{"real replacement \ufffd", "real replacement \ufffd"},
		{strings.Repeat("x", MaxLine), strings.Repeat("x", MaxLine)},
		{strings.Repeat("x", MaxLine+1), strings.Repeat("x", MaxLine) + "... (1 bytes left out)"},
		{strings.Repeat("\x1b", 1<<20), strings.Repeat(`\x1b`, MaxLine/4) + "... (1048320 bytes left out)"},
		{strings.Repeat("é", MaxLine), strings.Repeat("é", MaxLine/2) + "... (1024 bytes left out)"},
	} {
		assert.Equal(t, c.want, Line(c.in), "%.40q", c.in)
	}
}

func TestBounded(t *testing.T) {
	assert.Equal(t, "a\n\x1b", Bounded("a\n\x1b"))
	long := strings.Repeat("x", MaxField-1) + "é" // two bytes, one too many
	assert.Equal(t, long[:MaxField-1]+"... (2 bytes left out)", Bounded(long))
}

// FuzzLine: whatever comes in, what goes out is a line that does nothing to a terminal, and has a bound.
func FuzzLine(f *testing.F) {
	for _, s := range []string{"", "a\nb", "\x1b[31m", "\u202e", "amqp://u:p@h", "password=x", "://://@:@", "\xff\n\r\t ", "===="} {
		f.Add(s)
	}
	var secrets Secrets
	secrets.Add("u", "hunter2")
	secrets.Add("", "pw")
	f.Fuzz(func(t *testing.T, text string) {
		for _, out := range []string{Line(text), secrets.Line(text), secrets.Line("hunter2" + text + "hunter2")} {
			require.True(t, utf8.ValidString(out))
			require.LessOrEqual(t, len(out), MaxLine+40)
			for _, r := range out {
				require.False(t, r < ' ' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069, "%q", out)
			}
		}
		require.NotContains(t, secrets.Line(text), "hunter2")
	})
}
