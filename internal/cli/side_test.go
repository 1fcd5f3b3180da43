package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// A run watches a process (here its own) and a log; rows, result and summary have the figures.
func TestBrokerSide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, folder := filepath.Join(dir, "broker.log"), filepath.Join(dir, "result")
	require.NoError(t, os.WriteFile(log, []byte("ERROR before the run\n"), 0o600))
	done := make(chan ended)
	go func() {
		done <- call(nil, "mem", "client", "--rate", "500", "--duration", "3", "--broker-pid", strconv.Itoa(os.Getpid()), "--broker-log", log, "--result", folder, "--threshold", "broker.cpu < 1000")
	}()
	require.Eventually(t, func() bool {
		head, err := os.Stat(filepath.Join(folder, result.RowsFile))
		return err == nil && head.Size() > 0
	}, time.Minute, 5*time.Millisecond, "the load has begun")
	f := musttest.Get(os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0o600))(t)
	_, err := f.WriteString("WARN a\nERROR b \x1b[31m\nINFO c\nERROR d\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r := <-done
	require.Equal(t, exitOK, r.status, r.stderr)
	require.Regexp(t, `(?m)^--- broker process: cpu [0-9.]+ cores \(at most [0-9.]+\), memory [0-9.]+ MB, threads [0-9]+, open files [0-9]+$`, r.stdout)
	require.Regexp(t, `(?m)^--- broker host: load `, r.stdout)
	require.Contains(t, r.stdout, "--- broker log: errors 2, warnings 1\n--- broker first error: ERROR b ")
	require.NotContains(t, r.stdout, "\x1b")
	got := musttest.Get(result.Read(folder))(t)
	require.Len(t, got.BrokerSide, 1)
	whole := got.BrokerSide[0].Whole
	require.Positive(t, *whole.CPU)
	require.EqualValues(t, 2, *whole.Errors)
	var cpu uint64
	var errors uint64
	for i := range got.Rows {
		if use := got.Rows[i].BrokerSide; use != nil {
			if use.CPU != nil {
				cpu += *use.CPU
			}
			errors += *use.Errors
		}
	}
	require.Equal(t, *whole.CPU, cpu, "the rows add up")
	require.EqualValues(t, 2, errors)
	require.InDelta(t, float64(cpu)/float64(whole.CPUSpan), *got.Thresholds[0].Measured, 1e-9)
}

func TestBrokerSideMistakes(t *testing.T) {
	for args, stderr := range map[string]string{
		"--broker-pid=0":               "error: --broker-pid=0: must be a whole number of at least 1\n",
		"--broker-metrics=localhost:9": "error: --broker-metrics=localhost:9: it must begin with http://HOST or https://HOST\n",
		"--broker-pid=2147483647": "error: there is no such process: 2147483647\n" +
			"hint: name a process of this host and a readable log; for other hosts use --broker-metrics\n",
	} {
		r := call(nil, "mem", "client", args, "--message-count", "1")
		require.Equal(t, exitUsage, r.status, args)
		require.Equal(t, stderr, r.stderr, args)
	}
}
