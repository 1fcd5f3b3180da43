// Package musttest shortens the calls of tests that must not fail.
package musttest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Get takes the results of a call, and returns a function that ends the test if the call failed, and else returns the
// value: k := musttest.Get(d.Consumer(ctx, spec))(t).
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return value
	}
}
