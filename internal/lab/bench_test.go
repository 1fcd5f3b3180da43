//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
)

// rates returns a column whose runs have these rates and this state of the machine.
func rates(name string, h stats.Health, list ...float64) column {
	next := 0
	return column{name: name, run: func(context.Context) (measured, error) {
		next++
		return measured{received: list[next-1], health: h, messages: 1}, nil
	}}
}

func TestContest(t *testing.T) {
	t.Parallel()
	busy := stats.Health{CPU: 1, Machine: 19, MachineAll: 20}
	for name, c := range map[string]struct {
		contest contest
		want    string
	}{
		"medians and aims": {
			contest{
				columns: []column{rates("ours", stats.Health{}, 6, 6, 9), rates("theirs", stats.Health{}, 4, 2, 5), rates("none", stats.Health{}, 0, 0, 0)},
				aims:    []aim{ratioAim(receivedRate, "ours", "theirs", 1.5, true), ratioAim(receivedRate, "ours", "theirs", 1, false)},
			},
			"|  | ours | theirs | none | / theirs | / none |\n| --- | ---: | ---: | ---: | ---: | ---: |\n" +
				"| received msg/s | 6.0 | 4.0 | 0.0 | 1.50 | - |\n\n" +
				"- received msg/s, ours / theirs: 1.50 (aim at least 1.5: met)\n" +
				"- received msg/s, ours / theirs: 1.50 (aim at most 1: MISSED)\n",
		},
		"pairs, after a run that is not measured": {
			contest{warm: true, pairs: true, columns: []column{rates("a", stats.Health{}, 7, 90, 10, 300), rates("b", stats.Health{}, 7, 100, 20, 400)}},
			"|  | a | b | / b |\n| --- | ---: | ---: | ---: |\n| received msg/s | 90.0 | 100.0 | 0.90 |\n\n" +
				"- received msg/s by pair: median 0.750 (0.500 0.750 0.900)\n- cpu with the broker's by pair: median - (- - -)\n",
		},
		"other programs disturb both tries": {
			contest{
				columns: []column{rates("a", busy, 1, 2, 3, 4, 5, 6), rates("b", stats.Health{}, 1, 2, 3)},
				aims:    []aim{ratioAim(receivedRate, "a", "b", 1, true)},
			},
			"|  | a | b | / b |\n| --- | ---: | ---: | ---: |\n| received msg/s | 4.0 | 2.0 | 2.00 |\n\n" +
				"- received msg/s, a / b: 2.00 (aim at least 1: not judged)\n" +
				"- not judged: in a run of a, the machine was 95% busy, 90% with other programs than perfmq\n",
		},
	} {
		c.contest.title = name
		text, err := c.contest.hold(t.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, "### "+name+"\n\n"+c.want+"\n", text)
	}
}

func TestReadMeasured(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.json")
	require.NoError(t, os.WriteFile(file, []byte(`[
		{"sampleType":"sample","warmup":true,"completed":1000,"received":1000},
		{"sampleType":"sample","completed":10,"received":8},
		{"sampleType":"sample","completed":20,"received":12},
		{"sampleType":"sample","phase":"drain","completed":500,"received":500},
		{"sampleType":"summary","totalSent":1600,"totalCompleted":1530,"totalReceived":1520,"totalSendTime":{"50":7,"99":9}}]`), 0o600))
	m, err := readMeasured(file)
	require.NoError(t, err)
	ack := latency{P50: 7, P99: 9}
	require.Equal(t, measured{completed: 15, received: 10, sent: 1600, messages: 1525, ack: ack}, m)
	require.NoError(t, os.WriteFile(file, []byte(`[]`), 0o600))
	_, err = readMeasured(file)
	require.ErrorContains(t, err, "no measured second")
}

// TestCountedRun: the rate is that between the first count of at least 300 messages and the first of at least 1000. A
// message of a moment later counts in the total only. Each count was taken between the calls beside it.
func TestCountedRun(t *testing.T) {
	t.Parallel()
	var asked []time.Time
	count := func(context.Context) (int64, error) {
		asked = append(asked, time.Now())
		return 70 + min(int64(len(asked)-1)*100, 1100), nil
	}
	shell := func(script string) func(context.Context) *exec.Cmd {
		return func(ctx context.Context) *exec.Cmd { return (&session{perfmq: "/bin/sh"}).command(ctx, "-c", script) }
	}
	w := window{least: 300, most: 1000, until: time.Minute}
	m, states, err := countedRun(t.Context(), shell("exec sleep 120"), count, w)
	require.NoError(t, err, "it is ended, not waited for")
	require.Len(t, states, 1)
	require.InDelta(t, 1100, m.messages, 0)
	require.GreaterOrEqual(t, m.received, 700/asked[11].Sub(asked[2]).Seconds())
	require.LessOrEqual(t, m.received, 700/asked[9].Sub(asked[4]).Seconds())

	still := func(context.Context) (int64, error) { return 1, nil }
	_, _, err = countedRun(t.Context(), shell("echo broken; exit 3"), still, w)
	require.ErrorContains(t, err, "ended before the measured part did; the end of its output:\nbroken")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _, err = countedRun(ctx, shell("exec sleep 60"), still, w)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, _, err = countedRun(t.Context(), shell("exec sleep 60"), func(context.Context) (int64, error) {
		return 0, errors.New("no broker")
	}, w)
	require.ErrorContains(t, err, "no broker")
}
