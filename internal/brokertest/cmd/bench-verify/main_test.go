//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest/peerbench"
)

func runs(rates ...float64) (list []outcome) {
	for _, r := range rates {
		list = append(list, outcome{Outcome: peerbench.Outcome{Received: r}})
	}
	return list
}

// It is each run by the other of its pair, not the median by the median.
func TestRatiosAreThoseOfThePairs(t *testing.T) {
	t.Parallel()
	columns := []column{{Runs: runs(90, 10, 300)}, {Runs: runs(100, 20, 400)}}
	got := ratios(columns, func(o outcome) float64 { return o.Received })
	require.Equal(t, []float64{.5, .75, .9}, got)
	require.Equal(t, "median 0.750, from 0.500 to 0.900 (0.500 0.750 0.900)", summary(got))
}

func TestChoose(t *testing.T) {
	t.Parallel()
	chosen, err := choose("mem,artemis-stomp")
	require.NoError(t, err)
	require.Len(t, chosen, 2)
	require.Equal(t, "mem", chosen[0].protocol)
	require.Equal(t, "stomp", chosen[1].protocol)
	_, err = choose("mem,elsewhere")
	require.ErrorContains(t, err, "elsewhere")
}
