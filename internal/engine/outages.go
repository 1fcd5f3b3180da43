package engine

import (
	"cmp"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/result"
)

// outageBegun records the progress of the verification at the begin of an outage with a number, from 1 on, if it is one
// of the first that are listed: the losses and duplicates of later ones are unknown.
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

// inDoubt returns the number of messages that ended without an answer because of outages.
func inDoubt(s *stats.Summary) uint64 {
	n := cmp.Or(s.MoreOutages, &result.MoreOutages{}).InDoubt
	for i := range s.Outages {
		n += s.Outages[i].InDoubt
	}
	return n
}

// countOvercome counts messages of reconnecting groups without an answer and without a known outage, sent before a
// confirmed message of their producer: the broker answers, but not in time (--send-timeout).
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

// plannedRate returns the rate of the only step in messages per second, if it is constant; else 0.
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
