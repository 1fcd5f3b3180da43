package load

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

func TestParseShare(t *testing.T) {
	for text, want := range map[string]Share{
		"1%": {1, 100}, "0.25%": {1, 400}, "100%": {1, 1}, "33.3333%": {333333, 1000000}, "0%": {}, "0.0001%": {1, 1000000}, "50 %": {1, 2},
	} {
		got, err := ParseShare(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseShare(got.String())
		require.NoError(t, err, got.String())
		require.Equal(t, got, again)
	}
	require.Equal(t, "0.25%", Share{1, 400}.String())
	require.Equal(t, "100%", Share{1, 1}.String())
	for _, text := range []string{"", "1", "-1%", "101%", "100.0001%", "0.00001%", "1%%", "a%", "%", "1k%"} {
		_, err := ParseShare(text)
		require.ErrorContains(t, err, "must be a percentage", text)
	}
}

// Of the first n deliveries exactly the share, rounded down, fail: for each n.
func TestFailIsExact(t *testing.T) {
	for _, share := range []Share{{1, 100}, {1, 1}, {1, 3}, {2, 3}, {7, 400}, {333333, 1000000}, {999999, 1000000}} {
		f := NewFail(share, driver.Reject)
		failed := uint64(0)
		for n := uint64(1); n <= 5000; n++ {
			if v := f.next(); v != driver.Accept {
				require.Equal(t, driver.Reject, v)
				failed++
			}
			require.Equal(t, n*share.Of/share.Out, failed, "%v of %d", share, n)
		}
	}
	require.Nil(t, NewFail(Share{}, driver.Release))
}
