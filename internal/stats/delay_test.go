package stats

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseDelay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"1066020 1621528 3\n": 1621528, "1 0 1": 0, // of one that never waited
		"0 0 0": -1, "": -1, "1 2": -1, "1 x 3": -1, "1 -2 3": -1,
	} {
		d, ok := parseDelay([]byte(text))
		require.Equal(t, want >= 0, ok, text)
		if ok {
			require.Equal(t, want, d, text)
		}
	}
	_, known := processDelay()
	require.Equal(t, runtime.GOOS == "linux", known)
}
