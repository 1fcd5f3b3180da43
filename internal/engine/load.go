package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// ending says why the load ended.
type ending struct {
	reason      string
	interrupted bool
	aborted     bool // by a threshold
	err         error
}

func interrupted() ending { return ending{reason: "interrupted", interrupted: true} }

// failed is the unexpected end of a worker.
func failed(worker string, err error) ending {
	return ending{reason: worker + " failed", err: fmt.Errorf("%s: %w", worker, err)}
}

// endsRun reports that no further step follows.
func (e *ending) endsRun() bool { return e.err != nil || e.interrupted || e.aborted }

// loadStep runs the workers of the present step until its load ends, and stops the producers.
func (r *run) loadStep(loading context.Context) ending { //nolint:gocyclo // one step after the other
	s := r.step
	r.beginLoad()
	r.endExpiry = s.startExpiry()
	finished, stopProducers := r.startProducers(context.WithoutCancel(loading))
	defer func() {
		stopProducers()
		r.endRamp()
		s.loaded = r.clock.Now() - s.start
		for _, p := range s.producers {
			p.stoppedAt = r.clock.Epoch(r.clock.Now())
		}
	}()

	var elapsed <-chan time.Time
	if s.plan.Duration > 0 {
		elapsed = time.After(s.start + s.plan.Duration - r.clock.Now())
	}
	producing := len(s.producers) > 0
	if !producing && !s.opens() {
		finished = nil
	}
	silence, aborts := r.newSilenceCheck(), r.aborts()
	second := time.Tick(sampleInterval)
	var arrivalTick <-chan time.Time
	var drained func() (why string)
	if s.plan.Drained && !s.plan.Produces() && !s.opens() { // producers may be in other shards only
		drained = r.newDrainedCheck()
	}
	if r.verify != nil && !producing || drained != nil {
		arrivalTick = time.Tick(watchInterval)
	}
	for {
		select {
		case worker := <-r.ramp.opened:
			r.adopt(worker, true)
		case <-second:
			r.watchLate()
			if aborts || r.live {
				s.loaded = r.clock.Now() - s.start
				if t := r.judgeSoFar(); t != nil {
					r.sampler.locked((*stats.Collector).DecideStalls)
					return ending{reason: "threshold failed: " + t.String(), aborted: true}
				}
			}
			if silence != nil {
				if err := silence(); err != nil {
					r.silent = true
					return ending{reason: "no answer from the broker", err: err}
				}
			}
		case <-elapsed:
			return ending{reason: "duration reached"}
		case <-s.quotasUsed:
			return ending{reason: "message count reached"}
		case <-loading.Done():
			return interrupted()
		case end := <-r.failures:
			return end
		case <-arrivalTick:
			r.watchArrivals()
			if drained == nil {
				continue
			}
			if why := drained(); why != "" {
				return ending{reason: why}
			}
		case <-finished:
			select { // producers that failed end, too
			case end := <-r.failures:
				return end
			default:
				return ending{reason: r.step.allSent()}
			}
		}
	}
}

// allSent returns the reason for the end of producers that did not fail.
func (s *step) allSent() string {
	if len(s.producers) == 0 {
		return "all connections were opened and held"
	}
	if slices.ContainsFunc(s.uses, func(u *use) bool { return len(u.producers) > 0 && u.plan.Count == 0 }) {
		return "schedule ended"
	}
	return "message count reached"
}

// beginLoad begins the load of the present step for recorders, sampler and consumers.
func (r *run) beginLoad() {
	s := r.step
	r.phases.Begin(s.start, s.plan.Warmup)
	r.boundary.Begin()
	r.silent = false
	for _, c := range s.consumers {
		c.rec.Begin()
	}
	for _, u := range s.uses {
		for _, p := range u.producers {
			p.rec.SetRated(!u.plan.Rate.IsZero())
			p.base = p.rec.Ended() + p.rec.InFlight()
		}
		u.measuredBase = u.measuredSends()
	}
	r.ramp.prepare(s, r.clock.Now())
	r.sampler.beginStep(s.plan, r.clock.Start().Add(s.start))
	r.startConsumers()
}

