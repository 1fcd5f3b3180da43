package engine

import (
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/result"
)

// outageBegun marks how far the verification had come when the outage of that number began, from 1 on, if it is one of
// the first that are listed: of later ones it is not known which messages they lost or had delivered again.
func (r *run) outageBegun(number int) {
	if r.verify == nil || number > stats.KeptOutages {
		return
	}
	copies := r.progress().AfterOutage
	r.mu.Lock()
	defer r.mu.Unlock()
	r.explained = append(r.explained, copies)
	for _, list := range r.verify.ledgers {
		for _, l := range list {
			l.Mark()
		}
	}
}

// verifyOutages says which of the outages the lost and the doubled messages belong to.
func (r *run) verifyOutages(s *stats.Summary, v *verify.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range s.Outages[:min(len(s.Outages), len(r.explained))] {
		o := &s.Outages[i]
		if i < len(v.LostBefore) {
			o.Lost = v.LostBefore[i]
		}
		from, to := r.explained[i], v.Total.AfterOutage
		if i == 0 {
			from = 0
		}
		if i+1 < len(r.explained) {
			to = r.explained[i+1]
		} else if s.OutageCount() > i+1 { // the next one is not marked
			to = from
		}
		o.Doubled = to - min(from, to)
	}
}

// inDoubt returns how many messages ended without an answer because of outages.
func inDoubt(s *stats.Summary) uint64 {
	var n uint64
	if s.MoreOutages != nil {
		n = s.MoreOutages.InDoubt
	}
	for i := range s.Outages {
		n += s.Outages[i].InDoubt
	}
	return n
}

// countOvercome returns how many messages of groups that connect again had no answer although no outage is known of,
// and were sent before a message of their producer that was confirmed: the broker answers. None came in time
// (--send-timeout).
func (r *run) countOvercome() (n uint64) {
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

// outageList returns the outages of the run.
func (r *run) outageList() ([]result.Outage, *result.MoreOutages) {
	list := r.outages.List(r.clock.Start())
	for i := range list {
		list[i].Error, list[i].LastAttempt = safetext.Bounded(list[i].Error), safetext.Bounded(list[i].LastAttempt)
	}
	return list, r.outages.More()
}
