package search_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/search"
)

// capacity is a probe of a broker that takes so many messages a second.
func capacity(n float64) search.Probe {
	return func(_ context.Context, rate float64, _ bool) (search.Point, error) {
		return search.Point{Kept: rate <= n, Why: "too much"}, nil
	}
}

// TestMax: whatever a broker takes, the search finds it to 2%, in few points.
func TestMax(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // must be repeatable
	for range 300 {
		n := 2 * float64(uint64(1)<<random.IntN(24)) * (1 + random.Float64())
		for _, first := range []float64{0, 1, 37, 1e6} {
			f, err := search.Max(t.Context(), search.Config{First: first}, capacity(n))
			require.NoError(t, err)
			require.LessOrEqual(t, f.Rate, n)
			require.Greater(t, f.Above, n)
			require.LessOrEqual(t, f.Above/f.Rate, 1.02+1e-9)
			require.True(t, f.Held)
			require.Equal(t, search.Point{Rate: f.Above, Why: "too much"}, f.Failed)
			require.LessOrEqual(t, len(f.Points), 41)
		}
	}
}

func TestEnds(t *testing.T) {
	f, err := search.Max(t.Context(), search.Config{}, capacity(0.5))
	require.ErrorIs(t, err, search.ErrNothing)
	assert.Zero(t, f.Rate)
	assert.InDelta(t, 1, f.Above, 0)

	f, err = search.Max(t.Context(), search.Config{}, capacity(1e9))
	require.NoError(t, err)
	assert.InDelta(t, 1e8, f.Rate, 0)
	assert.Zero(t, f.Above)
	assert.True(t, f.Held)

	gone := errors.New("gone")
	n := 0
	f, err = search.Max(t.Context(), search.Config{}, func(_ context.Context, _ float64, _ bool) (search.Point, error) {
		if n++; n > 3 {
			return search.Point{}, gone
		}
		return search.Point{Kept: true}, nil
	})
	require.ErrorIs(t, err, gone)
	assert.InDelta(t, 4000, f.Rate, 0)
	assert.False(t, f.Held)
	assert.Len(t, f.Points, 3, "what was found is not lost")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = search.Max(ctx, search.Config{}, capacity(1))
	require.ErrorIs(t, err, context.Canceled)
}

// TestHold: a rate that is kept for a moment and not for longer is not what is found.
func TestHold(t *testing.T) {
	f, err := search.Max(t.Context(), search.Config{}, func(_ context.Context, rate float64, hold bool) (search.Point, error) {
		return search.Point{Kept: rate <= 5000 || rate <= 5200 && !hold}, nil
	})
	require.NoError(t, err)
	assert.True(t, f.Held)
	assert.GreaterOrEqual(t, f.Rate, 0.9*5000)
	assert.LessOrEqual(t, f.Rate, 5000.0)

	f, err = search.Max(t.Context(), search.Config{}, func(_ context.Context, _ float64, hold bool) (search.Point, error) {
		return search.Point{Kept: !hold && len("ever") > 0, Why: "never holds"}, nil
	})
	require.NoError(t, err)
	assert.False(t, f.Held)
}

// TestChance: a load that failed once by chance, wherever in the search, does not hide the rates above it.
func TestChance(t *testing.T) {
	for bad := 1; bad <= 12; bad++ {
		n := 0
		f, err := search.Max(t.Context(), search.Config{}, func(_ context.Context, rate float64, hold bool) (search.Point, error) {
			if !hold {
				n++
			}
			return search.Point{Kept: rate <= 5000 && (hold || n != bad), Why: "too much"}, nil
		})
		require.NoError(t, err)
		require.True(t, f.Held)
		require.InEpsilon(t, 5000, f.Rate, 0.02, "load %d: %v", bad, f.Points)
		require.Greater(t, f.Above, 5000.0)
		require.Equal(t, f.Above, f.Failed.Rate)
	}
	// The rate is as high as the search goes.
	n := 0
	f, err := search.Max(t.Context(), search.Config{First: 4e7}, func(_ context.Context, _ float64, _ bool) (search.Point, error) {
		n++
		return search.Point{Kept: n != 2}, nil
	})
	require.NoError(t, err)
	require.InDelta(t, 1e8, f.Rate, 0)
	require.Zero(t, f.Above)
	require.True(t, f.AtLeast())
}

// TestDisturbed: a load that the tester itself spoiled is repeated once.
func TestDisturbed(t *testing.T) {
	n := 0
	f, err := search.Max(t.Context(), search.Config{}, func(_ context.Context, rate float64, _ bool) (search.Point, error) {
		n++
		spoiled := n%3 == 0
		return search.Point{Kept: rate <= 5000 && !spoiled, Tester: spoiled}, nil
	})
	require.NoError(t, err)
	assert.InDelta(t, 5000, f.Rate, 100)
	assert.False(t, f.Failed.Tester)

	f, err = search.Max(t.Context(), search.Config{}, func(_ context.Context, rate float64, _ bool) (search.Point, error) {
		return search.Point{Kept: rate <= 5000, Tester: true}, nil
	})
	require.NoError(t, err)
	assert.True(t, f.Failed.Tester, "the tester is the limit each time")
}
