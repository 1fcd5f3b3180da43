package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Failures returns the counts that are not zero as text, the largest first: "timeout 10, connection-lost 2". It is
// empty if all are zero.
func Failures(counts [driver.NumClasses]uint64) string {
	var classes []driver.Class
	for c := range driver.NumClasses {
		if counts[c] > 0 {
			classes = append(classes, c)
		}
	}
	slices.SortStableFunc(classes, func(a, b driver.Class) int { return cmp.Compare(counts[b], counts[a]) })
	texts := make([]string, len(classes))
	for i, c := range classes {
		name := c.String()
		if c == driver.ClassNone {
			name = "unclassified"
		}
		texts[i] = fmt.Sprintf("%s %d", name, counts[c])
	}
	return strings.Join(texts, ", ")
}

// failure counts the sends that ended in one outcome other than accepted.
type failure struct {
	name    string // as in stats.Counters, in lower case
	count   uint64
	classes [driver.NumClasses]uint64 // their sum is count
}

// failuresOf returns all failures in the order of [stats.Counters]. Failures that the driver did not classify count as
// [driver.ClassNone], so that the classes always add up to the count.
func failuresOf(c *stats.Counters) [5]failure {
	list := [5]failure{
		{"rejected", c[result.Rejected], *c.Failures(driver.Rejected)},
		{"released", c[result.Released], *c.Failures(driver.Released)},
		{"modified", c[result.Modified], *c.Failures(driver.Modified)},
		{"failed", c[result.Failed], *c.Failures(driver.Failed)},
		{"unconfirmed", c[result.Unconfirmed], *c.Failures(driver.Unknown)},
	}
	for i := range list {
		f := &list[i]
		f.classes[driver.ClassNone] = 0
		var classified uint64
		for _, n := range f.classes {
			classified += n
		}
		if classified < f.count {
			f.classes[driver.ClassNone] = f.count - classified
		}
	}
	return list
}

// rate returns delta per second of the interval, rounded to nearest: intervals are a little longer than a second, and
// 10 msg/s should not show as 9. It is 0 for an interval without length.
func rate(delta uint64, interval time.Duration) uint64 {
	if interval <= 0 {
		return 0
	}
	return uint64(math.Round(float64(delta) * float64(time.Second) / float64(interval)))
}

// coresUsed returns the number of cores used, and of how many.
func coresUsed(h *result.Tester) (used, of string) {
	cores := "cores"
	if h.Cores == 1 {
		cores = "core"
	}
	return fmt.Sprintf("%.2f", h.CPUShare()*float64(h.Cores)), fmt.Sprintf(" of %d %s", h.Cores, cores)
}

// oneLine escapes a text, which may come from a broker, for a line of the console.
func oneLine(text string) string { return safetext.Line(text) }

func countersByName(list []driver.Counter) map[string]uint64 {
	counters := make(map[string]uint64, len(list))
	for _, c := range list {
		counters[c.Name] = c.Value
	}
	return counters
}
