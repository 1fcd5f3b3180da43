package cli

import (
	"github.com/perfmq/perfmq/internal/threshold"
)

// judge prints the broken thresholds of a run that otherwise succeeded, and returns its exit status.
func (a *app) judge(outcomes []threshold.Outcome) int {
	status := exitOK
	for i := range outcomes {
		if outcomes[i].Broken() {
			a.errors.write("threshold: "+outcomes[i].String(), "")
			status = exitThreshold
		}
	}
	return status
}
