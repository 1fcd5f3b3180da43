package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/clocktest"
)

func axes() []Axis {
	return []Axis{{"threads", []string{"16", "64", "128"}}, {"queues", []string{"16", "64"}}}
}

func newSweep(repeats int, shuffled bool, seed uint64) *Sweep {
	s := &Sweep{Format: Format, Version: Version, ID: "abc", Plan: "p", Axes: axes(), Repeats: repeats, Shuffled: shuffled, Seed: seed}
	s.Arrange(Cells(s.Axes, func(v map[string]string) bool { return v["threads"] == "128" && v["queues"] == "16" }))
	return s
}

// TestEnded: how long a run took is by the monotonic clock.
func TestEnded(t *testing.T) {
	begun := time.Now()
	r := Run{Start: begun.UnixMicro()}
	r.Ended(begun, clocktest.Set(t, begun.Add(90*time.Second), -time.Hour))
	require.EqualValues(t, 90_000_000, r.End-r.Start)
}

func order(s *Sweep) (list []string) {
	for _, r := range s.Runs {
		list = append(list, fmt.Sprintf("%d.%d", r.Cell, r.Repeat))
	}
	return list
}

// TestArrange: all combinations but the excluded ones, all of them before any is repeated; a seed gives one order, in
// which each round has all cells.
func TestArrange(t *testing.T) {
	t.Parallel()
	s := newSweep(2, false, 0)
	require.Equal(t, []string{"1.1", "2.1", "3.1", "4.1", "5.1", "1.2", "2.2", "3.2", "4.2", "5.2"}, order(s))
	require.Equal(t, "threads=64 queues=16", s.Title(s.Runs[2].Values))
	require.Equal(t, "003_threads=64_queues=16/repeat-1", s.Runs[2].Folder)
	a, b, c := newSweep(20, true, 7), newSweep(20, true, 7), newSweep(20, true, 8)
	require.Equal(t, order(a), order(b))
	require.NotEqual(t, order(a), order(c))
	require.NotEqual(t, order(newSweep(20, false, 7)), order(a))
	for round := range 20 {
		seen := map[int]bool{}
		for _, r := range a.Runs[5*round : 5*round+5] {
			require.Equal(t, round+1, r.Repeat)
			seen[r.Cell] = true
		}
		require.Len(t, seen, 5)
	}
	require.Equal(t, []map[string]string{{}}, Cells(nil, nil))
	odd := &Sweep{Axes: []Axis{{"url", []string{"amqp://a:1/../x"}}}, Repeats: 1}
	odd.Arrange(Cells(odd.Axes, nil))
	require.Equal(t, "001_url=amqp---a-1-..-x/repeat-1", odd.Runs[0].Folder)
}

// TestResume: finished runs stay, what was begun is begun again, in the order and under the ID of before.
func TestResume(t *testing.T) {
	t.Parallel()
	old := newSweep(2, true, 7)
	for i := range 3 {
		old.Runs[i].State, old.Runs[i].Attempts, old.Runs[i].Figures = Done, 1, map[string]float64{"sent": float64(i)}
	}
	old.Runs[3].State, old.Runs[3].Attempts = Running, 2
	dir := t.TempDir()
	require.NoError(t, old.Write(dir))
	read, err := ReadSweep(dir)
	require.NoError(t, err)
	require.Equal(t, old, read)

	s := newSweep(2, true, 99)
	s.ID = "new"
	s.Resume(read)
	require.Equal(t, Done, s.Runs[2].State)
	require.Equal(t, order(old), order(s))
	require.Equal(t, "abc", s.ID)
	require.EqualValues(t, 7, s.Seed)
	require.Equal(t, Waiting, s.Runs[3].State)
	require.Equal(t, 2, s.Runs[3].Attempts)
}

