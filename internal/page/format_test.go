package page

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", -3: "-3", 3: "3", 1234.4: "1,234", -1234.4: "-1,234", -99.96: "-100", 12.34: "12.3", -12.34: "-12.3", 1.234: "1.23", -1.234: "-1.23",
		math.Copysign(0, -1): "0", math.Inf(1): "-",
	} {
		assert.Equal(t, want, number(v))
	}
}

// TestPlain: no text becomes markup, a link or a mention in Markdown.
func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a  b":                            "a  b",
		"*a* <b> #1 x|y":                  `\*a\* \<b\> \#1 x\|y`,
		"one\ntwo\x1b":                    `one two\u001b`,
		"thanks @admin!":                  "thanks `@admin!`",
		"see http://evil.example/a_b now": "see `http://evil.example/a_b` now",
		"(WWW.evil.example)":              "`(WWW.evil.example)`",
		"queue://TEST: lost, 2.":          "`queue://TEST`: lost, 2.",
		"x://`*a*`|b\\":                   "`x://\\u0060*a*\\u0060\\u007cb\\u005c`",
	} {
		assert.Equal(t, want, plain(text))
	}
}
