package load_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/driver"
)

// sequence returns the variants of all messages of a load, by the numbers of the messages, as its producers send them.
func sequence(t testing.TB, weights []int, cfg setup) []int {
	t.Helper()
	cfg.MaxPending = 1
	list := make([]int, cfg.Count)
	for i := range list {
		list[i] = -1
	}
	for i := range cfg.Total {
		cfg.Index = i
		cfg.Mix = load.NewMix(weights)
		r := newRig(cfg)
		n := i
		r.Attach(sender(func(_ context.Context, m *driver.Message) error {
			list[n] = m.Variant
			n += cfg.Total
			r.Done(m.Slot, driver.Outcome{})
			return nil
		}))
		require.NoError(t, r.Run(t.Context()))
	}
	return list
}

// requireShares checks that each variant has its share of the messages, by less than one more or fewer.
func requireShares(t testing.TB, weights, list []int) {
	t.Helper()
	counts := make([]int, len(weights))
	sum := 0
	for _, w := range weights {
		sum += w
	}
	for _, v := range list {
		counts[v]++
	}
	for v, n := range counts {
		if off := n*sum - len(list)*weights[v]; off <= -sum || off >= sum {
			require.Failf(t, "not its share", "%d messages of variant %d of %d, weights %v", n, v, len(list), weights)
		}
	}
}

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

// Of any number of messages, of one producer or at the end of a round of several, each variant has its share.
func TestSharesAreExact(t *testing.T) {
	for _, weights := range mixes() {
		length := load.CycleLength(weights)
		for _, producers := range []int{1, 2, 3, 7, 10} {
			list := sequence(t, weights, setup{Total: producers, Count: uint64(3*length*producers + 5)})
			for n := producers; n <= min(len(list), 3000); n += producers {
				requireShares(t, weights, list[:n])
			}
			requireShares(t, weights, list)
			// And each producer has them exactly, in each of its runs through the cycle.
			for i := range producers {
				var own []int
				for n := i; n < len(list)-len(list)%producers; n += producers {
					own = append(own, list[n])
				}
				for from := 0; from+length <= len(own); from += length {
					counts := make([]int, len(weights))
					for _, v := range own[from : from+length] {
						counts[v]++
					}
					divisor := 0
					for v := range weights {
						divisor += weights[v]
					}
					divisor /= length
					for v := range weights {
						require.Equal(t, weights[v]/divisor, counts[v], "producer %d of %d, weights %v", i, producers, weights)
					}
				}
			}
		}
	}
}

// The shares are exact for every count, also if the last round is not whole, and in the open loop for the messages due.
func TestSharesOfEveryCount(t *testing.T) {
	for _, weights := range [][]int{{1, 1}, {80, 15, 5}, {3, 2, 1}, {1, 1, 1, 1, 1, 1}} {
		for _, producers := range []int{1, 2, 3, 6, 7} {
			for count := range uint64(100) {
				requireShares(t, weights, sequence(t, weights, setup{Total: producers, Count: count + 1}))
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		const producers = 6
		for due := 1; due < 40; due++ {
			counts := make([]int, 4)
			for i := range producers {
				r := newRig(setup{
					Index: i, Total: producers, MaxPending: 1, Schedule: constant(t, "1000"), Until: time.Duration(due)*time.Millisecond - 1,
					Mix: load.NewMix([]int{1, 1, 1, 1}),
				})
				r.Attach(sender(func(_ context.Context, m *driver.Message) error {
					counts[m.Variant]++
					r.Done(m.Slot, driver.Outcome{})
					return nil
				}))
				runFor(t, r, time.Second)
			}
			require.Equal(t, due, counts[0]+counts[1]+counts[2]+counts[3])
			require.InDelta(t, slices.Max(counts), slices.Min(counts), 1, "%d messages: %v", due, counts)
		}
	})
}

// Equal weights let the variants take turns, and a mix is the same in every run.
func TestCycles(t *testing.T) {
	require.Equal(t, []int{0, 1, 2, 0, 1, 2, 0}, sequence(t, []int{4, 4, 4}, setup{Total: 1, Count: 7}))
	require.Equal(t, []int{0, 0, 0, 1, 0, 0, 0, 1}, sequence(t, []int{3, 1}, setup{Total: 1, Count: 8}))
	require.Equal(t, []int{0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2},
		sequence(t, []int{80, 15, 5}, setup{Total: 1, Count: 20}))
	require.Equal(t, []int{0, 0, 0}, sequence(t, []int{5}, setup{Total: 1, Count: 3}))
	require.Equal(t, []int{0, 0, 0}, sequence(t, nil, setup{Total: 1, Count: 3}))
	require.Equal(t, []int{0, 1, 1, 0, 0, 1}, sequence(t, []int{1, 1}, setup{Total: 2, Count: 6}), "each producer sends both")
	require.Equal(t, 20, load.CycleLength([]int{80, 15, 5}))
	require.Equal(t, math.MaxInt, load.CycleLength([]int{1, 0}))
	require.Equal(t, math.MaxInt, load.CycleLength([]int{1, math.MaxInt}))
	long := []int{load.MaxCycle - 1, 1}
	requireShares(t, long, sequence(t, long, setup{Total: 1, Count: load.MaxCycle}))
	many := make([]int, driver.MaxVariants)
	for i := range many {
		many[i] = 1 + i%900
	}
	requireShares(t, many, sequence(t, many, setup{Total: 3, Count: 100_000}))
}

// BenchmarkMix is the way of a message to a driver that does nothing, with one variant and with several.
func BenchmarkMix(b *testing.B) {
	for _, weights := range [][]int{{1}, {80, 15, 5}, {1, load.MaxCycle - 1}} {
		b.Run(fmt.Sprint(weights), func(b *testing.B) {
			r := newRig(setup{MaxPending: 1, Total: 2, Count: 2 * uint64(b.N), Mix: load.NewMix(weights)})
			r.Attach(sender(func(_ context.Context, m *driver.Message) error {
				r.Done(m.Slot, driver.Outcome{})
				return nil
			}))
			b.ReportAllocs()
			b.ResetTimer()
			require.NoError(b, r.Run(b.Context()))
		})
	}
}
