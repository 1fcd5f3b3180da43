package page

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestDrift: a long run shows which of its figures change, from its minutes.
func TestDrift(t *testing.T) {
	t.Parallel()
	of := func(minutes int, steps ...string) *Run {
		run := &Run{series: &series{limit: maxPoints}, tally: &tally{}, Result: &result.Result{Total: result.Counts{
			Producers: &result.Producers{}, Consumers: &result.Consumers{},
		}}}
		for s := range int64(minutes * 60) {
			memory := uint64(500e6 + s*10e6/3600) // the broker grows by 10 MB an hour
			row := result.Row{
				Step: steps[int(s)*len(steps)/(minutes*60)], Phase: result.Measure, Elapsed: (s + 1) * 1_000_000, Length: 1_000_000,
				Counts: result.Counts{
					Producers: &result.Producers{Completed: 1000 + uint64(s/60%2)},
					Consumers: &result.Consumers{Received: 2000},
				},
				Latencies: result.Latencies{result.Ack: &result.Latency{ // 3.6 ms less an hour
					Count: 10, Percentiles: &result.Percentiles{P50: 7200 - s},
				}},
				BrokerSide: &result.BrokerUse{Memory: &memory},
			}
			run.series.add(&row)
			run.tally.add(&row)
		}
		return run
	}
	table := driftTable(of(60, "load"))
	require.Len(t, table.Rows, 4, "what is not known has no row")
	for i, want := range [][]string{
		{"completed, /s", "1,000", "stays"},
		{"received, /s", "2,000", "stays"},
		{"ack p50, us", "5,430", "falls"},
		{"memory, MB", "505", "rises"},
	} {
		row := table.Rows[i]
		assert.Equal(t, want, []string{row[0], row[1], row[4]}, row)
	}
	assert.Equal(t, "-3,600", table.Rows[2][2])
	assert.Equal(t, "10.0", table.Rows[3][2])
	assert.Empty(t, driftTable(of(9, "load")).Rows)
	assert.NotEmpty(t, driftTable(of(10, "load")).Rows)
	assert.Empty(t, driftTable(of(60, "one", "other")).Rows, "steps are different loads")
}

func TestTrend(t *testing.T) {
	t.Parallel()
	mean, slope, within := trend([]float64{0, 1, 2, 3}, []float64{1e9 + 1, 1e9, 1e9 + 1, 1e9})
	assert.InDelta(t, 1e9+0.5, mean, 1e-9)
	assert.InDelta(t, -0.2, slope, 1e-9)
	assert.InDelta(t, 0.565685, within, 1e-6, "residuals of 0.8, with two degrees of freedom")
}
