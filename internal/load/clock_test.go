package load_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/clocktest"
	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/musttest"
)

// TestMoment: a moment after the wall clock was set is where it would be if it had not.
func TestMoment(t *testing.T) {
	c := load.NewClock()
	for _, set := range []time.Duration{0, -time.Hour, 25 * time.Hour} {
		got := c.Moment(clocktest.Set(t, c.Start().Add(1500*time.Millisecond), set))
		require.Equal(t, c.Start().Add(1500*time.Millisecond), got)
		require.Equal(t, 1500*time.Millisecond, got.Round(0).Sub(c.Start().Round(0)))
	}
	before := c.Moment(clocktest.Set(t, c.Start().Add(-time.Second), time.Hour))
	require.Equal(t, -time.Second, before.Round(0).Sub(c.Start().Round(0)))
}

func TestMain(m *testing.M) { leaktest.Main(m) }

func rate(t testing.TB, s string) load.Rate {
	t.Helper()
	r := musttest.Get(load.ParseRate(s))(t)
	return r
}

func schedule(t testing.TB, text string) load.Schedule {
	t.Helper()
	s, err := load.ParseSchedule(text)
	require.NoError(t, err, text)
	return s
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]float64{
		"30000": 30000, "0.5": 0.5, "33.333": 33.333, "1e3": 1000, "+7": 7, "1000000000": 1e9, "0.000000001": 1e-9,
		".5": 0.5, "1.123456789": 1.123456789,
	} {
		r, err := load.ParseRate(s)
		require.NoError(t, err, s)
		require.InEpsilon(t, want, r.PerSecond(), 1e-12, s)
		require.False(t, r.IsZero())
	}
	for _, s := range []string{
		"", "0", "-1", "0.0", "abc", "1/2", "0x10", "1_000", "1000000000.1", "1e10", "NaN", "Inf", "1 ", " 1", "1p3",
		"1.00000000000000000001", "0.0000000001", "1e-30",
	} {
		_, err := load.ParseRate(s)
		require.Error(t, err, s)
	}
	require.True(t, load.Rate(0).IsZero())
	require.Zero(t, load.Rate(0).PerSecond())
}

// Message n is due at floor(n / rate), computed here with big integers: no drift, however far into the run.
func TestRateAtIsExact(t *testing.T) {
	day := uint64(24 * 3600)
	for _, s := range []string{"0.5", "1", "3", "7", "10", "33.333", "1000", "30000", "123456.789", "1000000000", "0.000000001"} {
		r := rate(t, s)
		ratio, _ := new(big.Rat).SetString(s)
		var last time.Duration
		for _, n := range []uint64{0, 1, 2, 3, 6, 7, 10, 999, 7 * day, 1000003, 30000 * day, 30000 * 10 * day} {
			due := new(big.Rat).Quo(new(big.Rat).SetInt64(int64(n)), ratio)
			due.Mul(due, big.NewRat(1e9, 1))
			want := new(big.Int).Quo(due.Num(), due.Denom())
			if !want.IsInt64() {
				want.SetInt64(math.MaxInt64)
			}
			got := load.ConstantSchedule(r).At(n)
			require.Equal(t, want.Int64(), int64(got), "rate %s message %d", s, n)
			require.GreaterOrEqual(t, got, last)
			last = got
		}
	}
	require.Equal(t, time.Duration(math.MaxInt64), load.ConstantSchedule(rate(t, "0.000000001")).At(math.MaxUint64))
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"1", "0.5", "33.333", "1e9", "1e-9", "1e-999999999", "1e999999999", "-3", "1/3", "0b1", "0o7", "٣", "NaN"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		begun := time.Now()
		r, err := load.ParseRate(s)
		require.Less(t, time.Since(begun), time.Minute, "a mistyped number must not keep the user waiting")
		if err != nil {
			require.True(t, r.IsZero())
			return
		}
		require.Greater(t, r.PerSecond(), 0.0)
		require.LessOrEqual(t, r.PerSecond(), 1e9)
		want, ok := new(big.Rat).SetString(s)
		require.True(t, ok)
		second := new(big.Rat).Mul(want, big.NewRat(1, 1)) // messages in a second
		n := new(big.Int).Quo(second.Num(), second.Denom()).Uint64()
		schedule := load.ConstantSchedule(r)
		require.LessOrEqual(t, schedule.At(n), time.Second)
		require.GreaterOrEqual(t, schedule.At(n+1), time.Second-time.Nanosecond)
		require.Zero(t, schedule.At(0))
	})
}
