//go:build unix

package peerbench

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	same := func(v float64) float64 { return v }
	require.InDelta(t, 2, Median([]float64{3, 1, 2}, same), 0)
	require.InDelta(t, 3, Median([]float64{4, 3, 1, 2}, same), 0)
	require.True(t, math.IsNaN(Median(nil, same)))
	require.True(t, math.IsNaN(Median([]float64{1, math.NaN(), 2}, same)))
}

func TestTable(t *testing.T) {
	var out strings.Builder
	table := Table[float64]{W: &out, Columns: []Column[float64]{{"ours", []float64{6}}, {"theirs", []float64{4, 3, 5}}, {"none", nil}}}
	table.Head("title")
	table.Row("row", func(v float64) float64 { return v })
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, []string{"ours", "theirs", "none", "/", "theirs", "/", "none"}, strings.Fields(lines[2]))
	require.Equal(t, []string{"row", "6.0", "4.0", "-", "1.50", "-"}, strings.Fields(lines[3]))
}

func TestReadOutcome(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	file := filepath.Join(t.TempDir(), "run.json")
	require.NoError(t, os.WriteFile(file, []byte(`[
		{"sampleType":"sample","warmup":true,"completed":1000,"received":1000},
		{"sampleType":"sample","completed":10,"received":8},
		{"sampleType":"sample","completed":20,"received":12},
		{"sampleType":"sample","phase":"drain","completed":500,"received":500},
		{"sampleType":"summary","totalSent":1600,"totalCompleted":1530,"totalReceived":1520,"totalSendTime":{"50":7,"99":9}}]`), 0o600))
	o, err := ReadOutcome(file, cmd.ProcessState)
	require.NoError(t, err)
	require.InDelta(t, 15, o.Completed, 0)
	require.InDelta(t, 10, o.Received, 0)
	require.InDelta(t, 1600, o.Sent, 0)
	require.InDelta(t, 1525, o.Messages, 0)
	require.InDelta(t, 9, o.Send.P99, 0)

	require.NoError(t, os.WriteFile(file, []byte(`[]`), 0o600))
	_, err = ReadOutcome(file, cmd.ProcessState)
	require.ErrorContains(t, err, "no measured second")
}

// steady counts so many a second from its first question on, and begins at 70.
func steady(perSecond float64) Counter {
	var start time.Time
	return func(context.Context) (int64, error) {
		if start.IsZero() {
			start = time.Now()
		}
		return 70 + int64(time.Since(start).Seconds()*perSecond), nil
	}
}

// shell runs a script. Scripts use exec, so that a signal reaches the command that the shell would wait for.
func shell(script string) func(context.Context) *exec.Cmd {
	return func(ctx context.Context) *exec.Cmd { return Perfmq(ctx, "/bin/sh", "-c", script) }
}

// TestRunCounted: the rate is that between the first count of at least 300 messages and the first of at least 1000. Each
// count was taken between the calls beside it.
func TestRunCounted(t *testing.T) {
	type reading struct {
		n  int64
		at time.Time
	}
	var readings []reading
	count := func(context.Context) (int64, error) {
		n := int64(50 * len(readings)) // 50 more at each question
		if n > 1000 {
			n = 5000 // messages after the measured part count in the total only
		}
		readings = append(readings, reading{n, time.Now()})
		return 70 + n, nil
	}
	c, err := RunCounted(t.Context(), shell("echo hello; exec sleep 120"), count,
		Window{After: 50 * time.Millisecond, AfterCount: 300, UntilCount: 1000, Until: time.Minute}, true)
	require.NoError(t, err, "it is stopped, not waited for")
	require.InDelta(t, 5000, c.Messages, 0)
	require.Equal(t, "hello\n", c.Output)
	from := slices.IndexFunc(readings, func(r reading) bool { return r.n >= 300 })
	to := slices.IndexFunc(readings, func(r reading) bool { return r.n >= 1000 })
	n := float64(readings[to].n - readings[from].n)
	require.GreaterOrEqual(t, c.Rate, n/readings[to+1].at.Sub(readings[from-1].at).Seconds())
	if least := readings[to-1].at.Sub(readings[from+1].at).Seconds(); least > 0 {
		require.LessOrEqual(t, c.Rate, n/least)
	}
}

func TestRunCountedFailures(t *testing.T) {
	window := Window{After: 10 * time.Second, Until: 20 * time.Second}
	_, err := RunCounted(t.Context(), shell("echo broken; exit 3"), steady(1000), window, true)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "broken")

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = RunCounted(ctx, shell("exec sleep 60"), steady(1000), window, true)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	_, err = RunCounted(t.Context(), shell("exec sleep 60"), func(context.Context) (int64, error) {
		return 0, fmt.Errorf("no broker")
	}, window, true)
	require.ErrorContains(t, err, "no broker")
}
