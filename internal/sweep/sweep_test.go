package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestHashCell: the embedded broker and its faults are in the hash of a cell.
func TestHashCell(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range []plan.Plan{{}, {Embedded: true}, {Embedded: true, Faults: "rate=5"}} {
		r := run.Run{Plan: &of, Secrets: new(safetext.Secrets)}
		var b strings.Builder
		require.NoError(t, hashCell(&b, nil, &r))
		seen[b.String()] = true
	}
	require.Len(t, seen, 3)
}

// twoCells returns a sweep of two cells, twice, in which two runs have ended a second late.
func twoCells(shown *shown) *Sweep {
	s := &Sweep{
		Axes: []record.Axis{{Name: "threads", Values: []string{"1", "16"}}}, Cells: []map[string]string{{"threads": "1"}, {"threads": "16"}},
		Repeats: 2, Settle: 2 * time.Second, Progress: shown.progress(), lengths: []time.Duration{10 * time.Second, 20 * time.Second},
	}
	s.Progress.Say = s.Progress.Print
	s.state = &record.Sweep{Name: "threads", Axes: s.Axes, Repeats: 2}
	s.state.Arrange(s.Cells)
	for i, length := range s.lengths {
		r := &s.state.Runs[i]
		r.State, r.End = record.Done, (length + time.Second).Microseconds()
	}
	return s
}

// TestLeft: the time left is that of the plans, and as much more as the runs took that have ended.
func TestLeft(t *testing.T) {
	t.Parallel()
	shown := new(shown)
	s := twoCells(shown)
	s.sayRun(&s.state.Runs[3])
	require.Equal(t, []string{"note: cell 2 of 2, repeat 2 of 2, about 36s left: threads=16"}, shown.printed)
	s.Repeats, s.state.Runs = 1, s.state.Runs[:2]
	s.state.Runs[1].State = record.Running
	s.sayRun(&s.state.Runs[1])
	require.Equal(t, "note: cell 2 of 2, about 23s left: threads=16", shown.printed[1])
	s.lengths, s.state.Runs[0].State = []time.Duration{0, 0}, record.Waiting
	s.Settle = 0
	s.sayRun(&s.state.Runs[0])
	require.Equal(t, "note: cell 1 of 2: threads=1", shown.printed[2], "nothing is known")
}

// TestTable: the medians of each cell stand in tables of 80 columns.
func TestTable(t *testing.T) {
	t.Parallel()
	shown := new(shown)
	s := twoCells(shown)
	for i := range s.state.Runs {
		r := &s.state.Runs[i]
		rate := 1000 * float64(i+1)
		r.State, r.Figures = record.Done, map[string]float64{
			"completed.avg": rate, "received.avg": rate, "ack.p50": 100 * rate, "ack.p99": 200 * rate, "response.p99": 300 * rate, "transfer.p99": 40,
		}
	}
	s.state.Runs[1].SetLimits([]record.Limit{{Kind: result.LimitWorker}})
	require.Equal(t, result.StatusOK, s.conclude(result.StatusOK))
	require.Equal(t, strings.Split(`
--- SWEEP threads: medians of the repeats, with the farthest repeat
perfmq was the limit of 1 of 4 runs, so their rates are lower bounds
threads          runs   completed.avg    received.avg      ack.p50      ack.p99
1                   2     2000/s ±50%     2000/s ±50%  200 ms ±50%  400 ms ±50%
16       2, 1 bounded  >= 3000/s ±33%  >= 3000/s ±33%  300 ms ±33%  600 ms ±33%

threads  response.p99  transfer.p99
1         600 ms ±50%     40 µs ±0%
16        900 ms ±33%     40 µs ±0%`, "\n"), shown.printed)
}
