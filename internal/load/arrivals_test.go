//go:build !race

package load

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// atRandom returns a schedule with random arrivals where it does not say even.
func atRandom(t testing.TB, text string) Schedule {
	t.Helper()
	return musttest.Get(musttest.Get(ParseSchedule(text))(t).Poisson())(t)
}

type message struct {
	due      time.Duration
	producer int
}

// merged returns the messages of all producers, in the order of their due times: before end, and at most most of each.
func merged(s Schedule, d *Draws, producers int, end time.Duration, most uint64) (all []message) {
	for i := range producers {
		a := d.arrivals(&s, i, producers)
		for due := a.next(); due < end && a.drawn <= most; due = a.next() {
			all = append(all, message{due, i})
		}
	}
	slices.SortStableFunc(all, func(a, b message) int { return cmp.Compare(a.due, b.due) })
	return all
}

// distance returns the Kolmogorov-Smirnov distance of numbers from a distribution, times the root of their number. Of
// one sample in a thousand it is above 1.95, of whole numbers less often.
func distance(list []float64, distribution func(float64) float64) (most float64) {
	slices.Sort(list)
	n := float64(len(list))
	for i, x := range list {
		if i+1 == len(list) || list[i+1] > x {
			most = max(most, math.Abs(float64(i+1)/n-distribution(x)))
		}
	}
	return most * math.Sqrt(n)
}

// window is the mean of the counts.
const window = 20

func poisson(n float64) (sum float64) {
	for i, p := 0.0, math.Exp(-window); i <= n; i++ {
		sum += p
		p *= window / (i + 1)
	}
	return sum
}

// The integral of the rate from message to message is an exponential variate of mean 1, and the number of messages in a
// window of it a Poisson variate: of one producer, and of several together.
func TestPoissonArrivals(t *testing.T) {
	exponentially := func(x float64) float64 { return 1 - math.Exp(-x) }
	for _, text := range []string{
		"1000", "3000 for 60s, ramp 0 to 5000 for 60s", "ramp 2000 to 10 for 3m",
		"stair 100 to 1000 by 100 every 10s, pause 10s, 500", "burst 900 for 100ms every 1s for 300s over 100, 0.7",
	} {
		for _, producers := range []int{1, 2, 7, 100} {
			const end = 2 * time.Minute
			s, passed, last := atRandom(t, text), 0.0, time.Duration(0)
			var gaps []float64
			counts := make([]float64, int(s.Average(end)*end.Seconds()/window)+1)
			for _, m := range merged(s, &Draws{Seed: 1}, producers, end, math.MaxUint64) {
				gap := s.Between(last, m.due) * (m.due - last).Seconds()
				gaps, passed, last = append(gaps, gap), passed+gap, m.due
				counts[int(passed/window)]++
			}
			counts = counts[:len(counts)-1]
			require.Less(t, distance(gaps, exponentially), 1.95, "%s, %d producers", text, producers)
			require.Less(t, distance(counts, poisson), 1.95, "%s, %d producers", text, producers)
		}
	}
	require.Greater(t, distance(slices.Repeat([]float64{1}, 1000), exponentially), 10.0, "even")
	require.Greater(t, distance(slices.Repeat([]float64{window}, 1000), poisson), 10.0, "even")
}

// Segments have the arrivals that they name, others those of the load. An even segment has the messages of an even
// schedule.
func TestArrivalsOfSegments(t *testing.T) {
	s := musttest.Get(ParseSchedule("poisson 500 for 10s, 100.1 for 10s, ramp 0 to 50 for 10s poisson, even 7"))(t)
	require.Equal(t, "poisson 500 for 10s, 100.1 for 10s, poisson ramp 0 to 50 for 10s, even 7", s.String())
	require.Equal(t, s, musttest.Get(ParseSchedule(s.String()))(t))
	plain := musttest.Get(ParseSchedule("500 for 10s, 100.1 for 10s, ramp 0 to 50 for 10s, 7"))(t)
	random := func(m message) bool { at := m.due / (10 * time.Second); return at == 0 || at == 2 }
	var want []message
	for n := uint64(0); plain.At(n) < time.Minute; n++ {
		want = append(want, message{plain.At(n), int(n % 7)})
	}
	want = slices.DeleteFunc(want, random)
	all := merged(s, &Draws{Seed: 3}, 7, time.Minute, math.MaxUint64)
	require.InDelta(t, 5250, len(all)-len(want), 4*math.Sqrt(5250))
	require.Equal(t, want, slices.DeleteFunc(all, random))
	require.Equal(t, plain.String(), atRandom(t, plain.String()).String(), "the load says it")
	require.True(t, atRandom(t, "5 for 10s").Scale(0.5).Random())
	require.False(t, atRandom(t, "even 5").Random())
}