// aborts reports whether a threshold may end the load of the present step.
func (r *run) aborts() bool {
	return slices.ContainsFunc(slices.Concat(r.plan.Thresholds, r.step.plan.Thresholds),
		func(t threshold.Threshold) bool { return t.Abort })
}

// judgeSoFar judges the thresholds by the figures so far, and hands both to the snapshots. It returns a threshold that
// ends the run because it is broken, or nil.
func (r *run) judgeSoFar() *threshold.Threshold {
	var all, step stats.Summary
	r.sampler.locked(func(c *stats.Collector) { all, step = c.SumsSoFar() })
	step.Sends, step.Receives = r.step.sides()
	if len(r.steps) > 1 {
		present := step
		present.Minimum.Only(step.Sends, step.Receives)
		all.Minimum = r.lowest(append(slices.Clone(r.endedSteps), present), all.Groups)
	}
	r.addSoFar(&all)
	all.Values, step.Values = metrics(&all), metrics(&step)
	if r.live {
		all.Thresholds = threshold.Judge(r.plan.Thresholds, r.wholeTarget, all.Values)
		for i := range r.endedSteps {
			all.Thresholds = append(all.Thresholds, r.endedSteps[i].Thresholds...)
		}
		all.Thresholds = append(all.Thresholds, r.step.judgeThresholds(step.Values)...)
		r.findSoFar(&all)
		r.sampler.locked(func(*stats.Collector) { r.sampler.soFar = &all })
	}
	return cmp.Or(threshold.Broken(r.plan.Thresholds, r.wholeTarget, all.Values),
		threshold.Broken(r.step.plan.Thresholds, r.step.target, step.Values))
}

// addSoFar adds the use of the broker's side, the outages and the counts of the verification so far.
func (r *run) addSoFar(s *stats.Summary) {
	s.Start, s.End = r.clock.Start().UnixMicro(), r.clock.Moment(time.Now()).UnixMicro()
	r.setOutside(s)
	if r.verify != nil && r.role.Consumes() && !r.plan.Split() {
		p := r.progress()
		s.Verification = &result.Verification{
			Total: p.Verified(), Known: r.plan.VerifyWindow > 0, Window: r.plan.VerifyWindow.Microseconds(),
		}
	}
}

// wholeTarget returns the rate of a run of one step, or of a group in it; 0 if there are several steps.
func (r *run) wholeTarget(group string) float64 {
	if len(r.steps) > 1 {
		return 0
	}
	return r.step.target(group)
}

// sent returns the number of messages that a group has sent in the step.
func (u *use) sent() (sent, waiting uint64) {
	for _, p := range u.producers {
		inFlight := p.rec.InFlight()
		sent += p.rec.Ended() + inFlight - p.base
		waiting += inFlight
	}
	return sent, waiting
}

// setRelativeRates sets the rates of the present step that are shares of a rate reached in an earlier step.
func (r *run) setRelativeRates() error {
	for _, u := range r.step.uses {
		relative := u.plan.Rate.Relative
		if relative == nil {
			continue
		}
		i := slices.IndexFunc(r.endedSteps, func(s stats.Summary) bool { return s.Name == relative.Step })
		if i < 0 {
			return fmt.Errorf("step %s: there was no step %s before it", r.step.plan.Name, relative.Step)
		}
		rate, err := relative.Of(r.endedSteps[i].Values[relative.Metric])
		if err != nil {
			return fmt.Errorf("the rate of group %s in step %s: %w", u.plan.Name, r.step.plan.Name, err)
		}
		g := *u.plan // a copy: the plan does not change
		if g.Rate.Schedule = load.ConstantSchedule(rate); g.Poisson {
			g.Rate.Schedule, _ = g.Rate.Poisson() // of six decimals, which are exact
		}
		u.plan = &g
	}
	return nil
}

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

