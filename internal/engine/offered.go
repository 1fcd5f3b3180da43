package engine

import (
	"math"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

// lateEnd is the tolerated lateness of a count's last message: without it, a load of some milliseconds would miss its
// rate by the time of waking up.
const lateEnd = 10 * time.Millisecond

// countDemand adds up the messages that the rates of the present step demanded, and those of its measured part. The
// load of the step has ended.
func (r *run) countDemand() (due uint64, measured stats.Offered) {
	for _, u := range r.step.uses {
		u.sentInStep, _ = u.sent()
		u.due, u.offered = r.step.demandOf(u)
		due += u.due
		measured.Add(u.offered)
	}
	r.due += due
	r.offered.Add(measured)
	return due, measured
}

// demandOf returns the messages that the rate of a group demanded of this shard; zero without a rate.
func (s *step) demandOf(u *use) (all uint64, measured stats.Offered) {
	rate := u.plan.Rate
	if len(u.producers) == 0 || rate.IsZero() {
		return 0, measured
	}
	span := s.loaded
	if s.plan.Duration > 0 {
		span = min(span, s.plan.Duration)
	}
	due := rate.Due(span)
	if u.plan.Count > 0 {
		due = min(due, u.plan.Count)
	}
	all = u.ownShare(due)
	end, ends := rate.End()
	if ends {
		span = min(span, end)
	}
	if u.plan.Count > 0 && u.sentInStep >= u.ownShare(u.plan.Count) {
		// Messages due after the last one do not count, unless the last one left late: then the rate was missed for that
		// time.
		due = u.plan.Count
		if late := u.lastSend() - s.start - lateEnd; rate.Due(late) > due {
			span, due = late, rate.Due(late)
		} else if next := rate.At(due); next < math.MaxInt64 && (!ends || next < end) {
			span = next
		}
	}
	warm := min(s.plan.Warmup, span)
	return all, stats.Offered{
		Due: u.ownShare(due) - u.ownShare(min(due, rate.Due(warm))), Sent: u.measuredSends() - u.measuredBase,
		Span: span - warm,
		Rate: rate.Between(warm, span) * (float64(len(u.producers)) / float64(u.allProducers)),
	}
}

// lastSend returns the time at which the group handed over its last message.
func (u *use) lastSend() (last time.Duration) {
	for _, p := range u.producers {
		last = max(last, p.rec.LastSend())
	}
	return last
}

// measuredSends returns the number of messages sent by the group that were due after a warm-up.
func (u *use) measuredSends() (n uint64) {
	for _, p := range u.producers {
		n += p.rec.Sends(stats.Measure)
	}
	return n
}
