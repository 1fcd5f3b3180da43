package run

import (
	"errors"
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// A failure is graver than a broken threshold, and that than an interruption.
func TestStatus(t *testing.T) {
	wrong := errors.New("wrong")
	success := result.Outcome{Success: true}
	good, bad := &stats.Summary{Result: result.Result{Outcome: success}}, &stats.Summary{}
	broken := &stats.Summary{Result: result.Result{Outcome: success, Thresholds: []result.Threshold{{}}}}
	for _, c := range []struct {
		ending Ending
		want   int
	}{
		{Ending{Opened: true, Summary: good}, result.StatusOK},
		{Ending{Opened: true, Summary: good, Interrupted: true}, result.StatusInterrupted},
		{Ending{Opened: true, Summary: broken, Interrupted: true}, result.StatusThreshold},
		{Ending{Opened: true, Summary: broken, Closing: wrong}, result.StatusFailed},
		{Ending{Opened: true, Summary: bad}, result.StatusFailed},
		{Ending{Opened: true, Summary: good, Err: wrong}, result.StatusFailed},
		{Ending{Opened: true, Err: wrong}, result.StatusConnect},
		{Ending{Opened: true, Err: wrong, Interrupted: true}, result.StatusInterrupted},
		{Ending{Err: wrong}, result.StatusConnect},
		{Ending{Err: wrong, Outputs: true}, result.StatusUsage},
		{Ending{Abandoned: true}, result.StatusInterrupted},
	} {
		require.Equal(t, c.want, c.ending.Status(), c.ending)
	}
}

// An error before a run never has the status of a failed run.
func TestStartStatus(t *testing.T) {
	for class, want := range map[driver.Class]int{
		driver.ClassConnect: result.StatusConnect, driver.ClassAuth: result.StatusConnect, driver.ClassTLS: result.StatusConnect, driver.ClassTimeout: result.StatusConnect,
		driver.ClassConnectionLost: result.StatusConnect, driver.ClassProtocol: result.StatusConnect, driver.ClassClosedByBroker: result.StatusConnect,
		driver.ClassFull: result.StatusConnect, driver.ClassOther: result.StatusConnect,
		driver.ClassUnsupported: result.StatusUsage, driver.ClassNotFound: result.StatusUsage, driver.ClassTooLarge: result.StatusUsage,
	} {
		require.Equal(t, want, startStatus(driver.Errorf(class, "connect", "", "no"), false), class)
	}
	require.Equal(t, result.StatusUsage, startStatus(fmt.Errorf("%w: %w", engine.ErrReporters, errors.New("disk full")), false))
	require.Equal(t, result.StatusConnect, startStatus(errors.New("anything"), false))
}

func TestRevision(t *testing.T) {
	built := func(settings ...debug.BuildSetting) *debug.BuildInfo { return &debug.BuildInfo{Settings: settings} }
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	assert.Equal(t, "0123456789ab", revision(built(commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"})))
	assert.Equal(t, "0123456789ab+changes", revision(built(commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"})))
	for version, want := range map[string]string{
		"v0.0.0-20261129074858-0ac5104e1234": "0ac5104e1234", // go install MODULE@COMMIT
		"v0.9.0":                             "v0.9.0",       // go install MODULE@VERSION
		"(devel)":                            "", "": "",
	} {
		assert.Equal(t, want, revision(&debug.BuildInfo{Main: debug.Module{Version: version}}), version)
	}
}

func TestGCPercent(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, c := range []struct {
		name            string
		live, allocated uint64
		want            int
	}{
		{"nothing is known", 0, 0, 400},
		{"a few workers", 4 * mb, 0, 400},
		{"a library that allocates much", 5 * mb, 200 * mb, 400},
		{"many connections are opened", 40 * mb, 30 * mb, 75},
		{"many connections are open", 160 * mb, 0, 25},
		{"an embedded broker under load", 20 * mb, 600 * mb, 320},
		{"a backlog in an embedded broker under load", 100 * mb, 600 * mb, 100},
	} {
		require.Equal(t, c.want, gcPercent(c.live, c.allocated), c.name)
	}
}

func TestTendGC(t *testing.T) {
	before := debug.SetGCPercent(70)
	defer debug.SetGCPercent(before)
	stop := tendGC()
	stop()
	require.Equal(t, 70, debug.SetGCPercent(70), "the setting is restored")
}
