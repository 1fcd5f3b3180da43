//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	sweeps "github.com/perfmq/perfmq/internal/sweep/record"
	runresult "github.com/perfmq/perfmq/pkg/result"
)

const fourCells = `
name: four
broker: {protocol: amqp}
matrix: {senders.producers: [1, 2, 3, 4]}
groups:
  senders: {role: producer, destination: queue://A, max-pending: 10, producers: "${senders.producers}"}
  readers: {role: consumer, destination: queue://A}
duration: 2s
before: echo $PERFMQ_CELL >> LOG
`

// TestSweepKilled: after kill -9 in the second run, the same command carries out that run again and those behind it,
// not the first.
func TestSweepKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, file, results := filepath.Join(dir, "log"), filepath.Join(dir, "four.yaml"), filepath.Join(dir, "results")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(fourCells, "LOG", log, 1)), 0o600))
	args := []string{"run", "--embedded", "--result", results, file}
	p := start(t, append([]string{"run"}, args[1:]...)...)
	rows := filepath.Join(results, "002_senders.producers=2", "repeat-1", runresult.RowsFile)
	eventually(t, "the second run is under way", func() bool {
		text, err := os.ReadFile(rows)
		return err == nil && strings.Count(string(text), "\n") > 1
	})
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGKILL))
	<-p.done
	s := musttest.Get(sweeps.ReadSweep(results))(t)
	require.Equal(t, []string{sweeps.Done, sweeps.Running, sweeps.Waiting, sweeps.Waiting}, statesOf(s))
	first := musttest.Get(os.ReadFile(filepath.Join(results, s.Runs[0].Folder, runresult.ResultFile)))(t)

	r := run(t, limit, args...)
	require.Equal(t, statusOK, r.status, r.stderr)
	require.Contains(t, r.stderr, "1 of 4 runs are finished\n")
	s = musttest.Get(sweeps.ReadSweep(results))(t)
	require.Equal(t, []string{sweeps.Done, sweeps.Done, sweeps.Done, sweeps.Done}, statesOf(s))
	again := musttest.Get(os.ReadFile(filepath.Join(results, s.Runs[0].Folder, runresult.ResultFile)))(t)
	require.Equal(t, string(first), string(again))
	text := musttest.Get(os.ReadFile(log))(t)
	require.Equal(t, "1\n2\n2\n3\n4\n", string(text))
}

func statesOf(s *sweeps.Sweep) (states []string) {
	for i := range s.Runs {
		states = append(states, s.Runs[i].State)
	}
	return states
}
