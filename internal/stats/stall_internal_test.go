package stats

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestPausesOfTheTesterAreNotStalls: time in which perfmq was paused is cut off.
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
				require.Equal(t, result.Stall{Elapsed: int64(tt.want[0]) * 1000, Length: int64(tt.want[1]) * 1000}, s.Stall)
			}
		})
	}
}

// TestSidesOfStalls: times of both sides are one stall if they are nearly the same.
func TestSidesOfStalls(t *testing.T) {
	run := new(part)
	of := func(side string, start, length int64) stall {
		return stall{Stall: result.Stall{Side: side, Elapsed: start, Length: length}, part: run}
	}
	require.Equal(t, []stall{of(BothSides, 1000, 210)}, joined([]stall{of(SendSide, 1000, 200), of(ReceiveSide, 1010, 200)}))
	apart := []stall{of(ReceiveSide, 900, 3000), of(SendSide, 1000, 200)}
	require.Equal(t, apart, joined(slices.Clone(apart)))

	var days []stall // took a minute
	for i := range maxFound {
		days = append(days, of([]string{SendSide, ReceiveSide}[i%2], int64(i/2)*2, 1))
	}
	require.Len(t, joined(days), maxFound/2)
}

// TestMoreStalls: stalls for which there is no room are counted, and the longest of each part and step is known.
func TestMoreStalls(t *testing.T) {
	s := int64(1e6)
	c := NewCollector([]*ProducerRecorder{NewProducerRecorder(false, nil)}, nil, time.Now())
	c.SetStallLimit(time.Second)
	m, run, group := &c.stalls, &part{}, &part{PartStalls: PartStalls{Group: "a"}, kind: ofGroup, group: "a"}
	add := func(p *part, start, length int64) {
		m.add(p, []stall{{Stall: result.Stall{Side: SendSide, Elapsed: start, Length: length}}})
	}
	for i := range int64(maxFound) {
		add(run, i*10*s, s)
	}
	after := int64(maxFound) * 10 * s
	for i, length := range []int64{2 * s, 5 * s, s} {
		add(run, after+int64(i)*10*s, length)
		add(group, after+100*s+int64(i)*10*s, length)
	}
	check := func(sum *Summary, count uint64, longest int64) {
		t.Helper()
		metrics := sum.Metrics()
		require.InDelta(t, count, metrics["stall.count"], 0)
		require.InDelta(t, longest, metrics["stall.max"], 0)
	}
	sum := c.SumRun()
	check(&sum, maxFound+6, 5*s)
	require.Len(t, sum.Stalls, maxFound+1)
	var ofA Summary
	c.setStalls(&ofA, false, "a")
	check(&ofA, 3, 5*s)

	c.BeginStep()
	c.EndStep("first")
	add(run, after+200*s, 3*s)
	add(run, after+300*s, 4*s)
	c.setStalls(&ofA, true, "")
	check(&ofA, 2, 4*s)
}

// A stall of many workers is the time that is quiet for all of them, from when the first of them waited.
func TestStandstill(t *testing.T) {
	s := time.Second
	m := part{limit: s, members: []int{0, 1}}
	found := m.interval([]workerGaps{{[]gap{{s, 4 * s, 3500 * time.Millisecond}}, gap{4 * s, never, never}}, {nil, gap{2 * s, never, never}}}, false, false, nil)
	require.Empty(t, found, "the other worker may have waited longer")
	found = m.interval([]workerGaps{{nil, gap{4 * s, never, never}}, {[]gap{{2 * s, 4*s + s/100, 2100 * time.Millisecond}}, gap{4*s + s/100, never, never}}}, false, false, nil)
	require.Empty(t, found)
	quiet := []workerGaps{{nil, gap{5 * s, never, never}}, {nil, gap{5 * s, never, never}}}
	found = m.interval(quiet, false, false, nil)
	require.Equal(t, []stall{{Stall: result.Stall{Elapsed: 2_100_000, Length: 1_900_000}, exact: 1900 * time.Millisecond}}, found)
	require.Empty(t, m.interval(quiet, false, true, nil))
}
