package page

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestDrift: a long run shows which of its figures change, from the means of its minutes.
func TestDrift(t *testing.T) {
	t.Parallel()
	of := func(minutes int, steps ...string) *Run {
		run := &Run{tally: &tally{}}
		for s := range int64(minutes * 60) {
			memory := uint64(500e6 + s*10e6/3600) // the broker grows by 10 MB an hour
			row := result.Row{
				Step: steps[int(s)*len(steps)/(minutes*60)], Phase: result.Measure, Elapsed: (s + 1) * 1_000_000, Length: 1_000_000,
				Counts: result.Counts{
					Producers: &result.Producers{Completed: 1000 + uint64(s/60%2)},
					Consumers: &result.Consumers{Received: 2000},
				},
				Latencies:  result.Latencies{result.Ack: &result.Latency{Count: 10, Sum: 10 * (7200 - s)}}, // 3.6 ms less an hour
				BrokerSide: &result.BrokerUse{Memory: &memory},
			}
			run.tally.add(&row)
		}
		return run
	}
	table := driftTable(of(60, "load"))
	require.Len(t, table.Rows, 4, "what is not known has no row")
	for i, want := range [][]string{
		{"completed, messages/s", "1,000", "stays"},
		{"received, messages/s", "2,000", "stays"},
		{"ack time, mean, ms", "5.43", "falls"},
		{"memory of the broker, MB", "505", "rises"},
	} {
		row := table.Rows[i]
		assert.Equal(t, want, []string{row[0], row[1], row[4]}, row)
	}
	assert.Equal(t, "-3.60", table.Rows[2][2])
	assert.Equal(t, "10.0", table.Rows[3][2])
	assert.Empty(t, driftTable(of(10, "load")).Rows, "nine minutes are over")
	assert.NotEmpty(t, driftTable(of(11, "load")).Rows)
	assert.Empty(t, driftTable(of(60, "one", "other")).Rows, "steps are different loads")
}

func TestLeastSquares(t *testing.T) {
	t.Parallel()
	var l leastSquares
	for x, y := range []float64{1e9 + 1, 1e9, 1e9 + 1, 1e9} {
		l.add(float64(x), y)
	}
	slope, within := l.slope()
	assert.InDelta(t, -0.2, slope, 1e-9)
	assert.InDelta(t, 0.565685, within, 1e-6, "residuals of 0.8, with two degrees of freedom")
}
