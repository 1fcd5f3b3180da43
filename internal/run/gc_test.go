package run

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGCPercent(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, c := range []struct {
		name            string
		live, allocated uint64
		want            int
	}{
		{"nothing is known", 0, 0, 400},
		{"a few workers", 4 * mb, 0, 400},
		{"a library that allocates much", 5 * mb, 200 * mb, 400},
		{"many connections are opened", 40 * mb, 30 * mb, 75},
		{"many connections are open", 160 * mb, 0, 25},
		{"an embedded broker under load", 20 * mb, 600 * mb, 320},
		{"a backlog in an embedded broker under load", 100 * mb, 600 * mb, 100},
	} {
		require.Equal(t, c.want, gcPercent(c.live, c.allocated), c.name)
	}
}

func TestTendGC(t *testing.T) {
	before := debug.SetGCPercent(70)
	defer debug.SetGCPercent(before)
	stop := tendGC()
	stop()
	require.Equal(t, 70, debug.SetGCPercent(70), "the setting is restored")
}
