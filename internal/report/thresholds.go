package report

import "github.com/perfmq/perfmq/internal/threshold"

// jsonThreshold is a demand and what was measured.
type jsonThreshold struct {
	Threshold string   `json:"threshold"`
	Metric    string   `json:"metric"`
	Unit      string   `json:"unit"`     // microseconds for times
	Measured  *float64 `json:"measured"` // null: the run has no value of the metric
	Kept      bool     `json:"kept"`
}

func toJSONThresholds(outcomes []threshold.Outcome) (list []jsonThreshold) {
	for i := range outcomes {
		o := &outcomes[i]
		t := jsonThreshold{Threshold: o.Threshold.String(), Metric: o.Threshold.Metric.Name, Unit: o.Threshold.Metric.Unit.String(), Kept: o.Kept}
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
