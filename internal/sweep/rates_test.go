package sweep

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/sweep/record"
)

type probe func(rate float64, hold bool) (record.Point, error)

// capacity is a probe of a broker that takes so many messages a second.
func capacity(n float64) probe {
	return func(rate float64, _ bool) (record.Point, error) {
		return record.Point{Kept: rate <= n, Why: "too much"}, nil
	}
}

// quietly searches without notes of the loads.
func quietly(first float64, probe probe) (*record.Search, error) {
	found := &record.Search{}
	return found, (&finder{first: first, probe: probe, note: func(*record.Search) error { return nil }, Search: found}).highest()
}

// TestMax: the search finds any capacity to 2%, in few points.
func TestMax(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // must be repeatable
	for range 300 {
		n := 2 * float64(uint64(1)<<random.IntN(24)) * (1 + random.Float64())
		for _, first := range []float64{0, 1, 37, 1e6} {
			f := musttest.Get(quietly(first, capacity(n)))(t)
			require.LessOrEqual(t, f.Rate, n)
			require.Greater(t, f.Above, n)
			require.LessOrEqual(t, f.Above/f.Rate, 1.02+1e-9)
			require.True(t, f.Held)
			require.Equal(t, record.Point{Rate: f.Above, Why: "too much"}, f.Failed)
			require.LessOrEqual(t, len(f.Points), 41)
		}
	}
}

// TestOutlook: of a steady broker, the number of loads to follow is right to two, from the first load that fails on.
func TestOutlook(t *testing.T) {
	for _, n := range []float64{1500, 37_000, 400} {
		found := &record.Search{}
		var said []string
		f := &finder{probe: capacity(n), Search: found}
		f.note = func(*record.Search) error { said = append(said, f.outlook()); return nil }
		require.NoError(t, f.highest())
		require.Len(t, said, len(found.Points))
		for i, text := range said[:len(said)-1] {
			var left int
			if _, err := fmt.Sscanf(text, "; about %d to follow", &left); err == nil {
				require.InDelta(t, len(said)-1-i, left, 2, said)
			} else {
				require.Empty(t, text)
			}
		}
		require.Regexp(t, `; about \d+ to follow`, said[len(said)/2+1])
		require.Empty(t, said[len(said)-1])
	}
}

func TestEnds(t *testing.T) {
	f, err := quietly(0, capacity(0.5))
	require.ErrorIs(t, err, errNothing)
	assert.Zero(t, f.Rate)
	assert.InDelta(t, 1, f.Above, 0)

	f = musttest.Get(quietly(0, capacity(1e9)))(t)
	assert.InDelta(t, 1e8, f.Rate, 0)
	assert.Zero(t, f.Above)
	assert.True(t, f.Held)

	gone := errors.New("gone")
	n := 0
	f, err = quietly(0, func(_ float64, _ bool) (record.Point, error) {
		if n++; n > 3 {
			return record.Point{}, gone
		}
		return record.Point{Kept: true}, nil
	})
	require.ErrorIs(t, err, gone)
	assert.InDelta(t, 4000, f.Rate, 0)
	assert.False(t, f.Held)
	assert.Len(t, f.Points, 3, "what was found is not lost")
}

// TestChance: a load that failed once by chance does not hide the rates above it.
func TestChance(t *testing.T) {
	for bad := range 13 {
		n := 0
		f, err := quietly(0, func(rate float64, hold bool) (record.Point, error) {
			if !hold {
				n++
			}
			return record.Point{Kept: rate <= 5000 && (hold || n != bad), Why: "too much"}, nil
		})
		require.NoError(t, err)
		require.True(t, f.Held)
		require.InEpsilon(t, 5000, f.Rate, 0.02, "load %d: %v", bad, f.Points)
		require.Greater(t, f.Above, 5000.0)
		require.Equal(t, f.Above, f.Failed.Rate)
	}
}

// TestHold: a rate that passes for a moment, and fails when it is held, is not the result.
func TestHold(t *testing.T) {
	f, err := quietly(0, func(rate float64, hold bool) (record.Point, error) {
		return record.Point{Kept: rate <= 5000 || rate <= 5200 && !hold}, nil
	})
	require.NoError(t, err)
	assert.True(t, f.Held)
	assert.GreaterOrEqual(t, f.Rate, 0.9*5000)
	assert.LessOrEqual(t, f.Rate, 5000.0)

	f = musttest.Get(quietly(0, func(_ float64, hold bool) (record.Point, error) { return record.Point{Kept: !hold}, nil }))(t)
	assert.False(t, f.Held)
}

// TestUndecided: after two loads in a row with perfmq as the limit, only the rate that passed is held.
func TestUndecided(t *testing.T) {
	for _, c := range []struct {
		// by number of the load, the rate and whether it is held: passes, perfmq is the limit
		probe func(n int, rate float64, hold bool) (passes, perfmq bool)
		err   error
		kind  string
		loads int // 0 for any number
	}{
		{func(int, float64, bool) (bool, bool) { return false, true }, errUndecided, record.Undecided, 2},
		{func(_ int, rate float64, _ bool) (bool, bool) { return rate <= 5000, rate > 5000 }, nil, record.AtLeast, 6},
		{func(_ int, rate float64, _ bool) (bool, bool) { return false, rate < 900 }, errUndecided, record.Undecided, 3},
		{func(_ int, rate float64, hold bool) (bool, bool) { return rate <= 1000 && !hold, hold }, errUndecided, record.Undecided, 0},
		{func(n int, rate float64, _ bool) (bool, bool) { return n%2 == 0 && rate <= 5000, n%2 == 1 }, nil, record.Maximum, 0},
	} {
		n := 0
		f, err := quietly(0, func(rate float64, hold bool) (record.Point, error) {
			n++
			passes, perfmq := c.probe(n, rate, hold)
			return record.Point{Kept: passes, Tester: perfmq && !passes}, nil
		})
		require.ErrorIs(t, err, c.err)
		require.True(t, f.Complete)
		require.Equal(t, c.kind, f.Kind(), f)
		if c.loads > 0 {
			require.Len(t, f.Points, c.loads)
		}
		bounded := 0
		for i, p := range f.Points {
			if bounded++; !p.Tester {
				bounded = 0
			}
			require.True(t, bounded < 2 || i == len(f.Points)-1 || f.Points[i+1].Hold, "it continues: %v", f.Points)
		}
	}
}
