package result

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Measured values are not negative.
func TestReadings(t *testing.T) {
	t.Parallel()
	load := -1.0
	require.ErrorContains(t, numbers(reflect.ValueOf(&BrokerUse{Load: &load})), "out of range")
}
