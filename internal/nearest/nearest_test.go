package nearest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	known := []string{"rate", "duration", "message-size", "message-count", "max-pending", "url", "tx", "ttl"}
	for word, want := range map[string]string{
		"rte": "rate", "raet": "rate", "RATE": "rate", "durration": "duration", "mesage-size": "message-size", "maxpending": "max-pending",
		"message": "message-size", "xyz": "", "r": "", "completely-different": "", "t": "tx", "": "",
	} {
		require.Equal(t, want, Nearest(word, known), word)
	}
	require.Equal(t, "", Nearest(strings.Repeat("x", 1<<20), known))
	require.Equal(t, "", Nearest("rate", []string{strings.Repeat("x", 1<<20)}))
	require.Equal(t, 1, distance("ab", "ba"))
	require.Equal(t, 3, distance("", "abc"))
	require.Equal(t, 3, distance("kitten", "sitting"))
	require.Equal(t, "did you mean --rate?", Hint("rte", []string{"rate"}, "--%s", "no"))
	require.Equal(t, "no", Hint("xyz", []string{"rate"}, "--%s", "no"))
}
