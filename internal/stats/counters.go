package stats

import (
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Counters are totals since the start of a run, warm-up included, or their growth over an interval: the counters of
// package result by [result.Counter], then the failures by state and class.
type Counters [result.NumCounters + int(driver.NumStates)*int(driver.NumClasses)]uint64

// Sub returns c - older.
func (c Counters) Sub(older Counters) Counters {
	for i, n := range older {
		c[i] -= n
	}
	return c
}

// Add returns c + other.
func (c Counters) Add(other Counters) Counters {
	for i, n := range other {
		c[i] += n
	}
	return c
}

// Failures returns Rejected, Released, Failed or Unconfirmed by class: of driver.Rejected, driver.Released,
// driver.Failed, or driver.Unknown. All of driver.Accepted are zero.
func (c *Counters) Failures(state driver.State) *[driver.NumClasses]uint64 {
	return (*[driver.NumClasses]uint64)(c[result.NumCounters+int(state)*int(driver.NumClasses):])
}

// InFlight returns the messages that were handed to the driver and have not ended yet.
func (c Counters) InFlight() uint64 { return c[result.Sent] - result.Ended(c[:]) }

// Counts returns the counts of the roles as results have them. Failures that the driver did not classify count as
// [driver.ClassNone], so that the classes always add up to the count.
func (c Counters) Counts(sends, receives bool) result.Counts {
	failures := map[string]map[string]uint64{}
	for state := driver.Accepted + 1; state < driver.NumStates; state++ {
		classes, left := map[string]uint64{}, c[counterOf[state]]
		for class, n := range c.Failures(state) {
			if n > 0 && class != int(driver.ClassNone) {
				classes[driver.Class(class).String()] = n //nolint:gosec // an index below NumClasses
				left -= min(left, n)
			}
		}
		if left > 0 {
			classes[driver.ClassNone.String()] = left
		}
		name := state.String()
		if state == driver.Unknown {
			name = "unconfirmed"
		}
		if len(classes) > 0 {
			failures[name] = classes
		}
	}
	return result.NewCounts(c[:], sends, receives, failures)
}
