package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// ledger holds what one worker has counted and measured of the messages of one phase, under the recorder's lock.
type ledger struct {
	n        [result.NumCounters]uint64 // so far
	failures *Counters                  // those by state and class; nil without, which saves a kilobyte
	l        result.Latencies           // since the last collection
	withheld uint64                     // part of Completed
}

// ends has the counter of each state in which a message can end.
//
//nolint:gochecknoglobals // a table that never changes
var ends = [driver.NumStates]result.Counter{
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

// committed counts a transaction that has ended, in the phase in which it was due to be committed.
func (p *ledger) committed(took time.Duration, confirmed bool) {
	if !confirmed {
		p.n[result.CommitsFailed]++
		return
	}
	p.n[result.Commits]++
	p.record(result.Commit, took)
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
