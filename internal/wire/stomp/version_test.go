package stomp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]wire.Version{"": wire.V10, "1.0": wire.V10, "1.1": wire.V11, "1.2": wire.V12, "1.3": 0, " 1.2": 0, "12": 0} {
		got, ok := wire.ParseVersion(text)
		assert.Equal(t, want, got, "%q", text)
		assert.Equal(t, want != 0, ok, "%q", text)
	}
	for accept, want := range map[string]wire.Version{
		"": wire.V10, "1.0": wire.V10, "1.1": wire.V11, "1.2": wire.V12, wire.AllVersions: wire.V12, "1.1, 1.0": wire.V11, "2.0,1.1": wire.V11,
		"2.0": 0, "x": 0, ",": 0,
	} {
		got, ok := wire.Negotiate(accept)
		assert.Equal(t, want, got, "%q", accept)
		assert.Equal(t, want != 0, ok, "%q", accept)
	}
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	for v, want := range map[wire.Version]string{
		wire.V10: "a\\b:c d e  é", wire.V11: `a\\b\cc\nd e  é`, wire.V12: `a\\b\cc\nd\re  é`,
	} {
		assert.Equal(t, want, string(v.AppendEscaped(nil, "a\\b:c\nd\re\x00 é")), v)
	}
	for _, test := range []struct {
		v        wire.Version
		in, want string // want is empty if it is refused
	}{
		{wire.V10, `a\nb`, `a\nb`},
		{wire.V11, `a\nb\cc\\d`, "a\nb:c\\d"},
		{wire.V11, `\\n`, `\n`},
		{wire.V11, `a\rb`, ""},
		{wire.V12, `a\nb\cc\\d\re`, "a\nb:c\\d\re"},
		{wire.V12, `a\tb`, ""},
		{wire.V12, `a\`, ""},
	} {
		got, ok := test.v.Unescape([]byte(test.in))
		assert.Equal(t, test.want != "", ok, test.in)
		assert.Equal(t, test.want, string(got), test.in)
	}
}

func TestCarries(t *testing.T) {
	t.Parallel()
	all := []wire.Version{wire.V10, wire.V11, wire.V12}
	for _, c := range []struct {
		text                 string
		carries, keeps, keys [3]bool
	}{
		{"plain é", [3]bool{true, true, true}, [3]bool{true, true, true}, [3]bool{true, true, true}},
		{"", [3]bool{true, true, true}, [3]bool{true, true, true}, [3]bool{}},
		{"a:b", [3]bool{true, true, true}, [3]bool{true, true, true}, [3]bool{false, true, true}},
		{" a", [3]bool{true, true, true}, [3]bool{false, true, true}, [3]bool{true, true, true}},
		{"a\nb", [3]bool{false, true, true}, [3]bool{false, true, true}, [3]bool{false, true, true}},
		{"a\rb", [3]bool{false, false, true}, [3]bool{false, false, true}, [3]bool{false, false, true}},
		{"a\x00b", [3]bool{}, [3]bool{}, [3]bool{}},
	} {
		for i, v := range all {
			assert.Equal(t, c.carries[i], v.Carries(c.text), "%q %s", c.text, v)
			assert.Equal(t, c.keeps[i], v.Keeps(c.text), "%q %s", c.text, v)
			assert.Equal(t, c.keys[i], v.CarriesKey(c.text), "%q %s", c.text, v)
		}
	}
}

// FuzzEscapes: a text that a version carries comes back as it was, and no text ends the line that it is written in.
func FuzzEscapes(f *testing.F) {
	f.Add("a:b\\c\nd\re\\n é")
	f.Add("\x00")
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range []wire.Version{wire.V10, wire.V11, wire.V12} {
			escaped := v.AppendEscaped(nil, text)
			require.NotContains(t, string(escaped), "\n")
			require.NotContains(t, string(escaped), "\r")
			require.NotContains(t, string(escaped), "\x00")
			back, ok := v.Unescape(escaped)
			require.True(t, ok)
			if v.Carries(text) {
				require.Equal(t, text, string(back))
			}
			_, _ = v.Unescape([]byte(text)) // of anybody
		}
	})
}
