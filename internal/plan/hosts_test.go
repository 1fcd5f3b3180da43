package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBackoff: pauses grow up to the longest, also where they would overflow.
func TestBackoff(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]Backoff{
		"100ms 200ms 250ms 250ms":       (&Group{ReconnectDelay: 0}).Probing(),
		"100ms 200ms 400ms 800ms 1s 1s": (&Group{ReconnectDelay: time.Second}).Probing(),
		"20ms 20ms":                     (&Group{ReconnectDelay: 20 * time.Millisecond}).Probing(),
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
