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

// Usual returns the metrics that are compared if none are named.
func Usual() (list []threshold.Metric) {
	for _, name := range record.Usual() {
		m, _ := threshold.Find(name)
		list = append(list, m)
	}
	return list
}

// Names returns the names of all metrics that can be compared: average rates, latencies, and the use of the broker's
// process.
func Names() []string {
	names := []string{"sent.avg", "completed.avg", "received.avg"}
	for _, kind := range result.KindNames() {
		for _, s := range result.Statistics() {
			names = append(names, kind+"."+s.Name)
		}
	}
	return append(names, "broker.cpu", "broker.memory")
}

// Find returns the metric of a name: of a rate more is better, of others less.
func Find(name string) (threshold.Metric, error) {
	names := Names()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i >= 0 {
		m, _ := threshold.Find(names[i])
		return m, nil
	}
	return threshold.Metric{}, fmt.Errorf("unknown metric %q; %s", name,
		nearest.Hint(name, names, "%s", "known are "+strings.Join(names, ", ")))
}