// TestRead: what is no sweep is refused.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := ReadSweep(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.False(t, IsSweep(dir))
	for _, text := range []string{
		"", "{", "[]", `{"format": "x", "version": 1}`, `{"format": "perfmq sweep", "version": 2}`,
		`{"format": "perfmq sweep", "version": 1, "runs": [{"folder": "../x"}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, SweepFile), []byte(text), 0o600))
		_, err := ReadSweep(dir)
		require.Error(t, err, text)
		require.False(t, errors.Is(err, fs.ErrNotExist))
	}
	require.True(t, IsSweep(dir))
}

// filled is a sweep of which each run has ended with figures of its cell and repeat.
func filled(t *testing.T, repeats int, of func(threads string, repeat int) (rate, p50 float64)) *Sweep {
	t.Helper()
	s := &Sweep{Axes: []Axis{{"threads", []string{"1", "2", "4", "8", "16", "32"}}}, Repeats: repeats}
	s.Arrange(Cells(s.Axes, nil))
	for i := range s.Runs {
		r := &s.Runs[i]
		rate, p50 := of(r.Values["threads"], r.Repeat)
		r.State, r.Figures = Done, map[string]float64{"completed.avg": rate, "ack.p50": p50}
		kind := "max-pending"
		if rate >= 795 {
			kind = "broker"
		}
		r.Limits = []Limit{{Kind: kind, Text: kind + " it is"}}
	}
	return s
}

// TestRows: minimum, median and maximum of the repeats; failed ones count as such, and not in the figures.
func TestRows(t *testing.T) {
	t.Parallel()
	rates := map[int]float64{1: 30, 2: 10, 3: 20, 4: 1000}
	s := filled(t, 4, func(_ string, repeat int) (float64, float64) { return rates[repeat], 5 })
	for i := range s.Runs {
		if s.Runs[i].Repeat == 4 {
			s.Runs[i].Status = 1
		}
	}
	s.Runs[0].State = Unfinished // 30 of threads=1
	rows := s.Rows()
	require.Len(t, rows, 6)
	require.Equal(t, Spread{10, 15, 20, 2}, rows[0].Figures["completed.avg"])
	require.Equal(t, Spread{10, 20, 30, 3}, rows[1].Figures["completed.avg"])
	require.Equal(t, []int{2, 1, 3, 1}, []int{rows[0].Good, rows[0].Failed, rows[1].Good, rows[1].Failed})
	require.Equal(t, []string{"completed.avg", "ack.p50"}, s.Columns(rows))
	format := func(v float64) string { return fmt.Sprint(v) }
	require.Equal(t, "best 20 at threads=2, worst 15 at threads=1", s.Best(rows, "completed.avg", format))
	require.Empty(t, s.Best(rows, "ack.p50", format), "all are equal")
	require.Empty(t, s.Best(rows, "received.avg", format))
}

// TestRowsOfParts: a run that a threshold ended early counts as failed, whatever its status and metrics.
func TestRowsOfParts(t *testing.T) {
	t.Parallel()
	s := &Sweep{Repeats: 3}
	s.Arrange(Cells(nil, nil))
	for i, rate := range []float64{100, 200, 9} {
		s.Runs[i].State, s.Runs[i].Figures = Done, map[string]float64{"completed.avg": rate}
	}
	s.Runs[2].Status, s.Runs[2].Aborted = 3, true
	row := s.Rows()[0]
	require.Equal(t, Spread{100, 150, 200, 2}, row.Figures["completed.avg"])
	require.Equal(t, []int{2, 1}, []int{row.Good, row.Failed})
}

// TestBounded: a rate of a step of which perfmq was the limit in one repeat is a lower bound; latencies, rates of other
// steps, and runs that failed are not.
func TestBounded(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tester-worker", "tester-processors", "machine"} {
		s := &Sweep{Repeats: 3, Steps: []string{"fill", "read"}, Axes: []Axis{{"x", []string{"1", "2"}}}}
		s.Arrange(Cells(s.Axes, nil))
		for i := range s.Runs {
			s.Runs[i].State = Done
			s.Runs[i].SetLimits([]Limit{{Step: "fill", Kind: "none"}, {Step: "read", Kind: "broker"}})
			require.False(t, s.Runs[i].AtLeast)
		}
		require.Empty(t, s.Bounded())
		require.Empty(t, s.Rows()[0].Bound("read.received.avg"))
		bounded := func(i int) { s.Runs[i].SetLimits([]Limit{{Step: "fill", Kind: "none"}, {Step: "read", Kind: kind}}) }
		bounded(0)
		bounded(2)
		bounded(1)
		s.Runs[1].Status = 1
		require.True(t, s.Runs[0].AtLeast)
		require.Equal(t, "perfmq was the limit of 2 of 5 runs, so their rates are lower bounds", s.Bounded())
		rows := s.Rows()
		require.Equal(t, []int{2, 0}, []int{rows[0].Bounded, rows[1].Bounded})
		for name, want := range map[string]string{
			"read.received.avg": "at least ", "read.completed.max": "at least ", "read.ack.p99": "", "read.sent": "",
			"fill.completed.avg": "", "received.avg": "",
		} {
			require.Equal(t, want, rows[0].Bound(name), name)
			require.Equal(t, want, s.Runs[0].Bound(name), name)
			require.Empty(t, rows[1].Bound(name), name)
		}
	}
	r := Run{}
	r.SetLimits([]Limit{{Kind: "machine"}})
	require.Equal(t, "at least ", r.Bound("completed.avg"), "of a run of one step")
}
