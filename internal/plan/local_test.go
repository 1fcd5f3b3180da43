package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLocalAddresses: connections take the addresses of a list in turn; a range counts upwards over all its bytes.
func TestLocalAddresses(t *testing.T) {
	for text, want := range map[string][]string{
		"127.0.0.2":                       {"127.0.0.2", "127.0.0.2"},
		"127.0.0.2-127.0.0.4":             {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.2"},
		"127.0.0.254-127.0.1.1":           {"127.0.0.254", "127.0.0.255", "127.0.1.0", "127.0.1.1", "127.0.0.254"},
		"10.0.0.9, 10.0.0.1-10.0.0.2":     {"10.0.0.9", "10.0.0.1", "10.0.0.2", "10.0.0.9"},
		"::1":                             {"::1"},
		"2001:db8::fffe-2001:db8::1:0001": {"2001:db8::fffe", "2001:db8::ffff", "2001:db8::1:0", "2001:db8::1:1", "2001:db8::fffe"},
	} {
		require.NoError(t, CheckLocal(text), text)
		g := Group{LocalAddress: text}
		for i, a := range want {
			require.Equal(t, a, g.localAddress(i).String(), text)
		}
	}
	for text, want := range map[string]string{
		"": "must be addresses", "localhost": "must be addresses", "127.0.0.1,": "must be addresses", "127.0.0.2-": "must be FIRST-LAST",
		"127.0.0.2-127.0.0.1": "must be FIRST-LAST", "127.0.0.1-::1": "must be FIRST-LAST", "127.0.0.1,::1": "is not of the family",
		"10.0.0.0-10.255.255.255": "at most 1024 addresses",
	} {
		require.ErrorContains(t, CheckLocal(text), want, text)
	}
	require.False(t, (&Group{}).localAddress(3).IsValid())
}

// TestScaleOfARamp: the workers of a shorter step open within it.
func TestScaleOfARamp(t *testing.T) {
	p := valid()
	p.RampWorkers, p.Steps[0].Duration = 5*time.Second, 6*time.Second
	require.NoError(t, p.Validate())
	p.Scale(0.01)
	require.Equal(t, 50*time.Millisecond, p.RampWorkers)
	require.NoError(t, p.Validate())
}
