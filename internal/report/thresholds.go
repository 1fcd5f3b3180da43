package report

import (
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// Thresholds returns the outcomes of thresholds in the form of results, times in microseconds.
func Thresholds(outcomes []threshold.Outcome) (list []result.Threshold) {
	for i := range outcomes {
		o := &outcomes[i]
		t := result.Threshold{
			Step: o.Step, Threshold: o.Threshold.String(), Metric: o.Threshold.Metric.Name,
			Unit: o.Threshold.Metric.Unit.String(),
			Kept: o.Kept,
		}
		if o.Threshold.Metric.Unit == threshold.Time {
			t.Unit = "us"
		}
		if o.Known {
			t.Measured = &o.Measured
		}
		list = append(list, t)
	}
	return list
}
