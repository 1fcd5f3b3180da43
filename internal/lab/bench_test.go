//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// received returns runs with these rates.
func received(list ...float64) (runs []measured) {
	for _, rate := range list {
		m := measured{messages: 1}
		m.values[receivedRate] = rate
		runs = append(runs, m)
	}
	return runs
}

// TestBenchRow: medians, their ratio and the aims; nothing is judged of a run that other programs disturbed.
func TestBenchRow(t *testing.T) {
	t.Parallel()
	m := benchmark{aims: []aim{ratioAim(receivedRate, 1.5, true), ratioAim(receivedRate, 1, false)}}
	ours, theirs := received(6, 6, 9), received(4, 2, 5)
	r := m.row([][]measured{ours, theirs})
	require.Len(t, r.Cells, len(metricNames()))
	require.Equal(t, "6.0 / 4.0 (1.50)", r.Cells[receivedRate])
	require.Empty(t, r.Cells[toolCPU])
	require.Equal(t, "received msg/s 1.50, at least 1.5: met; received msg/s 1.50, at most 1: MISSED", r.Verdict)
	require.Equal(t, promiseBroken, r.State)
	m.aims = m.aims[:1]
	require.Equal(t, promiseKept, m.row([][]measured{ours, theirs}).State)
	require.Equal(t, promiseBroken, m.row([][]measured{received(5), theirs}).State)
	require.Equal(t, "5.0 / 0.0 (-)", m.row([][]measured{received(5), received(0)}).Cells[receivedRate])

	theirs[1].health = result.Tester{CPU: 1, MachineBusy: 19, MachineAll: 20}
	r = m.row([][]measured{ours, theirs})
	require.Equal(t, notJudged, r.State)
	require.Equal(t, "not judged: the machine was 95% busy, 90% with other programs than perfmq", r.Verdict)
}

// TestBenchmarks: each has a name of its own, and a broker that exists.
func TestBenchmarks(t *testing.T) {
	t.Parallel()
	b := bench{duration: 2, warmup: 1, repeat: 1}
	trials := musttest.Get(b.trials(nil))(t)
	names := map[string]bool{}
	for _, m := range trials {
		require.False(t, names[m.name], m.name)
		names[m.name] = true
	}
	b.warmup = 2
	_, err := b.trials(nil)
	require.Error(t, err)
	many := connections("amqp", 1000)
	a, two := measured{}, measured{}
	a.values[memory], two.values[memory] = 25+1998.0/32, 25 // MiB; 1998 connections more, at 32 KiB
	require.InDelta(t, 32, many.aims[1].value(&a, &two), 1e-9)
}

func TestReadMeasured(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.json")
	require.NoError(t, os.WriteFile(file, []byte(`[
		{"sampleType": "runtime", "warmup": true, "completed": 999, "received": 999},
		{"sampleType": "runtime", "warmup": false, "completed": 10, "received": 8},
		{"sampleType": "runtime", "warmup": false, "completed": 20, "received": 12},
		{"sampleType": "runtime", "warmup": false, "phase": "drain", "completed": 0, "received": 999},
		{"sampleType": "summary", "totalSent": 60, "totalCompleted": 60, "totalReceived": 40,
		 "totalSendTime": {"50": 1.5, "99": 2.5}, "totalTransferTime": {"50": 3, "99": 4, "count": "x"}}]`), 0o600))
	var m measured
	require.NoError(t, m.read(file))
	require.InDelta(t, 50, m.messages, 0)
	for of, want := range map[metric]float64{
		completedRate: 15, receivedRate: 10, ackP50: 1.5, ackP99: 2.5, transferP50: 3, transferP99: 4, delayP99: 0,
	} {
		require.InDelta(t, want, m.values[of], 0, metricNames()[of])
	}
	require.NoError(t, os.WriteFile(file, []byte(`[]`), 0o600))
	require.ErrorContains(t, new(measured).read(file), "no measured second")
}

// TestCount: the rate is the growth in the time after the warm-up, which begins with the first message.
func TestCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().Add(2 * time.Second)
		growing := func(context.Context) (int64, error) { return max(0, int64(time.Since(began).Seconds()*100)), nil }
		var m measured
		require.NoError(t, m.count(t.Context(), 3*time.Second, 10*time.Second, growing))
		require.InDelta(t, 100, m.values[receivedRate], 0.2)
		require.InDelta(t, 1305, m.messages, 6)

		still := func(context.Context) (int64, error) { return 7, nil }
		require.ErrorContains(t, m.count(t.Context(), time.Second, time.Second, still), "no message in the measured time")
		none := func(context.Context) (int64, error) { return 0, nil }
		require.ErrorContains(t, m.count(t.Context(), time.Second, time.Second, none), "no message reached")
		broken := func(context.Context) (int64, error) { return 0, errors.New("gone") }
		require.ErrorContains(t, m.count(t.Context(), time.Second, time.Second, broken), "gone")
	})
}
