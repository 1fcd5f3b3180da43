package stats

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// intervals adds a load: each interval has a length in milliseconds and its messages; the first message comes at
// first.
func intervals(r *Rates, first time.Duration, list ...[2]int) {
	elapsed := int64(0)
	for _, i := range list {
		length, n := int64(i[0])*1000, uint64(i[1]) //nolint:gosec // small
		elapsed += length
		r.add(n, n, stretch{0, length, elapsed, elapsed}, first)
		r.got += n
	}
}

// TestExtremesOfABacklog: the first and the last second count from the first message, and to the last one.
func TestExtremesOfABacklog(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	full := [][2]int{{1000, 500}, {1000, 1000}, {1000, 990}, {1000, 1010}, {1000, 800}}
	for _, tt := range []struct {
		name        string
		list        [][2]int
		first, last time.Duration
		low, high   float64
		seconds     int
	}{
		{"as the seconds are", full, 0, 5000 * ms, 500, 1010, 5},
		{"whole rates in parts of the first and of the last second", full, 250 * ms, 4800 * ms, 500 / 0.75, 1010, 5},
		{"the last second is the fastest", full, 0, 4700 * ms, 500, 800 / 0.7, 5},
		{"parts too short for a second", full, 500 * ms, 4500 * ms, 990, 1810 / 1.5, 3},
		{"nothing before and behind", [][2]int{{1000, 0}, {1000, 90}, {1000, 100}, {1000, 80}, {1000, 0}, {1000, 0}}, 1000 * ms, 4000 * ms, 80, 100, 3},
		{"a pause within", [][2]int{{1000, 100}, {1000, 0}, {1000, 0}, {1000, 100}}, 0, 4000 * ms, 0, 100, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r Rates
			intervals(&r, tt.first, tt.list...)
			r.ReadBacklog(tt.first, tt.last)
			require.Equal(t, tt.last-tt.first, r.Average.Span)
			require.InDelta(t, tt.low, r.Minimum.Received.PerSecond, 1e-6)
			require.InDelta(t, tt.high, r.Maximum.Received.PerSecond, 1e-6)
			require.Equal(t, tt.seconds, r.Maximum.Received.Seconds)
		})
	}
}

// TestAverageLiesBetweenExtremes: in all loads, also with cuts at any time, and of a backlog from its first message to
// its last one.
func TestAverageLiesBetweenExtremes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(12, 31)) //nolint:gosec // reproducible
	for range 2000 {
		var list [][2]int
		var r Rates
		total, elapsed := 0, 0
		for range 1 + random.IntN(8) {
			length := []int{1000, 1000, 1000, 20, 500, 699, 700, 1300, 90_000}[random.IntN(9)]
			list = append(list, [2]int{length, max(0, random.IntN(2*length)-length/4)})
			total, elapsed = total+list[len(list)-1][1], elapsed+length
		}
		all := list
		first, last := 0, elapsed // some moments in the first and in the last interval with messages
		for len(list) > 0 && list[0][1] == 0 {
			first, list = first+list[0][0], list[1:]
		}
		for len(list) > 0 && list[len(list)-1][1] == 0 {
			last, list = last-list[len(list)-1][0], list[:len(list)-1]
		}
		if len(list) > 1 {
			first += random.IntN(list[0][0])
			last -= random.IntN(list[len(list)-1][0])
		}
		intervals(&r, time.Duration(first)*time.Millisecond, all...)
		low, high := &r.Minimum, &r.Maximum
		between := func(low, average, high float64) {
			t.Helper()
			require.LessOrEqual(t, low, average+1e-6, list)
			require.GreaterOrEqual(t, high, average-1e-6, list)
		}
		if high.Completed.Seconds > 0 {
			between(low.Completed.PerSecond, 1000*float64(total)/float64(elapsed), high.Completed.PerSecond)
		}
		if high.Received.Seconds > 0 {
			between(0, 1000*float64(total)/float64(elapsed), high.Received.PerSecond)
		}
		if len(list) < 2 {
			continue
		}
		r.ReadBacklog(time.Duration(first)*time.Millisecond, time.Duration(last)*time.Millisecond)
		if high.Received.Seconds > 0 {
			between(low.Received.PerSecond, 1000*float64(total)/float64(last-first), high.Received.PerSecond)
		}
	}
}
