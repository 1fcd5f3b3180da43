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
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// failureText returns the counts of classes as text, the largest first: "timeout 10, connection-lost 2".
func failureText(classes map[string]uint64) string {
	var names []string
	for class := range driver.NumClasses {
		if classes[class.String()] > 0 {
			names = append(names, class.String())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(classes[b], classes[a]) })
	for i, name := range names {
		if name == driver.ClassNone.String() {
			names[i] = "unclassified"
		}
		names[i] += fmt.Sprintf(" %d", classes[name])
	}
	return strings.Join(names, ", ")
}

// failure counts the sends that ended in one outcome other than accepted.
type failure struct {
	name    string
	count   uint64
	classes map[string]uint64 // their sum is count
}

// failuresOf returns all failures in the order of the outputs.
func failuresOf(c *result.Counts) (list [5]failure) {
	all := cmp.Or(c.Producers, &result.Producers{}).Failures
	for i, name := range [...]string{"rejected", "released", "modified", "failed", "unconfirmed"} {
		list[i] = failure{name: name, classes: all[name]}
		for _, n := range all[name] {
			list[i].count += n
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
	return fmt.Sprintf("%.2f", h.CPUShare()*float64(h.Cores)), " of " + words.Plural(h.Cores, "core")
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

// outcomeOf returns the verdict on a run. `artemis perf` knows success and fail alone: runs that its commands make, and
// a signal ends, keep these words.
func outcomeOf(s *stats.Summary) string {
	v := words.VerdictOf(&s.Result)
	if v.Mark == words.MarkFailed || v.Mark == words.MarkInterrupted {
		v.Word = words.Outcome(s.Outcome.Success)
	}
	return v.String()
}

// outageNow describes the present outage; empty without one.
func outageNow(p *stats.OutageProgress) string {
	switch {
	case p == nil || p.Since == 0:
		return ""
	case p.Down == 0:
		return fmt.Sprintf("%.1f s, all workers connected again, no message yet", p.Since.Seconds())
	default:
		return fmt.Sprintf("%.1f s, %s not connected", p.Since.Seconds(), words.Plural(p.Down, "worker"))
	}
}

// outageLines returns a line for each listed outage, and before these a line if not all are listed.
func outageLines(s *stats.Summary) (lines []string) {
	if m := s.MoreOutages; m != nil {
		lines = append(lines, fmt.Sprintf("beside the first and the last %[2]d: %[1]s; %[3]d in doubt",
			words.Outages(nil, m), stats.KeptOutages, m.InDoubt))
	}
	for _, o := range s.Outages {
		lines = append(lines, words.Outage(&o))
	}
	return lines
}
