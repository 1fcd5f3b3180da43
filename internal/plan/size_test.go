package plan

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// The sizes of a distribution are its quantiles, cut at the maximum.
func TestLognormalSizes(t *testing.T) {
	for _, c := range []struct {
		text, law          string
		first, last, atMax int
	}{
		{"lognormal:2KiB:1.0", "lognormal:2KiB:1.0:64KiB", 183, 22975, 0},
		{"lognormal:2000:0.5:3000", "lognormal:2000:0.5:3000", 597, 3000, 13},
		{"lognormal:10:2", "lognormal:10:2:320", 1, 320, 3},
		{"lognormal:1GiB:0.1", "lognormal:1GiB:0.1:1GiB", 843153439, 1 << 30, 32},
	} {
		list := musttest.Get(LognormalSizes(c.text))(t)
		require.Len(t, list, 64)
		mix, atMax := []Variant{}, 0
		for i, s := range list {
			require.Equal(t, Size{s.Bytes, 1, c.law}, s)
			if i > 0 {
				require.GreaterOrEqual(t, s.Bytes, list[i-1].Bytes)
			}
			if s.Bytes == list[63].Bytes {
				atMax++
			}
			mix = append(mix, Variant{Weight: 1, BodySize: s.Bytes, Law: s.Law})
		}
		require.Equal(t, [2]int{c.first, c.last}, [2]int{mix[0].BodySize, mix[63].BodySize}, c.text)
		require.Equal(t, max(c.atMax, 1), atMax, c.text)
		if c.law == "lognormal:2KiB:1.0:64KiB" {
			// Size i is where the distribution function is (i + 1/2) / 64, and the mean a little below that of the distribution.
			for i, s := range list {
				p := math.Erfc(-math.Log(float64(s.Bytes)/2048)/math.Sqrt2) / 2
				require.InDelta(t, (float64(i)+0.5)/64, p, 0.001, "%d", s.Bytes)
			}
			g := &Group{Role: Producer, Mix: mix}
			require.InEpsilon(t, 2048*math.Exp(0.5), g.meanBody(), 0.03)
			require.Equal(t, []string{"lognormal:2KiB:1.0:64KiB: 64 sizes from 183 to 22975 bytes, 3312 on average"}, g.notes())
			require.GreaterOrEqual(t, g.Bytes(4), int64(4*22975))
		}
	}
}
