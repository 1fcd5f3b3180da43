package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestParseDestination(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]driver.Destination{
		"A":            {Name: "A"},
		"queue://A":    {Name: "A"},
		"topic://A":    {Kind: driver.Topic, Name: "A"},
		"queue://a b ": {Name: "a b "},
		"a?b#c%20/d":   {Name: "a?b#c%20/d"},
		"queue://名前":   {Name: "名前"},
	} {
		got, err := driver.ParseDestination(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"":              "has no name",
		"queue://":      "has no name",
		"exchange://a":  `unknown kind "exchange"`,
		"queue://a\nb":  "control characters",
		"a\x00":         "control characters",
		"a\x1b[31mb":    "control characters",
		"queue://\xffa": "invalid UTF-8",
	} {
		_, err := driver.ParseDestination(text)
		require.ErrorContains(t, err, want, "%q", text)
		require.NotContains(t, err.Error(), "\n")
	}
}
