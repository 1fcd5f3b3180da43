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
	"github.com/perfmq/perfmq/internal/musttest"
)

func axes() []Axis {
	return []Axis{{"threads", []string{"16", "64", "128"}}, {"queues", []string{"16", "64"}}}
}

func newSweep(repeats int, shuffled bool, seed uint64) *Sweep {
	s := &Sweep{Format: Format, Version: Version, ID: "abc", Plan: "p", Axes: axes(), Repeats: repeats, Shuffled: shuffled, Seed: seed}
	s.Arrange(Cells(s.Axes))
	return s
}

// TestEnded: the length of a run is measured by the monotonic clock.
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

// TestArrange: the runs are all combinations, all of them before any is repeated. A seed gives one
// order; each round has all cells.
func TestArrange(t *testing.T) {
	t.Parallel()
	s := newSweep(2, false, 0)
	require.Equal(t, []string{"1.1", "2.1", "3.1", "4.1", "5.1", "6.1", "1.2", "2.2", "3.2", "4.2", "5.2", "6.2"}, order(s))
	require.Equal(t, "threads=64 queues=16", s.Title(s.Runs[2].Values))
	require.Equal(t, "003_threads=64_queues=16/repeat-1", s.Runs[2].Folder)
	a, b, c := newSweep(20, true, 7), newSweep(20, true, 7), newSweep(20, true, 8)
	require.Equal(t, order(a), order(b))
	require.NotEqual(t, order(a), order(c))
	require.NotEqual(t, order(newSweep(20, false, 7)), order(a))
	for round := range 20 {
		seen := map[int]bool{}
		for _, r := range a.Runs[6*round : 6*round+6] {
			require.Equal(t, round+1, r.Repeat)
			seen[r.Cell] = true
		}
		require.Len(t, seen, 6)
	}
	require.Equal(t, []map[string]string{{}}, Cells(nil))
	odd := &Sweep{Axes: []Axis{{"url", []string{"amqp://a:1/../x"}}}, Repeats: 1}
	odd.Arrange(Cells(odd.Axes))
	require.Equal(t, "001_url=amqp---a-1-..-x/repeat-1", odd.Runs[0].Folder)
}

// TestResume: finished runs stay and others begin again, in the old order and with the old ID.
func TestResume(t *testing.T) {
	t.Parallel()
	old := newSweep(2, true, 7)
	for i := range 3 {
		old.Runs[i].State, old.Runs[i].Attempts, old.Runs[i].Figures = Done, 1, map[string]float64{"sent": float64(i)}
	}
	old.Runs[3].State, old.Runs[3].Attempts = Running, 2
	dir := t.TempDir()
	require.NoError(t, old.Write(dir))
	read := musttest.Get(ReadSweep(dir))(t)
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

// TestRead: other files, and folders elsewhere, are refused.
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

// TestRows: a row has minimum, median and maximum of the good repeats of its cell. Runs that failed, that a threshold
// ended early, or that did not end are not good.
func TestRows(t *testing.T) {
	t.Parallel()
	s := &Sweep{Axes: []Axis{{"threads", []string{"1", "2", "4"}}}, Repeats: 5}
	s.Arrange(Cells(s.Axes))
	rates := map[int]float64{1: 30, 2: 10, 3: 20, 4: 1000, 5: 9}
	for i := range s.Runs {
		r := &s.Runs[i]
		r.State, r.Figures = Done, map[string]float64{"completed.avg": rates[r.Repeat], "ack.p50": 5}
		switch r.Repeat {
		case 4:
			r.Status = 1
		case 5:
			r.Status, r.Aborted = 3, true
		}
	}
	s.Runs[0].State = Unfinished // 30 of threads=1
	rows := s.Rows()
	require.Len(t, rows, 3)
	require.Equal(t, Spread{10, 15, 20, 2}, rows[0].Figures["completed.avg"])
	require.Equal(t, Spread{10, 20, 30, 3}, rows[1].Figures["completed.avg"])
	require.Equal(t, []string{"±33% (2 runs)", "±50% (3 runs)", "±0.0% (3 runs)"}, []string{
		rows[0].Figures["completed.avg"].String(), rows[1].Figures["completed.avg"].String(), rows[1].Figures["ack.p50"].String(),
	})
	require.Equal(t, []string{"", "(2 runs)", "±1.5% (2 runs)"}, []string{Spread{1, 1, 1, 1}.String(), Spread{0, 0, 0, 2}.String(), Spread{197, 200, 203, 2}.String()})
	require.Equal(t, []int{2, 2, 3, 2}, []int{rows[0].Good, rows[0].Failed, rows[1].Good, rows[1].Failed})
	require.Equal(t, []string{"completed.avg", "ack.p50"}, s.Columns(rows, Usual()))
	require.Len(t, (&Sweep{Runs: []Run{{Cell: 1 << 50}}}).Rows(), 1, "a file may have any number of a cell")
}

// TestBounded: the rates of a step are lower bounds if perfmq was its limit in one good repeat. Latencies, and rates of
// other steps, are not.
func TestBounded(t *testing.T) {
	t.Parallel()
	s := &Sweep{Repeats: 3, Steps: []string{"fill", "read"}, Axes: []Axis{{"x", []string{"1", "2"}}}}
	s.Arrange(Cells(s.Axes))
	for i := range s.Runs {
		s.Runs[i].State = Done
		kind := "broker"
		if i < 3 {
			kind = "machine"
		}
		s.Runs[i].SetLimits([]Limit{{Step: "fill", Kind: "none"}, {Step: "read", Kind: kind}})
		require.Equal(t, i < 3, s.Runs[i].AtLeast)
	}
	s.Runs[1].Status = 1 // the only one of the second cell
	require.Equal(t, "perfmq was the limit of 2 of 5 runs, so their rates are lower bounds", s.Bounded())
	rows := s.Rows()
	require.Equal(t, []int{2, 0}, []int{rows[0].Bounded, rows[1].Bounded})
	for name, want := range map[string]string{
		"read.received.avg": "at least ", "read.completed.max": "at least ", "read.ack.p99": "", "read.sent": "", "fill.completed.avg": "",
	} {
		require.Equal(t, want, rows[0].Bound(name), name)
		require.Equal(t, want, s.Runs[0].Bound(name), name)
		require.Empty(t, rows[1].Bound(name), name)
	}
}
