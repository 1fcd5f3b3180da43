package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/openings"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// step is the state of a step.
type step struct {
	plan  *plan.Step
	index int
	uses  []*use
	// The workers of uses.
	producers []*producer
	consumers []*consumer

	start      time.Duration // of its load, since the start of the run
	loaded     time.Duration // how long its load took
	quotasUsed chan struct{} // closed when all quotas are used up
	quotaUsed  func()        // to be called once for each of them
	ended      bool          // its commands have run

	awaited uint64 // messages that had not come when the step, which was to be drained, ended
}

// use is a group with the setting that it has in a step.
type use struct {
	*group
	plan         *plan.Group
	to           *Endpoint // of its producers; nil without these
	measuredBase uint64    // messages sent before the load of the step, and due after a warm-up

	draws load.Draws // of random arrivals

	ramped        bool            // its workers open during the load
	startConsumer func(*consumer) // once the load has begun
	startProducer func(*producer)

	opener *openings.Load // of a group of connections, once the load has begun

	due, sentInStep uint64 // as of the end of the step
	offered         stats.Offered
}

func newStep(r *run, index int) *step {
	s := &step{plan: &r.plan.Steps[index], index: index, quotasUsed: make(chan struct{})}
	var quotas uint64
	for _, g := range s.plan.Groups {
		for _, workers := range r.groups {
			if canReopen(workers.plan, g) {
				u := &use{group: workers, plan: g, to: r.sendsTo(g)}
				if u.quota() > 0 {
					quotas++
				}
				s.uses = append(s.uses, u)
				s.producers = append(s.producers, workers.producers...)
				s.consumers = append(s.consumers, workers.consumers...)
			}
		}
	}
	s.quotaUsed = load.NewQuota(quotas, func() { close(s.quotasUsed) })
	return s
}

// distinctGroups returns the groups of all steps for which workers are made: a group once, and again for each step that
// wants workers of it that the others cannot be.
func distinctGroups(p *plan.Plan) (list []*plan.Group) {
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			if !slices.ContainsFunc(list, func(o *plan.Group) bool { return canReopen(o, g) }) {
				list = append(list, g)
			}
		}
	}
	return list
}

// canReopen reports whether the closed workers of group a can open again with setting b: the numbers, the destinations
// and the delay of messages are the same. Messages that arrive later are judged by that delay.
func canReopen(a, b *plan.Group) bool {
	return a.Name == b.Name && a.Delay == b.Delay && a.Producers == b.Producers &&
		a.Consumers == b.Consumers && a.Shared == b.Shared &&
		slices.Equal(a.Destinations, b.Destinations)
}

// openStep prepares the load of the present step: it runs its commands and opens its groups.
func (r *run) openStep(ctx context.Context) error {
	if err := r.runCommands(ctx, "before", r.step.plan.Before); err != nil {
		return err
	}
	if err := r.openGroups(ctx); err != nil {
		return err
	}
	r.countFrom(ctx)
	return nil
}

// runNextStep ends the present step and runs the next one up to the end of its load.
func (r *run) runNextStep(ctx, loading context.Context, end ending) ending {
	r.sampler.enterPhase(stats.Drain)
	r.settleStep(ctx)
	r.endExpiry()
	following := r.steps[r.step.index+1]
	r.closeLeaving(ctx, following)
	r.commandsAfter(ctx, loading, &end)
	if end.endsRun() {
		return end
	}
	r.endStep(end, r.sampler.endStep(following.plan.Name))
	r.step = following
	following.start = r.clock.Now()
	err := causeOf(loading, r.openStep(loading))
	if err == nil {
		err = r.setRelativeRates()
	}
	r.watchWorkers()
	switch {
	case errors.Is(err, errInterrupted):
		return interrupted()
	case err != nil:
		return ending{reason: "step " + following.plan.Name + " could not begin", err: err}
	}
	following.prepareDraws(r.plan.Seed)
	following.start = r.clock.Now()
	return r.loadStep(loading)
}

