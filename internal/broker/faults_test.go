package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/musttest"
)

func TestParseFaults(t *testing.T) {
	for text, want := range map[string]store.Faults{
		"": {}, "none": {}, "lose=1000": {LoseEvery: 1000}, "full": {Full: true}, "full=false": {},
		" lose=1, damage=2,duplicate=3,reorder=4,withhold=5,drop=6,delay=5ms,rate=7,work=8us,full=true,refuse\n": {
			LoseEvery: 1, DamageEvery: 2, DuplicateEvery: 3, ReorderEvery: 4, WithholdEvery: 5, DropEvery: 6,
			Delay: 5 * time.Millisecond, Rate: 7, Work: 8 * time.Microsecond, Full: true, Refuse: true,
		},
	} {
		got, err := ParseFaults(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		again := musttest.Get(ParseFaults(FormatFaults(got)))(t)
		assert.Equal(t, got, again)
	}
	_, err := ParseFaults("lose,delay=-1s,delay=2000000h,full=maybe,burn=1,damage=2,work=2s")
	require.EqualError(t, err, `fault lose: must be lose=N, such as 1000 or 10k
fault delay=-1s: must be delay=TIME, such as 5ms, and at most 24h0m0s
fault delay=2000000h: must be delay=TIME, such as 5ms, and at most 24h0m0s
fault full=maybe: must be full, or full=false
unknown fault "burn=1": known are lose, damage, duplicate, reorder, withhold, drop, delay, rate, work, full, refuse
fault work=2s: must be work=TIME, such as 5ms, and at most 1s`)
}
