package setting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestParseProperty(t *testing.T) {
	for text, want := range map[string]driver.Property{
		"a=b":   {Key: "a", Value: "b"},
		"a=":    {Key: "a"},
		"a=b=c": {Key: "a", Value: "b=c"},
		"a=b c": {Key: "a", Value: "b c"},
	} {
		got, err := parseProperty(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "a", "=b", "a b=c", "a\n=c"} {
		_, err := parseProperty(text)
		require.Error(t, err, text)
	}
}

func FuzzParseProperty(f *testing.F) {
	for _, s := range []string{"a=b", "=", "a", "a=b=c", "a b=c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseProperty(s)
		if err == nil {
			require.Equal(t, s, p.Key+"="+p.Value)
			require.NotEmpty(t, p.Key)
			require.False(t, strings.Contains(p.Key, "="))
		}
	})
}