// The due times are those of the seed: in every release and on every machine.
func TestArrivalsOfASeed(t *testing.T) {
	first := func(seed uint64) []message {
		return merged(atRandom(t, "10"), &Draws{Seed: seed, Name: "0 senders"}, 1, never, 3)
	}
	require.Equal(t, []message{{44781657, 0}, {129636829, 0}, {285023087, 0}}, first(1))
	require.NotEqual(t, first(1), first(2))
	s := atRandom(t, "ramp 0 to 100000 for 100h")
	a := (&Draws{Seed: 42, Name: "1 senders"}).arrivals(&s, 2, 3)
	require.Zero(t, testing.AllocsPerRun(999_999, func() { a.next() }))
	require.Equal(t, time.Duration(4_652_650_645_574), a.due, "3,000,000 on average")
}

// The quotas of a count are those of its messages that are due first.
func TestQuotas(t *testing.T) {
	for _, text := range []string{"1000", "ramp 0 to 100 for 100s", "poisson 100 for 1s, even 50"} {
		for _, producers := range []int{1, 3, 200} {
			for _, count := range []uint64{1, 2, 100, 4000} {
				s, d, want := atRandom(t, text), Draws{Seed: 5}, make([]uint64, producers)
				for _, m := range merged(s, &d, producers, never, count)[:count] {
					want[m.producer]++
				}
				d.DrawQuotas(s, producers, count)
				require.Equal(t, want, d.Quotas, "%s: %d of %d", text, count, producers)
			}
		}
	}
	d, ends := Draws{Seed: 5}, atRandom(t, "100 for 1s")
	d.DrawQuotas(ends, 2, 1000)
	require.GreaterOrEqual(t, slices.Min(d.Quotas), uint64(1000), "the schedule ends first")
	d.DrawQuotas(ends, 2, maxCounted+1)
	require.Equal(t, []uint64{maxCounted/2 + 1, maxCounted / 2}, d.Quotas, "equal shares")
}

// What was not sent is counted, too: exactly, or nearly if it is a lot.
func TestDrawn(t *testing.T) {
	s, d := atRandom(t, "ramp 0 to 2000 for 100s"), Draws{Seed: 1, Warmup: 50 * time.Second}
	for _, most := range []int{0, 1000, 20_000, math.MaxInt} {
		all, warm, _ := d.Drawn(s, 0, 1, 80*time.Second, most)
		require.InDelta(t, 64_000, all, 4*253)
		require.InDelta(t, 25_000, warm, 4*158)
		require.Equal(t, most > 64_000, int(all) == len(merged(s, &d, 1, 80*time.Second, math.MaxUint64)))
	}
}

// A single server with a fixed time of service and random arrivals has the mean response time of the formula of
// Pollaczek and Khinchine.
func TestQueueOfRandomArrivals(t *testing.T) {
	const service, messages = time.Millisecond, 3_000_000
	for _, load := range []float64{0.5, 0.8, 0.95} {
		s := atRandom(t, map[float64]string{0.5: "500", 0.8: "800", 0.95: "950"}[load])
		a := (&Draws{Seed: 1}).arrivals(&s, 0, 1)
		var free, sum time.Duration
		for range messages {
			free = max(free, a.next()) + service
			sum += free - a.due
		}
		require.InEpsilon(t, service.Seconds()*(1+load/2/(1-load)), sum.Seconds()/messages, 0.03, load)
		require.InEpsilon(t, messages, s.Average(a.due)*a.due.Seconds(), 5/math.Sqrt(messages))
	}
}
