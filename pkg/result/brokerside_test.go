package result

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Chosen series may have any finite value; other measured values are not negative.
func TestReadings(t *testing.T) {
	t.Parallel()
	r := sample(t, 12, 3, 20)
	readings := map[string]float64{"temperature_celsius": -12.5, "node_memory_bytes": 1e18, "clock_offset": -1e300}
	use := BrokerUse{Span: second, Series: readings}
	r.Rows[1].BrokerSide = &use
	r.BrokerSide = []BrokerSide{{Sources: []string{"http://h/metrics"}, Whole: use, Lowest: readings, Highest: readings}}
	read, err := Read(write(t, r), RowHistograms)
	require.NoError(t, err)
	require.Equal(t, r.BrokerSide, read.BrokerSide)
	require.Equal(t, readings, read.Rows[1].BrokerSide.Series)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.EqualError(t, numbers(reflect.ValueOf(map[string]float64{"x": v})), `the value of the series "x" is no number`)
	}
	load := -1.0
	require.ErrorContains(t, numbers(reflect.ValueOf(&BrokerUse{Load: &load})), "out of range")
}
