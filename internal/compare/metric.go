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

// Find returns the metric of a name: of a rate more is better, of a latency less.
func Find(name string) (threshold.Metric, error) {
	names := Names()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		like := "known are " + strings.Join(names, ", ")
		if n := nearest.Nearest(name, names); n != "" {
			like = "did you mean " + n + "?"
		}
		return threshold.Metric{}, fmt.Errorf("unknown metric %q; %s", name, like)
	}
	if names[i] == record.FoundMetric {
		return threshold.Metric{Name: names[i], Unit: threshold.PerSecond}, nil
	}
	m, _ := threshold.Find(names[i])
	return m, nil
}
