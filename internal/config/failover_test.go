package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
)

func TestFailover(t *testing.T) {
	t.Parallel()
	backoff := func(edit func(*plan.Backoff)) plan.Backoff {
		b := plan.Backoff{First: 10 * time.Millisecond, Longest: 30 * time.Second, Multiplier: 2, LostLast: true}
		if edit != nil {
			edit(&b)
		}
		return b
	}
	const both = "failover:(tcp://a:1,tcp://b:2)"
	for given, want := range map[string]failover{
		both:                                       {url: "tcp://a:1,b:2", random: true, again: true, backoff: backoff(nil)},
		"FailOver://(TCP://a:1, tcp://b:2)":        {url: "tcp://a:1,b:2", random: true, again: true, backoff: backoff(nil)},
		"failover:tcp://a:1,tcp://b:2":             {url: "tcp://a:1,b:2", random: true, again: true, backoff: backoff(nil)},
		"failover://tcp://a:1,tcp://b:2/":          {url: "tcp://a:1,b:2", random: true, again: true, backoff: backoff(nil)},
		"failover:(amqps://[::1])?randomize=false": {url: "amqps://[::1]", again: true, backoff: backoff(nil)},
		both + "?initialReconnectDelay=100&maxReconnectDelay=2000&backOffMultiplier=1.5&maxReconnectAttempts=7": {
			url: "tcp://a:1,b:2", random: true, again: true,
			backoff: backoff(func(b *plan.Backoff) {
				b.First, b.Longest, b.Multiplier, b.Attempts = 100*time.Millisecond, 2*time.Second, 1.5, 7
			}),
		},
		both + "?useExponentialBackOff=false&initialReconnectDelay=500&reconnectDelayExponent=3": {
			url: "tcp://a:1,b:2", random: true, again: true,
			backoff: backoff(func(b *plan.Backoff) {
				b.First, b.Longest, b.Multiplier = 500*time.Millisecond, 500*time.Millisecond, 3
			}),
		},
		both + "?timeout=-1":              {url: "tcp://a:1,b:2", random: true, again: true, backoff: backoff(nil)},
		both + "?maxReconnectAttempts=-1": {url: "tcp://a:1,b:2", random: true, again: true, backoff: backoff(nil)},
		both + "?maxReconnectAttempts=0":  {url: "tcp://a:1,b:2", random: true, backoff: backoff(nil)},
		"failover:(tcp://u:s3cret@a:1?wireFormat.x=1&keepAlive=true,tcp://u:s3cret@b:2)?jms.password=s3cret&wireFormat.y=1&nested.z=2": {
			url: "tcp://u:s3cret@a:1,b:2", random: true, again: true, backoff: backoff(nil),
			ignored: []string{"wireFormat.x", "keepAlive", "jms.password", "wireFormat.y", "nested.z"},
		},
	} {
		t.Run(given, func(t *testing.T) {
			t.Parallel()
			got, err := parseFailover(given)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(got.shown, "failover:("), got.shown)
			require.NotContains(t, got.shown, "s3cret")
			again, err := parseFailover(got.shown)
			require.NoError(t, err)
			require.Equal(t, got.backoff, again.backoff, "what is shown is the same URL")
			got.shown = ""
			require.Equal(t, &want, got)
			require.True(t, isFailover(given))
			require.NotContains(t, plan.RedactURL(given), "s3cret")
			name, _, _ := strings.Cut(want.url, ":")
			require.Equal(t, name, scheme(given))
		})
	}
}

func TestFailoverMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ given, want, hint string }{
		{"failover:(tcp://a", "the failover URL cannot have text behind its hosts", "write it as"},
		{"failover:", "the failover URL cannot have hosts of several schemes, or of none", "write it as"},
		{"failover:(tcp://a,ssl://b)", "the failover URL cannot have hosts of several schemes, or of none", "write it as"},
		{"failover:(tcp://u:s3cret@a,tcp://v:s3cret@b)", "the failover URL cannot have different users", "write it as"},
		{"failover:(tcp://a)?randomise=false", "the failover URL cannot have randomise", "docs/protocols.md"},
		{"failover:(tcp://a)?timeout=3000", "the failover URL cannot have timeout=3000", "docs/protocols.md"},
		{"failover:(tcp://a)?backup=true&password=s3cret", "the failover URL cannot have backup", "docs/protocols.md"},
		{"failover:(tcp://a)?randomize=maybe", "the failover URL cannot have randomize=maybe", "docs/protocols.md"},
		{"failover:(tcp://a)?initialReconnectDelay=0", "the failover URL cannot have initialReconnectDelay=0", "docs/protocols.md"},
		{"failover:(tcp://a)?maxReconnectDelay=1s", "the failover URL cannot have maxReconnectDelay=1s", "docs/protocols.md"},
		{"failover:(tcp://a)?backOffMultiplier=NaN", "the failover URL cannot have backOffMultiplier=NaN", "docs/protocols.md"},
		{"failover:(tcp://a)?maxReconnectAttempts=-2", "the failover URL cannot have maxReconnectAttempts=-2", "docs/protocols.md"},
	} {
		_, err := parseFailover(tt.given)
		requireMistake(t, err, tt.want, tt.hint)
		require.NotContains(t, plan.RedactURL(tt.given), "s3cret")
	}
}

func FuzzFailover(f *testing.F) {
	f.Add("failover:(tcp://a:1,tcp://b:2)?randomize=false")
	f.Add("failover://tcp://u:p@a?x=1,tcp://b")
	f.Fuzz(func(t *testing.T, text string) {
		text = "failover:" + text
		_, _ = scheme(text), plan.RedactURL(text)
		got, err := parseFailover(text)
		if err == nil && (got.backoff.First <= 0 || got.backoff.Longest <= 0 || got.backoff.Multiplier < 1) {
			t.Errorf("%q: %+v", text, got.backoff)
		}
	})
}
