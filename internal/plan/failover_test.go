package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailover(t *testing.T) {
	t.Parallel()
	backoff := func(edit func(*Backoff)) Backoff {
		b := Backoff{First: 10 * time.Millisecond, Longest: 30 * time.Second, Multiplier: 2, LostLast: true}
		if edit != nil {
			edit(&b)
		}
		return b
	}
	const both = "failover:(tcp://a:1,tcp://b:2)"
	for given, want := range map[string]Failover{
		both:                                {URL: "tcp://a:1,b:2", Shown: both, Random: true, Again: true, Backoff: backoff(nil)},
		"FailOver://(TCP://a:1, tcp://b:2)": {URL: "tcp://a:1,b:2", Shown: both, Random: true, Again: true, Backoff: backoff(nil)},
		"failover:tcp://a:1,tcp://b:2":      {URL: "tcp://a:1,b:2", Shown: both, Random: true, Again: true, Backoff: backoff(nil)},
		"failover://tcp://a:1,tcp://b:2/":   {URL: "tcp://a:1,b:2", Shown: both, Random: true, Again: true, Backoff: backoff(nil)},
		"failover:(amqps://[::1])?randomize=false": {
			URL: "amqps://[::1]", Shown: "failover:(amqps://[::1])?randomize=false", Again: true, Backoff: backoff(nil),
		},
		both + "?initialReconnectDelay=100&maxReconnectDelay=2000&backOffMultiplier=1.5&maxReconnectAttempts=7": {
			URL: "tcp://a:1,b:2", Random: true, Again: true,
			Shown: both + "?initialReconnectDelay=100&maxReconnectDelay=2000&backOffMultiplier=1.5&maxReconnectAttempts=7",
			Backoff: backoff(func(b *Backoff) {
				b.First, b.Longest, b.Multiplier, b.Attempts = 100*time.Millisecond, 2*time.Second, 1.5, 7
			}),
		},
		both + "?useExponentialBackOff=false&initialReconnectDelay=500&reconnectDelayExponent=3": {
			URL: "tcp://a:1,b:2", Random: true, Again: true,
			Shown: both + "?useExponentialBackOff=false&initialReconnectDelay=500&reconnectDelayExponent=3",
			Backoff: backoff(func(b *Backoff) {
				b.First, b.Longest, b.Multiplier = 500*time.Millisecond, 500*time.Millisecond, 3
			}),
		},
		both + "?timeout=3000": {
			URL: "tcp://a:1,b:2", Shown: both + "?timeout=3000", Random: true, Again: true,
			Backoff: backoff(func(b *Backoff) { b.Patience = 3 * time.Second }),
		},
		both + "?timeout=-1": {
			URL: "tcp://a:1,b:2", Shown: both + "?timeout=-1", Random: true, Again: true, Backoff: backoff(nil),
		},
		both + "?maxReconnectAttempts=-1": {
			URL: "tcp://a:1,b:2", Shown: both + "?maxReconnectAttempts=-1", Random: true, Again: true, Backoff: backoff(nil),
		},
		both + "?maxReconnectAttempts=0": {
			URL: "tcp://a:1,b:2", Shown: both + "?maxReconnectAttempts=0", Random: true, Backoff: backoff(nil),
		},
		"failover:(tcp://u:s3cret@a:1?wireFormat.x=1&keepAlive=true,tcp://u:s3cret@b:2)?jms.password=s3cret&wireFormat.y=1&nested.z=2": {
			URL: "tcp://u:s3cret@a:1,b:2", Shown: both, Random: true, Again: true, Backoff: backoff(nil),
			Ignored: []string{"wireFormat.x", "keepAlive", "jms.password", "wireFormat.y", "nested.z"},
		},
	} {
		t.Run(given, func(t *testing.T) {
			t.Parallel()
			got, err := ParseFailover(given)
			require.NoError(t, err)
			got.settings = nil
			require.Equal(t, &want, got)
			require.True(t, IsFailover(given))
			require.NotContains(t, RedactURL(given), "s3cret")
			scheme, _, _ := strings.Cut(want.URL, ":")
			require.Equal(t, scheme, Scheme(given))
		})
	}
}

func TestFailoverMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ given, want, hint string }{
		{"failover:(tcp://a", "the failover URL has no closing parenthesis", "write it as"},
		{"failover:(tcp://a)x", "the failover URL goes on after the parenthesis without a question mark", "write it as"},
		{"failover:", "host 1 of the failover URL has no scheme", "write it as"},
		{"failover:(tcp://a,b:2)", "host 2 of the failover URL has no scheme", "write it as"},
		{"failover:(tcp://a,ssl://b)", "the failover URL has hosts of the schemes tcp and ssl", "same scheme"},
		{"failover:(tcp://u:s3cret@a,tcp://v:s3cret@b)", "the hosts of the failover URL have different users", "--user"},
		{"failover:tcp://a?randomize=false", "randomize is given to a host of the failover URL", "close the parenthesis"},
		{"failover:(tcp://a)?timeout=5&randomize=false&timeout=5", "the failover URL has timeout twice", "give it once"},
		{"failover:(tcp://a)?randomise=false", "the setting randomise of the failover URL is not supported", "known are randomize, initialReconnectDelay"},
		{"failover:(tcp://a)?timeout=-2", "the failover URL has timeout=-2", "0 or -1 for ever"},
		{"failover:(tcp://a)?timeout=3s", "the failover URL has timeout=3s", "a number of milliseconds"},
		{"failover:(tcp://a)?backup=true&password=s3cret", "the setting backup of the failover URL is not supported", "known are"},
		{"failover:(tcp://a)?startupMaxReconnectAttempts=3", "the setting startupMaxReconnectAttempts of the failover URL is not supported", "--wait-for-broker TIME"},
		{"failover:(tcp://a)?randomize=maybe", "the failover URL has randomize=maybe", "true or false"},
		{"failover:(tcp://a)?initialReconnectDelay=0", "the failover URL has initialReconnectDelay=0", "milliseconds"},
		{"failover:(tcp://a)?maxReconnectDelay=1s", "the failover URL has maxReconnectDelay=1s", "milliseconds"},
		{"failover:(tcp://a)?backOffMultiplier=NaN", "the failover URL has backOffMultiplier=NaN", "from 1 to 1000"},
		{"failover:(tcp://a)?maxReconnectAttempts=-2", "the failover URL has maxReconnectAttempts=-2", "-1 for any number"},
	} {
		_, err := ParseFailover(tt.given)
		requireMistake(t, err, tt.want, tt.hint)
		require.NotContains(t, RedactURL(tt.given), "s3cret")
	}
}

func FuzzFailover(f *testing.F) {
	f.Add("failover:(tcp://a:1,tcp://b:2)?randomize=false")
	f.Add("failover://tcp://u:p@a?x=1,tcp://b")
	f.Fuzz(func(t *testing.T, text string) {
		text = "failover:" + text
		_, _ = Scheme(text), RedactURL(text)
		got, err := ParseFailover(text)
		if err == nil && (got.Backoff.First <= 0 || got.Backoff.Longest <= 0 || got.Backoff.Multiplier < 1) {
			t.Errorf("%q: %+v", text, got.Backoff)
		}
	})
}

// TestBackoff: pauses grow up to the longest, also where they would overflow.
func TestBackoff(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]Backoff{
		"100ms 200ms 250ms 250ms":       Probing(0),
		"100ms 200ms 400ms 800ms 1s 1s": Probing(time.Second),
		"20ms 20ms":                     Probing(20 * time.Millisecond),
		"500ms 500ms 500ms":             {First: 500 * time.Millisecond, Longest: 500 * time.Millisecond, Multiplier: 2},
		"1s 24h0m0s 24h0m0s":            {First: time.Second, Longest: 24 * time.Hour, Multiplier: 1e6},
		"2s 1s 1s":                      {First: 2 * time.Second, Longest: time.Second, Multiplier: 2},
		"10ms 15ms 22.5ms":              {First: 10 * time.Millisecond, Longest: time.Second, Multiplier: 1.5},
	} {
		pause := b.First
		var got []string
		for range strings.Fields(want) {
			got = append(got, pause.String())
			pause = b.Next(pause)
		}
		require.Equal(t, want, strings.Join(got, " "))
	}
}

// TestHostOrderOfFailover: a lost host is tried last, whether the others are tried in order or at random.
func TestHostOrderOfFailover(t *testing.T) {
	t.Parallel()
	g := &Group{Hosts: InOrder, Backoff: Backoff{LostLast: true}}
	require.Nil(t, g.HostsOf(1, 3))
	require.Equal(t, []int{1, 2, 0}, g.HostsAfter(0, 3))
	require.Equal(t, []int{0, 1, 2}, g.HostsAfter(2, 3))
	g.Hosts = AtRandom
	first := map[int]bool{}
	for range 1000 {
		order := g.HostsAfter(1, 4)
		require.ElementsMatch(t, []int{0, 1, 2, 3}, order)
		require.Equal(t, 1, order[3])
		first[g.HostsOf(0, 4)[0]] = true
	}
	require.Len(t, first, 4, "each host is the first of some")
	g.Hosts = Spread
	require.Equal(t, []int{2, 0, 1}, g.HostsAfter(1, 3), "spread decides")
}
