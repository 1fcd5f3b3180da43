//go:build unix

package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJavaAccount(t *testing.T) {
	for output, want := range map[string]float64{
		"topic: T\nCurrent Time: x | Send TPS: 5 | Max RT(ms): 1\nCurrent Time: x | Send TPS: 23181 | Send Failed: 0 | Response Failed: 0\n": 23181,
		"Current Time: x | Send TPS: 100 | Send MPS: 1600 | Max RT(ms): 3\n":                                                                 1600,
		"Current Time: x | Consume TPS: 70904 | AVG(B2C) RT(ms): 1.0 | Consume Fail: 0\n":                                                    70904,
		"[Complete] Send Total: 50000 | Send TPS: 9168 | Max RT(ms): 800\n":                                                                  9168,
	} {
		require.InDelta(t, want, javaAccount(output), 0, output)
	}
	require.True(t, math.IsNaN(javaAccount("Consumer Started.\n")))
}

func TestVerdict(t *testing.T) {
	require.Equal(t, "4.00 (aim at least 4: met)", verdict(4, 4, true))
	require.Equal(t, "3.90 (aim at least 4: MISSED)", verdict(3.9, 4, true))
	require.Equal(t, "0.60 (aim at most 0.5: MISSED)", verdict(0.6, 0.5, false))
	require.Equal(t, "0.50 (aim at most 0.5: met)", verdict(0.5, 0.5, false))
	require.Contains(t, verdict(math.NaN(), 1, true), "not known")
}
