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

// Class returns the failures of a class, of all states.
func (c *Counters) Class(class driver.Class) (n uint64) {
	for state := range driver.NumStates {
		n += c.Failures(state)[class]
	}
	return n
}

// InFlight returns the messages that were handed to the driver and have not ended yet.
func (c Counters) InFlight() uint64 { return c[result.Sent] - sumEnded(c[:]) }

// sumEnded returns the number of messages that have ended, with any outcome.
func sumEnded(c []uint64) uint64 {
	return c[result.Completed] + c[result.Rejected] + c[result.Released] + c[result.Modified] + c[result.Failed] +
		c[result.Unconfirmed]
}