// demandOf returns the messages that the rate of a group demanded of this shard; zero without a rate. Where producers
// have due times of their own, at random or from their openings on, the rate is that of the messages that were due.
func (s *step) demandOf(u *use) (all uint64, measured stats.Offered) {
	rate, span := u.plan.Rate, s.loaded
	if s.plan.Duration > 0 {
		span = min(span, s.plan.Duration)
	}
	if len(u.producers) == 0 || rate.IsZero() || span <= 0 {
		return 0, measured
	}
	if end, ends := rate.End(); ends {
		span = min(span, end+u.offset(u.allProducers-1, u.allProducers))
	}
	var warm, toSend uint64
	for _, p := range u.producers {
		toSend += u.quotaOf(p)
	}
	counted := u.plan.Count > 0 && u.sentInStep >= toSend
	var last time.Duration
	for _, p := range u.producers {
		own, early, latest := s.drawn(u, p, span, counted)
		p.due = min(own, u.quotaOf(p))
		all, warm, last = all+p.due, warm+min(early, p.due), max(last, latest)
	}
	due, even := all, !rate.Random() && !u.ramped
	if counted {
		// Messages due after the last one do not count, unless the last one left late: then the rate was missed for
		// that time.
		late, next := u.lastSend()-s.start-lateEnd, rate.At(u.plan.Count)
		switch {
		case !even && late > last:
			span, due = late, all+uint64(rate.Between(last, late)*u.share()*(late-last).Seconds())
		case !even:
			span = last
		case rate.Due(late) > u.plan.Count:
			span, due = late, u.ownShare(rate.Due(late))
			warm = u.ownShare(rate.Due(min(s.plan.Warmup, late)))
		case next < math.MaxInt64:
			span = next
		}
	}
	warmup := min(s.plan.Warmup, span)
	measured = stats.Offered{Due: due - warm, Sent: u.measuredSends() - u.measuredBase, Span: span - warmup}
	if even {
		measured.Rate = rate.Between(warmup, span) * u.share()
	} else if measured.Span > 0 {
		measured.Rate = float64(measured.Due) / measured.Span.Seconds()
	}
	return all, measured
}

// quotaOf returns the number of messages of the count that a producer sends; the maximum without a count.
func (u *use) quotaOf(p *producer) uint64 {
	switch {
	case u.plan.Count == 0:
		return math.MaxUint64
	case u.draws.Quotas != nil:
		return u.draws.Quotas[p.index]
	default:
		return u.draws.Skew.Share(u.plan.Count, p.index, u.allProducers)
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

// drawn returns the messages of a producer that were due within span, those in the warm-up, and when the last one was.
// Counted: the group has sent its count.
func (s *step) drawn(u *use, p *producer, span time.Duration, counted bool) (all, warm uint64, last time.Duration) {
	rate, from := u.plan.Rate, u.producerOffset(p)
	if span -= from; span <= 0 {
		return 0, 0, 0
	}
	if end, ends := rate.End(); ends {
		span = min(span, end)
	}
	most := maxReplay / len(u.producers)
	switch {
	case !rate.Random():
		share := func(n uint64) uint64 { return u.draws.Skew.Share(n, p.index, u.allProducers) }
		if all = share(rate.Due(span)); counted {
			all = share(u.plan.Count)
		}
		if all > 0 {
			last = rate.At((all-1)*uint64(u.allProducers) + uint64(p.index)) //nolint:gosec // not negative
		}
		warm = share(rate.Due(max(0, s.plan.Warmup-from)))
	case lasts(p.ended) || p.ended == nil: // stuck in Send, or not open yet
		draws := u.drawsOf(p)
		all, warm, last = draws.Drawn(rate.Schedule, p.index, u.allProducers, span, most)
	default:
		all, warm, last = p.load.Drawn(span, most)
	}
	return all, warm, last + from
}

// drawsOf returns the draws of a producer, to which the warm-up is shorter if it begins later.
func (u *use) drawsOf(p *producer) load.Draws {
	draws := u.draws
	draws.Warmup = max(0, draws.Warmup-u.producerOffset(p))
	return draws
}