// settleStep waits until the messages in flight have ended, and, if the step wants it, all have been received.
func (r *run) settleStep(ctx context.Context) {
	if r.step.plan.Drained {
		r.drain(ctx)
		if r.expectedKnown() && len(r.step.consumers) > 0 && ctx.Err() == nil {
			r.step.awaited = r.awaited()
		}
		return
	}
	started := time.Now()
	r.waitFor(ctx, started.Add(r.plan.DrainTimeout), func() bool { return inFlight(r.producers) == 0 })
	r.awaitReplies(ctx)
	r.drained = time.Since(started)
}

// closeLeaving closes the groups that the following step does not have, or has with other workers, and groups with
// unanswered messages.
func (r *run) closeLeaving(ctx context.Context, following *step) {
	leaving := slices.DeleteFunc(slices.Clone(r.step.uses), func(u *use) bool {
		return u.openings == nil && inFlight(u.producers) == 0 &&
			slices.ContainsFunc(following.uses, func(f *use) bool {
				return f.group == u.group && sameWorkers(u.plan, f.plan)
			})
	})
	if len(leaving) == 0 {
		r.verify.renewProbes()
		return
	}
	r.unanswered = unansweredMessages(r.producers)
	var consumers []*consumer
	for _, u := range leaving {
		consumers = append(consumers, u.consumers...)
	}
	r.recordEnds(ctx, r.subscriptionsOf(consumers))
	for _, text := range r.closeGroups(ctx, leaving) {
		r.closeFailures = append(r.closeFailures, fmt.Sprintf("after step %s: %s", r.step.plan.Name, text))
	}
	r.watchWorkers()
}

// endStep takes the figures of the step.
func (r *run) endStep(end ending, sum stats.Summary) {
	sum.Outcome.Reason, sum.Start = end.reason, r.clock.Start().Add(r.step.start).UnixMicro()
	sum.Loaded = r.step.loaded
	sum.Due, sum.Offered = r.countDemand()
	sum.Sends, sum.Receives = r.step.sides()
	sum.Minimum.Only(sum.Sends, sum.Receives)
	sum.Maximum.Only(sum.Sends, sum.Receives)
	producers, delivered, stored := r.producersAsked()
	sum.Limit = new(sum.Tally.Judge(producers, delivered, stored))
	if r.step.opens() && len(r.step.producers)+len(r.step.consumers) == 0 {
		sum.Limit = r.openingLimit(&sum)
	}
	sum.Groups = r.groupsOf(sum.Groups)
	r.setReadRates(&sum)
	sum.Values = metrics(&sum)
	sum.Thresholds = r.step.judgeThresholds(sum.Values)
	r.endedSteps = append(r.endedSteps, sum)
	r.sampler.locked(func(*stats.Collector) { r.sampler.ended = append(r.sampler.ended, sum) })
}

// judgeThresholds returns the thresholds of the step with its figures.
func (s *step) judgeThresholds(metrics map[string]float64) []result.Threshold {
	list := threshold.Judge(s.plan.Thresholds, s.target, metrics)
	for i := range list {
		list[i].Step = s.plan.Name
	}
	return list
}

// groupsOf returns the figures of the groups that the present step has. One of an earlier step is there too if
// something of it ended in this one, so that the groups add up to the step.
func (r *run) groupsOf(all []stats.Summary) (list []stats.Summary) {
	for _, g := range all {
		i := slices.IndexFunc(r.step.uses, func(u *use) bool { return u.plan.Name == g.Name })
		if i < 0 && g.Total.Values() == [result.NumCounters]uint64{} {
			continue
		}
		if i >= 0 {
			g.Due, g.Offered = r.step.uses[i].due, r.step.uses[i].offered
		}
		list = append(list, g)
	}
	return list
}

// target returns the rate of a group of the step or, without a name, of all together, on average so far; 0 if a group
// is without a rate.
func (s *step) target(group string) (perSecond float64) {
	for _, u := range s.uses {
		switch {
		case len(u.producers) == 0 || group != "" && u.plan.Name != group:
		case u.plan.Rate.IsZero():
			return 0
		case u.plan.Rate.Random() && u.offered.Rate > 0: // what was due
			perSecond += u.offered.Rate
		default:
			perSecond += u.plan.Rate.Average(s.loaded) * u.share()
		}
	}
	return perSecond
}

