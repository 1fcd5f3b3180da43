package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// Metric is a figure by which results are compared: of a rate more is better, of a latency less.
type Metric struct {
	Name string
	Unit threshold.Unit
}

// Usual are the names of the metrics that are compared if none are named.
func Usual() []string {
	return []string{
		record.FoundMetric, "completed.avg", "received.avg", "ack.p50", "ack.p99", "response.p99", "transfer.p99",
	}
}

// Names returns the names of all metrics: the averages and latencies of [result.Result.Metrics], and the rate that a
// search found.
func Names() []string {
	names := []string{"sent.avg", "completed.avg", "received.avg"}
	for _, kind := range result.KindNames() {
		for _, s := range result.Statistics() {
			names = append(names, kind+"."+s.Name)
		}
	}
	return append(names, record.FoundMetric)
}

// Find returns the metric of a name.
func Find(name string) (Metric, error) {
	names := Names()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i >= 0 {
		m, known := threshold.Find(names[i])
		if !known { // [record.FoundMetric]
			m.Unit = threshold.PerSecond
		}
		return Metric{names[i], m.Unit}, nil
	}
	if like := nearest.Nearest(name, names); like != "" {
		return Metric{}, fmt.Errorf("unknown metric %q; did you mean %s?", name, like)
	}
	return Metric{}, fmt.Errorf("unknown metric %q: known are %s", name, strings.Join(names, ", "))
}
