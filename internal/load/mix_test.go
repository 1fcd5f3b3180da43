//go:build !race

package load_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
)

func mixes() [][]int {
	list := [][]int{{1, 1}, {1, 1, 1}, {80, 15, 5}, {1, 999}, {999, 1}, {3, 2}, {5, 5, 5, 5, 5, 5, 5}, {1, 2, 3, 4, 5}, {7, 1, 1, 1, 1, 1}, {60, 30, 9, 1}}
	random := rand.New(rand.NewPCG(3, 5))
	for range 30 {
		weights := make([]int, 2+random.IntN(12))
		for i := range weights {
			weights[i] = 1 + random.IntN(40)
		}
		list = append(list, weights)
	}
	return list
}

// Each producer has the exact shares in each of its runs through the cycle, and any number of its messages about them.
func TestSharesOfProducers(t *testing.T) {
	for _, weights := range mixes() {
		length := load.CycleLength(weights)
		for _, producers := range []int{1, 2, 3, 7, 10} {
			list := sequence(t, weights, setup{Total: producers, Count: uint64(3 * length * producers)})
			for i := range producers {
				counts := make([]int, len(weights))
				for n := i; n < len(list); n += producers {
					counts[list[n]]++
				}
				for v, w := range weights {
					require.Equal(t, counts[0]*w, counts[v]*weights[0], "producer %d of %d, weights %v", i, producers, weights)
				}
			}
			if producers > 1 {
				continue
			}
			counts := make([]int, len(weights))
			sum := 0
			for _, w := range weights {
				sum += w
			}
			for n, v := range list {
				counts[v]++
				require.InDelta(t, float64(n+1)*float64(weights[v])/float64(sum), counts[v], 2, "of %d, weights %v", n+1, weights)
			}
		}
	}
}

// Equal weights let the variants take turns, and a mix is the same in every run.
func TestCycles(t *testing.T) {
	require.Equal(t, []int{0, 1, 2, 0, 1, 2, 0}, sequence(t, []int{4, 4, 4}, setup{Total: 1, Count: 7}))
	require.Equal(t, []int{0, 0, 1, 0, 0, 0, 1, 0}, sequence(t, []int{3, 1}, setup{Total: 1, Count: 8}))
	require.Equal(t, []int{0, 0, 0}, sequence(t, []int{5}, setup{Total: 1, Count: 3}))
	require.Equal(t, []int{0, 0, 0}, sequence(t, nil, setup{Total: 1, Count: 3}))
	require.Equal(t, []int{0, 1, 1, 0, 0, 1}, sequence(t, []int{1, 1}, setup{Total: 2, Count: 6}), "each producer sends both")
	require.Equal(t, 20, load.CycleLength([]int{80, 15, 5}))
	require.Equal(t, math.MaxInt, load.CycleLength([]int{1, 0}))
	require.Equal(t, math.MaxInt, load.CycleLength([]int{1, math.MaxInt}))
	long := sequence(t, []int{load.MaxCycle - 1, 1}, setup{Total: 1, Count: load.MaxCycle})
	require.Equal(t, 1, long[load.MaxCycle/2-1]+long[load.MaxCycle/2])
}
