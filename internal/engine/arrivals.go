package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
)

// maxReplay is the highest number of messages drawn after a load to count those that were due and not sent: it takes
// less than a second.
const maxReplay = 10_000_000

// prepareDraws prepares random arrivals, unequal shares and group keys of the step, before its load begins.
func (s *step) prepareDraws(seed uint64) {
	for _, u := range s.uses {
		u.draws = load.Draws{
			Seed: seed, Name: fmt.Sprintf("%d %s", s.index, u.plan.Name), Warmup: s.plan.Warmup,
			Skew: load.NewSkew(u.plan.Skew, len(u.plan.Destinations), u.plan.Producers),
		}
		if n := u.toSend(s.plan.Duration); n < math.MaxUint64 && !u.plan.Rate.Random() {
			u.draws.Skew = u.draws.Skew.Count(n)
		}
		u.draws.Keys = load.NewKeys(u.plan.KeySkew, u.plan.Keys, &u.draws)
		u.draws.DrawQuotas(u.plan.Rate.Schedule, u.allProducers, u.plan.Count)
	}
}

// share returns this shard's part of the group's rate.
func (u *use) share() (sum float64) {
	if u.draws.Skew == nil || len(u.producers) == u.allProducers {
		return float64(len(u.producers)) / float64(u.allProducers)
	}
	for _, p := range u.producers {
		sum += u.draws.Skew.Weight(p.index)
	}
	return sum
}

// ownShare returns this shard's number of the group's first n messages.
func (u *use) ownShare(n uint64) (own uint64) {
	for _, p := range u.producers {
		own += u.draws.Skew.Share(n, p.index, u.allProducers)
	}
	return own
}

// awaitsDraw reports whether a producer waits for a message that is due at random, or later than those of others.
func (u *use) awaitsDraw() bool {
	return (u.plan.Rate.Random() || u.draws.Skew != nil) &&
		slices.ContainsFunc(u.producers, func(p *producer) bool { return p.rec.AwaitsDue() })
}

// drawnDemand is demandOf for random arrivals within span. The rate is that of the messages that were due.
func (s *step) drawnDemand(u *use, span time.Duration) (all uint64, measured stats.Offered) {
	if span <= 0 { // the load has not begun
		return 0, measured
	}
	rate := u.plan.Rate
	if end, ends := rate.End(); ends {
		span = min(span, end)
	}
	var warm, toSend uint64
	var last time.Duration
	for _, p := range u.producers {
		quota := uint64(math.MaxUint64)
		if u.draws.Quotas != nil {
			quota = u.draws.Quotas[p.index]
		}
		draw := p.load.Drawn
		if lasts(p.ended) { // stuck in Send
			draw = func(t time.Duration, most int) (all, warm uint64, last time.Duration) {
				return u.draws.Drawn(rate.Schedule, p.index, u.allProducers, t, most)
			}
		}
		own, early, latest := draw(span, maxReplay/len(u.producers))
		own = min(own, quota)
		p.due = own
		all, warm, toSend, last = all+own, warm+min(early, own), toSend+quota, max(last, latest)
	}
	due := all
	if u.plan.Count > 0 && u.sentInStep >= toSend { // as in demandOf
		span = last
		if late := u.lastSend() - s.start - lateEnd; late > last {
			span, due = late, all+uint64(rate.Between(last, late)*u.share()*(late-last).Seconds())
		}
	}
	measured = stats.Offered{
		Due: due - warm, Sent: u.measuredSends() - u.measuredBase, Span: span - min(s.plan.Warmup, span),
	}
	if measured.Span > 0 {
		measured.Rate = float64(measured.Due) / measured.Span.Seconds()
	}
	return all, measured
}
