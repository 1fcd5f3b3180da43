//go:build !race

package load

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

func TestZipf(t *testing.T) {
	for text, want := range map[string]string{"zipf:1.1": "zipf:1.1", " zipf: 10": "zipf:10", "zipf:0.001": "zipf:0.001"} {
		require.Equal(t, want, musttest.Get(ParseZipf(text))(t).String())
	}
	require.Empty(t, Zipf(0).String())
	for _, text := range []string{"", "zipf", "1.1", "zipf:", "zipf:0", "zipf:-1", "zipf:10.1", "zipf:x", "pareto:1"} {
		_, err := ParseZipf(text)
		require.EqualError(t, err, "must be zipf:EXPONENT, above 0 and at most 10, such as zipf:1.1", text)
	}
	list, sum := Zipf(1).weights(4)
	require.Equal(t, []uint64{1 << 32, 1 << 31, 1431655765, 1 << 30}, list)
	require.Equal(t, list[0]+list[1]+list[2]+list[3], sum)
	list, _ = Zipf(10).weights(100)
	require.Equal(t, uint64(1), list[99], "each has a message now and then")
}

// A count is divided exactly, within a message of each share.
func TestSkewOfACount(t *testing.T) {
	for _, z := range []Zipf{0.001, 0.5, 1.1, 2, 10} {
		for _, destinations := range []int{2, 3, 10, 1000} {
			for _, count := range []uint64{1, 7, 1000, 1_000_000, 1_234_567_890_123} {
				base := NewSkew(z, destinations, 1)
				s, sum := base.Count(count), uint64(0)
				for i, n := range s.shares {
					want := float64(count) * float64(base.shares[i]) / float64(base.whole)
					require.InDelta(t, want, n, 1+1e-15*want, "%v of %d: %d", z, destinations, i)
					require.Equal(t, n, s.Share(count, i, destinations))
					sum += n
				}
				require.Equal(t, count, sum)
			}
		}
	}
	require.Nil(t, NewSkew(0, 3, 1).Count(5))
	base := NewSkew(1, 3, 1)
	require.Equal(t, base, base.Count(0))
}

// Share counts the messages that place puts first. Those of a destination are spread evenly, all together nearly so,
// and the producers of a destination take turns.
func TestPlaces(t *testing.T) {
	for _, z := range []Zipf{0.001, 1.1, 3} {
		for _, destinations := range []int{2, 7, 60} {
			for _, each := range []int{1, 3} {
				const all = 2000
				producers := destinations * each
				base := NewSkew(z, destinations, each)
				for _, s := range []*Skew{base, base.Count(all), base.Count(5000)} {
					sums := make([]uint64, 20) // of the first 100, 200, ...
					for index := range producers {
						share := float64(s.shares[index%destinations]) / float64(s.whole)
						own, last := uint64(0), -1
						for n := range uint64(all) {
							if n%100 == 0 && n > 0 {
								sums[n/100-1] += own
							}
							if own != s.Share(n, index, producers) {
								t.Fatalf("%v of %d: producer %d has %d of %d", z, destinations, index, own, n)
							}
							for ; s.place(own, index, producers) == n; own++ {
								if last >= 0 {
									require.InDelta(t, float64(each)/share, int(n)-last, 1)
								}
								last = int(n)
							}
							if math.Abs(float64(n+1)*share/float64(each)-float64(own)) >= 1 {
								t.Fatalf("%v of %d: producer %d has %d of %d", z, destinations, index, own, n+1)
							}
						}
						sums[19] += own
					}
					for i, sum := range sums {
						require.InDelta(t, 100*(i+1), sum, 2*math.Sqrt(float64(destinations)), "%v of %d", z, destinations)
					}
				}
			}
		}
	}
}

