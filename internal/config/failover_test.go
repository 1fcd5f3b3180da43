package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
)

func TestFailover(t *testing.T) {
	t.Parallel()
	const both = "failover:(tcp://a:1,tcp://b:2)"
	for given, want := range map[string]failover{
		both:                                       {url: "tcp://a:1,b:2", spread: true},
		"FailOver://(TCP://a:1, tcp://b:2)":        {url: "tcp://a:1,b:2", spread: true},
		"failover:tcp://a:1,tcp://b:2":             {url: "tcp://a:1,b:2", spread: true},
		"failover://tcp://a:1,tcp://b:2/":          {url: "tcp://a:1,b:2", spread: true},
		"failover:(amqps://[::1])?randomize=false": {url: "amqps://[::1]"},
		both + "?randomize=true":                   {url: "tcp://a:1,b:2", spread: true},
		"failover:(tcp://u:s3cret@a:1?wireFormat.x=1&keepAlive=true,tcp://u:s3cret@b:2)?jms.password=s3cret&wireFormat.y=1&nested.z=2": {
			url: "tcp://u:s3cret@a:1,b:2", spread: true,
			ignored: []string{"wireFormat.x", "keepAlive", "jms.password", "wireFormat.y", "nested.z"},
		},
	} {
		t.Run(given, func(t *testing.T) {
			t.Parallel()
			got, err := parseFailover(given)
			require.NoError(t, err)
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
		{"failover:(tcp://a)?randomise=false", "the failover URL cannot have randomise", "randomize=false"},
		{"failover:(tcp://a)?timeout=3000", "the failover URL cannot have timeout", "--reconnect-timeout"},
		{"failover:(tcp://a)?maxReconnectDelay=100", "the failover URL cannot have maxReconnectDelay", "--reconnect-delay"},
		{"failover:(tcp://a)?backup=true&password=s3cret", "the failover URL cannot have backup", "write it as"},
		{"failover:(tcp://a)?randomize=maybe", "the failover URL cannot have randomize=maybe", "randomize=false"},
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
		_, _ = parseFailover(text)
	})
}
