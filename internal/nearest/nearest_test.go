package nearest

import (
	"slices"
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
}

func TestSpelling(t *testing.T) {
	of := func(values ...string) func(string) bool {
		return func(t string) bool { return slices.Contains(values, t) }
	}
	for _, c := range []struct{ text, want string }{
		{"10,000", "10000"},
		{"1,234,567", "1234567"},
		{"1_000", "1000"},
		{"5'000 for 30s", "5000 for 30s"},
		{"1,5", ""},
		{"10k/s", "10k"},
		{"1000 msg/s", "1000"},
		{"10K msgs/sec", "10K"},
		{"5 per second", "5"},
		{"100 messages", "100"},
		{"7mps", "7"},
		{"5 minutes", "5m"},
		{"5min", "5m"},
		{"90 secs", "90s"},
		{"2 Hours", "2h"},
		{"20 msec", "20ms"},
		{"20 ms", "20ms"},
		{"1h 30 min", "1h30m"},
		{"10MS", "10ms"},
		{"5M", "5m"},
		{"10m", "10M"},
		{"10 KiB", "10KiB"},
		{"64 bytes", "64"},
		{`"short"`, "short"},
		{"SHORT", "short"},
		{"yes", "true"},
		{"ON", "true"},
		{"disabled", "false"},
		{"off", "0"},
		{"10kps", "10k"},
		{"heart-beat: 5s", "heart-beat=5s"},
		{"queues 8", "queues=8"},
		{"maybe", ""},
		{"", ""},
		{"a b", ""},
		{"short", ""},
	} {
		accept := of(c.want)
		if c.want == "" {
			accept = of("ab", "15", "1.5") // none of these is meant
		}
		require.Equal(t, c.want, Spelling(c.text, accept), c.text)
	}
	require.Empty(t, Spelling(strings.Repeat("1", 1<<20), func(string) bool { return true }))
	require.Equal(t, "did you mean --rate?", Hint("rte", []string{"rate"}, "--%s", "no"))
	require.Equal(t, "no", Hint("xyz", []string{"rate"}, "--%s", "no"))
}