// Shares are exact however large the numbers, and a share of nothing has no place.
func TestPlacesOfLargeNumbers(t *testing.T) {
	s := NewSkew(1.1, 3, 2)
	for _, n := range []uint64{1 << 40, 1 << 62, math.MaxUint64} {
		var sum uint64
		for index := range 6 {
			own := s.Share(n, index, 6)
			require.GreaterOrEqual(t, s.place(own, index, 6), n)
			require.Less(t, s.place(own-1, index, 6), n)
			sum += own
		}
		require.InDelta(t, 0, float64(int64(n-sum)), 3)
	}
	none := NewSkew(10, 10, 1).Count(5)
	require.Equal(t, []uint64{5, 0, 0}, none.shares[:3])
	require.Equal(t, uint64(math.MaxUint64), none.place(0, 1, 10))
	require.Equal(t, uint64(math.MaxUint64), NewSkew(10, 10, 1).place(1<<40, 9, 10))
	require.Zero(t, none.Share(1<<60, 1, 10))
	schedule := ConstantSchedule(musttest.Get(ParseRate("1000"))(t))
	p := &Producer{load: Load{Index: 1, Total: 10, Schedule: schedule, Draws: Draws{Skew: none}}}
	require.Equal(t, never, p.nextDue(1))
	p.load.Draws.Skew = NewSkew(1, 10, 1)
	require.Zero(t, testing.AllocsPerRun(100, func() { p.nextDue(31) }))
}

// Random arrivals of unequal shares are Poisson processes with the rates of the shares, and their count is exact.
func TestSkewAtRandom(t *testing.T) {
	const end = 1000 * time.Second
	s, skew := atRandom(t, "poisson 500 for 500s, even 500"), NewSkew(1.1, 5, 2)
	d := &Draws{Seed: 1, Skew: skew}
	counts, evens := make([]float64, 10), make([]uint64, 10)
	var early []float64
	for _, m := range merged(s, d, 10, end, math.MaxUint64) {
		if m.due >= 500*time.Second {
			evens[m.producer]++
		} else if counts[m.producer]++; m.producer == 4 {
			early = append(early, m.due.Seconds())
		}
	}
	for i := range 10 {
		want := 250_000 * skew.Weight(i)
		require.InDelta(t, want, counts[i], 4*math.Sqrt(want))
		require.Equal(t, skew.Share(500_000, i, 10)-skew.Share(250_000, i, 10), evens[i])
		n, _, _ := d.Drawn(s, i, 10, end, 100)
		require.InEpsilon(t, 2*want, n, 0.05)
	}
	require.Less(t, distance(early, func(x float64) float64 { return x / 500 }), 1.95)
	for _, count := range []uint64{10, 5000, maxCounted + 1} {
		d.DrawQuotas(s, 10, count)
		var sum uint64
		for _, n := range d.Quotas {
			sum += n
		}
		require.Equal(t, count, sum)
	}
}

// The keys of a million messages have the weights of the law, by a chi-square test, and follow the seed and the number of
// the message alone.
func TestKeys(t *testing.T) {
	for _, z := range []Zipf{0, 1.2} {
		const n, messages = 1000, 1_000_000
		k := NewKeys(z, n, &Draws{Seed: 7, Name: "0 senders"})
		weights, whole := z.weights(n)
		counts := map[string]float64{}
		repeats, last := 0, ""
		for i := range uint64(messages) {
			key := k.of(i)
			counts[key]++
			if key == last {
				repeats++
			}
			last = key
		}
		chi, again := 0.0, 0.0
		for i, w := range weights {
			share := float64(w) / float64(whole)
			chi += math.Pow(counts[KeyName(i, n)]-messages*share, 2) / (messages * share)
			again += messages * share * share
		}
		require.Len(t, counts, n)
		require.InDelta(t, n-1, chi, 3.3*math.Sqrt(2*n), "one in a thousand")
		require.InDelta(t, again, repeats, 4*math.Sqrt(again), "messages in a row are independent")
		require.Zero(t, testing.AllocsPerRun(1000, func() { k.of(123) }))
		other := NewKeys(z, n, &Draws{Seed: 7, Name: "1 senders"})
		same := 0
		for i := range uint64(1000) {
			if k.of(i) == other.of(i) {
				same++
			}
		}
		require.Less(t, same, 100, "each step has its own")
	}
	k := NewKeys(1.2, 20, &Draws{Seed: 7, Name: "0 senders"})
	require.Equal(t, "key-08 key-00 key-00", strings.Join([]string{k.of(0), k.of(1), k.of(2)}, " "), "in every release")
	require.Equal(t, "key-0", NewKeys(0, 1, &Draws{}).of(5))
	require.Equal(t, "key-9", KeyName(9, 10))
	require.Nil(t, NewKeys(0, 0, &Draws{}))
}
