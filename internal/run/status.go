package run

import (
	"errors"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Ending is the end of a run.
type Ending struct {
	Opened  bool           // outputs and embedded brokers were opened; otherwise a signal or Err is the reason
	Outputs bool           // Err is of the outputs: one could not be opened
	Summary *stats.Summary // nil if no load was made; Err is the reason
	Err     error          // something could not begin, or the results could not be reported
	Closing error          // of the outputs
	// Interrupted: a signal, or the end of the reader of the standard output, asked for the end.
	Interrupted bool
	// Abandoned: the user did not wait for the end. Nothing else is known.
	Abandoned bool
}

// Ended reports whether the user wanted the run to end before its plan did.
func (e *Ending) Ended() bool { return e.Interrupted || e.Abandoned }

// Finished reports whether the load ended by itself and all outputs were written.
func (e *Ending) Finished() bool {
	return e.Summary != nil && !e.Ended() && e.Err == nil && e.Closing == nil
}

// Status returns the exit status of the run.
func (e *Ending) Status() int {
	status := result.StatusOK
	switch {
	case e.Abandoned:
		return result.StatusInterrupted
	case e.Err == nil:
	case e.Outputs:
		status = result.StatusUsage
	case !e.Opened:
		status = result.StatusConnect
	case e.Summary == nil:
		status = startStatus(e.Err, e.Interrupted)
	default:
		status = result.StatusFailed
	}
	switch s := e.Summary; {
	case s == nil:
	case !s.Outcome.Success:
		status = result.StatusFailed
	case status == result.StatusOK && threshold.Fail(s.Thresholds):
		status = result.StatusThreshold
	}
	if e.Closing != nil && (status == result.StatusOK || status == result.StatusThreshold) {
		status = result.StatusFailed
	}
	if status == result.StatusOK && e.Interrupted {
		status = result.StatusInterrupted
	}
	return status
}

// startStatus returns the exit status for an error before a run began: never the status of a failed run.
func startStatus(err error, interrupted bool) int {
	var de *driver.Error
	if interrupted && !errors.As(err, &de) {
		return result.StatusInterrupted // the signal came while connecting
	}
	if errors.Is(err, engine.ErrReporters) {
		return result.StatusUsage
	}
	switch driver.ClassOf(err) {
	case driver.ClassNotFound, driver.ClassUnsupported, driver.ClassTooLarge:
		// the broker is reachable, but lacks the requested object or feature
		return result.StatusUsage
	default: // the broker or a proxy is unreachable, refuses the login or speaks another protocol
		return result.StatusConnect
	}
}
