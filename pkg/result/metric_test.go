package result_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestMeasured: a latency that lacks more than 1% of its values is not measured.
func TestMeasured(t *testing.T) {
	for _, c := range []struct {
		values  int64
		leftOut uint64
		want    bool
	}{{0, 0, false}, {0, 1, false}, {1, 0, true}, {1, 1, false}, {99, 1, true}, {98, 1, false}, {990, 10, true}, {989, 11, false}} {
		require.Equal(t, c.want, result.Measured(c.values, c.leftOut), "%d, %d left out", c.values, c.leftOut)
	}
}
