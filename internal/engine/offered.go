package engine

import (
	"math"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

// lateEnd is the tolerated lateness of a count's last message: without it, a load of some milliseconds would miss its
// rate by the time of waking up.
const lateEnd = 10 * time.Millisecond

// offered returns the messages that the rates of the step demanded in its measured part; its load has ended.
func (s *step) offered() (sum stats.Offered) {
	for _, u := range s.uses {
		u.offered = s.offeredTo(u)
		sum.Add(u.offered)
	}
	return sum
}

// offeredTo returns the messages that the rate of a group demanded; zero without a rate.
func (s *step) offeredTo(u *use) stats.Offered {
	rate := u.plan.Rate
	if len(u.producers) == 0 || rate.IsZero() {
		return stats.Offered{}
	}
	span := s.loaded
	if s.plan.Duration > 0 {
		span = min(span, s.plan.Duration)
	}
	end, ends := rate.End()
	if ends {
		span = min(span, end)
	}
	due := rate.Due(span)
	if sent, _ := u.sent(); u.plan.Count > 0 && sent >= u.ownShare(u.plan.Count) {
		// Messages due after the last one do not count, unless the last one left late: then the rate was missed for that
		// time.
		due = u.plan.Count
		if late := u.lastSend() - s.start - lateEnd; rate.Due(late) > due {
			span, due = late, rate.Due(late)
		} else if next := rate.At(due); next < math.MaxInt64 && (!ends || next < end) {
			span = next
		}
	} else if u.plan.Count > 0 {
		due = min(due, u.plan.Count)
	}
	warm := min(s.plan.Warmup, span)
	return stats.Offered{
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
