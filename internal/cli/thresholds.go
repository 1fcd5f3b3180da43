package cli

import (
	"github.com/perfmq/perfmq/internal/threshold"
)

// judge returns the exit status of a run that succeeded otherwise, and says which thresholds it did not keep.
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
