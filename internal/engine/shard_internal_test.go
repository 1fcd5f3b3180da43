package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Dealt out in turn, everything is dealt once, and as evenly as can be.
func TestDealt(t *testing.T) {
	for _, n := range []uint64{0, 1, 4, 5, 6, 1_000_003} {
		for _, workers := range []int{1, 5, 7, 1000} {
			var sum uint64
			for i := range workers {
				own := dealt(n, i, workers)
				require.LessOrEqual(t, own, n/uint64(workers)+1)
				require.GreaterOrEqual(t, own, n/uint64(workers))
				sum += own
			}
			require.Equal(t, n, sum)
		}
	}
}