// sides reports whether the step sends and receives.
func (s *step) sides() (sends, receives bool) {
	sends, receives = len(s.producers) > 0, len(s.consumers) > 0
	for _, u := range s.uses {
		s, r := sendsMessages(u.plan)
		sends, receives = sends || s, receives || r
	}
	return sends, receives
}

// opensAgain reports whether a later step opens the group once more: after steps without it, or with other workers.
func (r *run) opensAgain(g *plan.Group) bool {
	present, away := g, false
	for _, s := range r.steps[r.step.index+1:] {
		i := slices.IndexFunc(s.uses, func(u *use) bool { return u.plan.Name == g.Name })
		switch {
		case i < 0:
			away = true
		case away || !sameWorkers(present, s.uses[i].plan):
			return true
		default:
			present = s.uses[i].plan
		}
	}
	return false
}

// Times of waiting and polling. They do not enter latencies.
const (
	// sampleInterval is the time between two snapshots, and between two checks of thresholds that abort.
	sampleInterval = time.Second

	// Opening.

	// retryInterval is the time between two attempts to reach a broker, with --wait-for-broker.
	retryInterval = 250 * time.Millisecond
	// openGrace is added to the connect time-out, so that the driver's own deadline ends the wait first: its error is more
	// precise.
	openGrace = 100 * time.Millisecond

	// Load.

	// watchInterval is the time between two checks of the messages received, in a step that these end and in a run that
	// only receives: long enough to cost nothing.
	watchInterval = 25 * time.Millisecond
	// minSilence is the minimum wait for a sign of life in a step that only its count ends, even if the drain time-out is
	// shorter: brokers that page, fail over or collect garbage are silent for seconds.
	minSilence = 10 * time.Second
	// drainedIdleTime is the time without a received message that ends a step until drained, if the number of expected
	// messages is unknown.
	drainedIdleTime = 3 * time.Second

	// Drain.

	// pollInterval is the time between two checks of the messages in flight or expected. It lengthens a step by at most
	// this time.
	pollInterval = 5 * time.Millisecond
	// quietTime is the time without a received message that ends the drain, if the number of expected messages is unknown.
	quietTime = time.Second
	// duplicateWait is the wait for duplicates in a verified run after all messages have arrived.
	duplicateWait = 250 * time.Millisecond
	// proofTime bounds the wait, after the drain time-out, for the proof that missing messages are lost and not left at
	// the broker: if the machine was paused, the consumers had no time to receive.
	proofTime = 3 * time.Second
	// probeTimeout bounds the wait for the broker's answer to a probe, in a verified run that receives no more messages.
	probeTimeout = 10 * time.Second
	// silentDrainTimeout replaces the drain time-out if the broker was already silent for that time.
	silentDrainTimeout = 2 * time.Second

	// Close.

	// cancelGrace bounds the return of a driver from a call after its context has ended, and each later stage of a run
	// after a second interruption.
	cancelGrace = 500 * time.Millisecond
	// stopTimeout bounds the wait for workers that were told to stop, even if the connect time-out is longer: they have
	// nothing left to wait for.
	stopTimeout = 5 * time.Second
	// leastStop is the least wait for them: longer than the closing of a lost connection, which ends the messages on
	// it.
	leastStop = closeTimeout + 2*cancelGrace
	// closeTimeout bounds the closing of unused connections, and the time from the close of one worker to the next unless
	// subscriptions have to be removed.
	closeTimeout = 2 * time.Second

	// The broker's count.

	// countWhileOpen bounds the polling of the broker's count, until it equals the run's, before the workers close:
	// some brokers remove an unused queue with its count.
	countWhileOpen = 300 * time.Millisecond
	// countWhenClosed bounds the same polling after the workers have closed.
	countWhenClosed = 1500 * time.Millisecond
	// countEvery is the time between two polls.
	countEvery = 25 * time.Millisecond
	// countLagging is the time between two polls of a broker with lagging counters, after its declared lag.
	countLagging = time.Second
)
