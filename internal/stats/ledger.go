package stats

import (
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// MaxLatency is the largest latency of a distribution. Larger ones are recorded as this one and counted as out of
// range.
const MaxLatency = result.MaxLatency * time.Microsecond

// ledger holds what one worker has counted and measured of the messages of one phase, under the recorder's lock.
type ledger struct {
	n        [result.NumCounters]uint64 // so far
	failures *Counters                  // those by state and class; nil without, which saves a kilobyte
	l        result.Latencies           // since the last collection
	withheld uint64                     // part of Completed
}

// counterOf has the counter of each state in which a message can end.
//
//nolint:gochecknoglobals // a table that never changes
var counterOf = [driver.NumStates]result.Counter{
	driver.Accepted: result.Completed, driver.Rejected: result.Rejected, driver.Released: result.Released,
	driver.Modified: result.Modified, driver.Failed: result.Failed, driver.Unknown: result.Unconfirmed,
}

// record adds a latency. One that is out of range is counted.
func (p *ledger) record(kind result.Kind, took time.Duration) {
	l := p.l[kind]
	if l == nil {
		l = result.NewLatency()
		p.l[kind] = l
	}
	if !l.Record(took) {
		p.n[result.OutOfRange]++
	}
}

// ledgers are the part that all recorders have in common.
type ledgers struct {
	mu    sync.Mutex
	quiet quiet
	part  [parts]ledger
}

// failures are the ledgers of a recorder that knows why messages or connections failed.
type failures struct {
	ledgers
	reason [driver.NumClasses]error // the first of each class
}

// Add counts n connections, messages or replies. Safe for concurrent use.
func (r *ledgers) Add(phase Phase, counter result.Counter, n uint64) {
	r.mu.Lock()
	r.part[phase].n[counter] += n
	r.mu.Unlock()
}

// Record adds a latency. Safe for concurrent use.
func (r *ledgers) Record(phase Phase, kind result.Kind, took time.Duration) {
	r.mu.Lock()
	r.part[phase].record(kind, took)
	r.mu.Unlock()
}

// fail records why a message or, with the state driver.NumStates, a connection failed. The caller holds the lock.
func (r *failures) fail(p *ledger, state driver.State, class driver.Class, why error) {
	if p.failures == nil {
		p.failures = new(Counters)
	}
	p.failures.Failures(state)[class]++
	if r.reason[class] == nil {
		r.reason[class] = why
	}
}

// FirstError returns the first error of a class; nil if there was none.
func (r *failures) FirstError(class driver.Class) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason[class]
}

// Committed counts a transaction that has ended, in the phase in which it was due to be committed. took is the time
// from the request to commit to its answer. Safe for concurrent use.
func (r *ledgers) Committed(phase Phase, took time.Duration, confirmed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.part[phase]
	if !confirmed {
		p.n[result.CommitsFailed]++
		return
	}
	p.n[result.Commits]++
	p.record(result.Commit, took)
}

// Count returns the sum of some counts so far.
func (r *ledgers) Count(counters ...result.Counter) uint64 {
	return r.sum(func(p *ledger) (n uint64) {
		for _, c := range counters {
			n += p.n[c]
		}
		return n
	})
}

func (r *ledgers) sum(counter func(*ledger) uint64) (n uint64) {
	r.visit(func(_ int, p *ledger) { n += counter(p) })
	return n
}

// visit calls f with the ledger of each phase, under the lock.
func (r *ledgers) visit(f func(phase int, p *ledger)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.part {
		f(i, &r.part[i])
	}
}

// collect adds the counters to counts and moves the latencies, both by phase. Latencies without a destination stay.
func (r *ledgers) collect(counts *[parts]Counters, latencies [parts]*result.Latencies) {
	r.visit(func(i int, p *ledger) { p.collect(&counts[i], latencies[i]) })
}

func (r *ledgers) visitQuiet(visit func(*quiet)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	visit(&r.quiet)
}

// collect adds the counts to n, and moves the latencies to l. With a nil l they stay.
func (p *ledger) collect(n *Counters, l *result.Latencies) {
	for i, count := range p.n {
		n[i] += count
	}
	if p.failures != nil {
		*n = n.Add(*p.failures)
	}
	if l == nil {
		return
	}
	for kind, from := range p.l {
		if from == nil || from.Count == 0 {
			continue
		}
		if l[kind] == nil {
			l[kind] = result.NewLatency()
		}
		l[kind].Merge(from)
		from.Reset()
	}
}

// Counters are totals since the start of a run, warm-up included, or their growth over an interval: the counters of
// package result by [result.Counter], then the failures by state and class, then those of connections by class.
type Counters [result.NumCounters + (int(driver.NumStates)+1)*int(driver.NumClasses)]uint64

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

// Connections returns the failures of connections by class: those that did not open, and those that were lost.
func (c *Counters) Connections() *[driver.NumClasses]uint64 { return c.Failures(driver.NumStates) }

// Live returns the connections that were opened and have not ended.
func (c *Counters) Live() uint64 {
	return c[result.Opened] - c[result.ConnectionsClosed] - c[result.ConnectionsLost]
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
	counts := result.NewCounts(c[:], sends, receives, failures)
	for class, n := range c.Connections() {
		if n > 0 && counts.Connections != nil {
			if counts.Connections.Failures == nil {
				counts.Connections.Failures = map[string]uint64{}
			}
			counts.Connections.Failures[driver.Class(class).String()] = n //nolint:gosec // an index below NumClasses
		}
	}
	return counts
}
