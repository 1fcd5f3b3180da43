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

// ledgers are the part that the recorders of producers and consumers have in common.
type ledgers struct {
	mu    sync.Mutex
	quiet quiet
	part  [parts]ledger
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
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.part {
		n += counter(&r.part[i])
	}
	return n
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
