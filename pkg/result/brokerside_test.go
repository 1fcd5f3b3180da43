package result

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBrokerMetrics: averages are over the time that was watched; a result that several hosts watched, and an unknown
// value, have no metric.
func TestBrokerMetrics(t *testing.T) {
	t.Parallel()
	load := 2.5
	use := BrokerUse{
		Span: 4e6, CPU: new(uint64(3e6)), CPUSpan: 2e6, Memory: new(uint64(512e6)), Load: &load, DiskTime: new(uint64(1e6)),
		NetIn: new(uint64(8e6)), NetOut: new(uint64(4e6)), Loopback: new(uint64(2e6)),
	}
	r := Result{BrokerSide: []BrokerSide{{Whole: use}}}
	require.Equal(t, map[string]float64{
		"broker.cpu": 1.5, "broker.memory": 512e6, "broker.disk": 25, "broker.network": 3e6, "broker.loopback": 5e5, "broker.load": 2.5,
	}, r.Metrics())
	r.BrokerSide[0].Whole.CPU, r.BrokerSide[0].Whole.NetOut, r.BrokerSide[0].Whole.DiskTime, r.BrokerSide[0].Whole.Load = nil, nil, nil, nil
	require.Equal(t, map[string]float64{"broker.memory": 512e6, "broker.loopback": 5e5}, r.Metrics())
	r.BrokerSide = append(r.BrokerSide, r.BrokerSide[0])
	require.Empty(t, r.Metrics())
}

// Measured values are not negative.
func TestReadings(t *testing.T) {
	t.Parallel()
	load := -1.0
	require.ErrorContains(t, numbers(reflect.ValueOf(&BrokerUse{Load: &load})), "out of range")
}
