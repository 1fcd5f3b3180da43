package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// outageMark is how far the verification had come when an outage began.
type outageMark struct {
	number   int        // of the outage, from 1 on
	numbered []numbered // sorted by producer
	doubled  uint64     // copies that outages explained
}

// numbered is how many messages a producer has numbered.
type numbered struct {
	producer int64
	count    uint64
}

// outageBegun marks how far the verification had come when the outage of that number began, from 1 on. Of outages that
// are not listed, the first and the last mark do.
func (r *run) outageBegun(number int) {
	if r.verify == nil {
		return
	}
	m := outageMark{number: number, doubled: r.progress().AfterOutage}
	for _, list := range r.verify.ledgers {
		for _, l := range list {
			m.numbered = append(m.numbered, numbered{l.Producer(), l.Count()})
		}
	}
	slices.SortFunc(m.numbered, func(a, b numbered) int { return cmp.Compare(a.producer, b.producer) })
	first, last := r.outages.Folded()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outageMarks = slices.DeleteFunc(append(r.outageMarks, m), func(m outageMark) bool {
		return m.number > first && m.number < last
	})
	slices.SortFunc(r.outageMarks, func(a, b outageMark) int { return cmp.Compare(a.number, b.number) })
}

// marks returns how many messages a producer had numbered when each outage began that has a mark.
func (r *run) marks(producer int64) (list []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.outageMarks {
		known, count := r.outageMarks[i].numbered, uint64(0)
		at, found := slices.BinarySearchFunc(known, producer, func(n numbered, p int64) int {
			return cmp.Compare(n.producer, p)
		})
		if found {
			count = known[at].count
		}
		list = append(list, count)
	}
	return list
}

// verifyOutages says which of the outages the lost and the doubled messages belong to.
func (r *run) verifyOutages(s *stats.Summary, v *verify.Result) {
	if len(s.Outages) == 0 {
		return
	}
	first, last := r.outages.Folded()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, m := range r.outageMarks {
		at := m.number - 1
		if m.number > last {
			at -= s.MoreOutages.Count
		}
		if m.number >= first && m.number <= last || at >= len(s.Outages) { // not listed, or begun after the list was made
			continue
		}
		o := &s.Outages[at]
		if i < len(v.LostBefore) {
			o.Lost += v.LostBefore[i]
		}
		from, to := uint64(0), v.Total.AfterOutage
		if i > 0 {
			from = m.doubled
		}
		if i+1 < len(r.outageMarks) {
			to = r.outageMarks[i+1].doubled
		}
		o.Doubled += to - min(from, to)
	}
}

// outagesSoFar adds the figures of outages while the run goes on, as far as they cannot get lower any more: an outage
// has lasted for as long as nothing has come through.
func (r *run) outagesSoFar(f map[string]float64) {
	if r.outages == nil {
		return
	}
	so := &stats.Summary{}
	so.Outages, so.MoreOutages = r.outageList()
	now, longest, recovery := r.clock.Moment(time.Now()), so.MoreOutages.Longest, time.Duration(0)
	for i := range so.Outages {
		o := &so.Outages[i]
		length := o.Length()
		if unended(o) {
			length = now.Sub(o.Start)
		}
		longest, recovery = max(longest, length), max(recovery, o.Recovery())
	}
	f["outage.count"], f["in_doubt"] = float64(so.OutageCount()), float64(inDoubt(so))
	f["outage.max"] = float64(longest.Nanoseconds()) / 1e3
	f["recovery.max"] = float64(recovery.Nanoseconds()) / 1e3
}

// unended tells whether no message has come through after an outage, unless none of its workers needed a connection any
// more.
func unended(o *stats.Outage) bool {
	return o.Length() == 0 && (o.Reconnected > 0 || len(o.NotBack) > 0)
}

// inDoubt returns how many messages ended without an answer because of outages.
func inDoubt(s *stats.Summary) uint64 {
	n := s.MoreOutages.InDoubt
	for i := range s.Outages {
		n += s.Outages[i].InDoubt
	}
	return n
}

// overcome returns how many messages of groups that connect again had no answer although no outage is known of, and
// were sent before a message of their producer that was confirmed: the broker answers. None came in time
// (--send-timeout).
func (r *run) overcome() (n uint64) {
	for _, g := range r.groups {
		if !g.plan.Reconnect {
			continue
		}
		for _, p := range g.producers {
			n += p.rec.Overcome()
		}
	}
	return n
}

// longestOutage returns how long the longest outage lasted. It is false if there was one without an end, unless none of
// its workers needed a connection any more.
func longestOutage(s *stats.Summary) (longest time.Duration, ok bool) {
	longest = s.MoreOutages.Longest // each of these has an end
	for i := range s.Outages {
		o := &s.Outages[i]
		if unended(o) {
			return 0, false
		}
		longest = max(longest, o.Length())
	}
	return longest, true
}

// longestRecovery returns the longest time that the load took to recover after the return of the broker. It is false if
// the load was not seen to recover from an outage, or not all outages are listed.
func longestRecovery(s *stats.Summary) (longest time.Duration, ok bool) {
	for i := range s.Outages {
		if s.Outages[i].Recovered == 0 {
			return 0, false
		}
		longest = max(longest, s.Outages[i].Recovery())
	}
	return longest, s.MoreOutages.Count == 0
}

// plannedRate returns how many messages a second the only step is to send, if that is constant; else 0.
func (r *run) plannedRate() (sum float64) {
	if len(r.plan.Steps) != 1 {
		return 0
	}
	for _, g := range r.plan.Steps[0].Groups {
		if !g.Role.Produces() {
			continue
		}
		if _, constant := g.Rate.Constant(); !constant {
			return 0
		}
		sum += g.Rate.Peak()
	}
	return sum
}

// lostClass tells whether a class is one of lost connections.
func lostClass(class driver.Class) bool {
	return class == driver.ClassConnectionLost || class == driver.ClassClosedByBroker || class == driver.ClassTimeout
}

// outageList returns the outages of the run. Like all times of a summary, theirs follow one reading of the wall clock,
// that of the start: see [load.Clock.Moment].
func (r *run) outageList() ([]stats.Outage, stats.MoreOutages) {
	list, more := r.outages.List(), r.outages.More()
	for i := range list {
		list[i].Start = r.clock.Moment(list[i].Start)
	}
	return list, more
}
