package stats

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPausesOfTheTesterAreNotStalls: time in which the tester itself stood still is cut off.
func TestPausesOfTheTesterAreNotStalls(t *testing.T) {
	ms := time.Millisecond
	for name, tt := range map[string]struct {
		from, to int // milliseconds
		pauses   []gap
		want     []int // start and length in milliseconds; nil for none
	}{
		"no pause":               {1000, 4000, nil, []int{1000, 3000}},
		"the pause is all of it": {1000, 4000, []gap{{from: 990 * ms, to: 3995 * ms}}, nil},
		"it began after a beat":  {1000, 4000, []gap{{from: 1015 * ms, to: 3995 * ms}}, nil},
		"a pause at the start":   {1000, 4000, []gap{{from: 900 * ms, to: 1500 * ms}}, []int{1500, 2500}},
		"a pause at the end":     {1000, 4000, []gap{{from: 3500 * ms, to: 4010 * ms}}, []int{1000, 2500}},
		"a pause within":         {1000, 4000, []gap{{from: 2000 * ms, to: 2500 * ms}}, []int{1000, 3000}},
		"too much of it":         {1000, 4000, []gap{{from: 1200 * ms, to: 3500 * ms}}, nil},
		"pauses elsewhere":       {1000, 4000, []gap{{from: 100 * ms, to: 900 * ms}, {from: 4000 * ms, to: 5000 * ms}}, []int{1000, 3000}},
	} {
		t.Run(name, func(t *testing.T) {
			c := candidate{gap: gap{time.Duration(tt.from) * ms, time.Duration(tt.to) * ms, 0}}
			s, ok := c.stall(time.Second, tt.pauses)
			require.Equal(t, tt.want != nil, ok)
			if ok {
				require.Equal(t, stall{start: time.Duration(tt.want[0]) * ms, length: time.Duration(tt.want[1]) * ms}, s)
			}
		})
	}
}

// TestSidesOfStalls: times of both sides are one stall if they are nearly the same.
func TestSidesOfStalls(t *testing.T) {
	s, run := time.Second, new(part)
	require.Equal(t, []stall{{side: BothSides, start: 10 * s, length: 21 * s / 10, part: run}}, joined([]stall{
		{side: SendSide, start: 10 * s, length: 2 * s, part: run}, {side: ReceiveSide, start: 10*s + s/10, length: 2 * s, part: run},
	}))
	apart := []stall{{side: ReceiveSide, start: 9 * s, length: 30 * s, part: run}, {side: SendSide, start: 10 * s, length: 2 * s, part: run}}
	require.Equal(t, apart, joined(slices.Clone(apart)))

	var days []stall // took a minute
	for i := range maxFound {
		days = append(days, stall{side: []string{SendSide, ReceiveSide}[i%2], start: time.Duration(i/2) * 2 * s, length: s, part: run})
	}
	require.Len(t, joined(days), maxFound/2)
}

// A stall of many workers is the time that is quiet for all of them, from when the first of them waited.
func TestStandstill(t *testing.T) {
	s := time.Second
	m := part{limit: s}
	found := m.interval([][]gap{{{s, 4 * s, 3500 * time.Millisecond}}, nil}, []gap{{4 * s, never, never}, {2 * s, never, never}}, false, false, nil)
	require.Empty(t, found, "the other worker may have waited longer")
	found = m.interval([][]gap{nil, {{2 * s, 4*s + s/100, 2100 * time.Millisecond}}}, []gap{{4 * s, never, never}, {4*s + s/100, never, never}}, false, false, nil)
	require.Empty(t, found)
	found = m.interval([][]gap{nil, nil}, []gap{{5 * s, never, never}, {5 * s, never, never}}, false, false, nil)
	require.Equal(t, []stall{{start: 2100 * time.Millisecond, length: 1900 * time.Millisecond}}, found)
	require.Empty(t, m.interval([][]gap{nil, nil}, []gap{{5 * s, never, never}, {5 * s, never, never}}, false, true, nil))
}
