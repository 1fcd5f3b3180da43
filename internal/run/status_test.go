package run

import (
	"errors"
	"fmt"
	"testing"

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
