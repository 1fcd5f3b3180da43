package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// Limit is a change that a set must not show: ack.p99 +10%.
type Limit struct {
	Text   string
	Metric threshold.Metric
	// Change is the fraction: 0.1 fails a figure that is more than 10% above the first set's, -0.05 one that is more than
	// 5% below.
	Change float64
}

var limitText = regexp.MustCompile(`^\s*(\S+)\s+([+-])\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*$`)

// ParseLimit reads a limit such as "ack.p99 +10%".
func ParseLimit(text string) (Limit, error) {
	parts := limitText.FindStringSubmatch(text)
	if parts == nil {
		return Limit{}, fmt.Errorf("%q must be a metric and a change, such as 'ack.p99 +10%%'", text)
	}
	m, err := Find(parts[1])
	if err != nil {
		return Limit{}, err
	}
	change, _ := strconv.ParseFloat(parts[3], 64) // infinite if it is too large
	if parts[2] == "-" {
		change = -change
	}
	return Limit{Text: strings.TrimSpace(text), Metric: m, Change: change / 100}, nil
}

// exceeded reports whether a value changed by more than the limit from the first set's, and not by chance; or why that
// is unknown.
func (l *Limit) exceeded(first, c *Cell) (exceeded bool, unknown string) {
	exceeded = l.Change < 0 && c.Change < l.Change || l.Change >= 0 && c.Change > l.Change
	switch lower := c.AtLeast || first.AtLeast; {
	case c.Verdict == TooFew:
		return false, fmt.Sprintf("%d and %d repeats are too few", len(first.Values), len(c.Values))
	case c.Verdict == Unknown:
		return false, "a side has no value"
	case c.Verdict == Same:
		return false, ""
	case c.Verdict == Bound, lower && !exceeded && c.Change*l.Change > 0: // the true change is larger
		return false, Bound
	}
	return exceeded, ""
}

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
