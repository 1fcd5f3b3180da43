package engine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// drain waits until all messages in flight have ended and all completed messages have been received, at most for the
// drain time-out. It reports whether messages still arrived then, an unknown number of them.
func (r *run) drain(ctx context.Context) (flowing bool) {
	started := time.Now()
	defer func() { r.drained = time.Since(started) }()
	if r.role == plan.Consumer {
		return false // later messages would not belong to a full measured second
	}
	patience := r.plan.DrainTimeout
	if r.silent { // the load has already waited that long
		patience = min(patience, silentDrainTimeout)
	}
	deadline := started.Add(patience)
	r.waitFor(ctx, deadline, func() bool { return inFlight(r.producers) == 0 })
	r.awaitReplies(ctx)
	if len(r.step.consumers) == 0 {
		return false
	}
	if r.expectedKnown() {
		r.waitFor(ctx, deadline, func() bool { return r.awaited() == 0 })
		if r.verify != nil && r.patience() > 0 && inFlight(r.producers) == 0 {
			r.waitFor(ctx, time.Now().Add(proofTime), func() bool { return r.awaited() == 0 || r.allProven() })
		}
		switch {
		case r.countCopies() > 0:
			// Duplicates may hide missing messages that may still arrive, and more duplicates may follow.
		case r.verify == nil:
			return false
		case r.progress().Duplicates == 0 && r.allConfirmed():
			r.waitQuiet(ctx, deadline, duplicateWait)
			return false
		}
	}
	return !r.waitQuiet(ctx, deadline, quietTime)
}

// awaitOthers continues with the drain of a shard to which the others still send, until nothing has come for quietTime:
// consumers that left before would give messages back, or leave them at the broker. It ends as well when the drain
// time-out has passed without a new message, and with ctx.
func (r *run) awaitOthers(ctx context.Context) {
	if r.verify == nil || r.plan.Shard.IsZero() || r.plan.DrainTimeout == 0 {
		return
	}
	started := time.Now()
	defer func() { r.drained += time.Since(started) }()
	for more := true; more; {
		before := r.distinct()
		quiet := r.waitQuiet(ctx, time.Now().Add(r.plan.DrainTimeout), quietTime)
		more = !quiet && ctx.Err() == nil && r.distinct() > before
	}
}

// distinct counts the messages received, each once if this process knows them.
func (r *run) distinct() uint64 {
	if r.plan.Split() {
		return r.received()
	}
	return r.progress().Received
}

// newDrainedCheck returns a function that returns why the consumers of a step without producers are done, or "": they
// have received all messages that the run has sent or, if the number is unknown, nothing for drainedIdleTime. If
// messages are missing, the drain time-out ends the wait.
func (r *run) newDrainedCheck() func() (why string) {
	q := quiet[uint64]{most: 4 * watchInterval}
	return func() string {
		idle := q.look(r.received())
		known := r.expectedKnown() && r.countCopies() == 0
		switch {
		case known && r.awaited() == 0, !known && idle >= drainedIdleTime:
			return "drained"
		case known && idle >= max(r.plan.DrainTimeout, drainedIdleTime):
			r.silent = true // shortens the drain
			return "nothing came any more"
		default:
			return ""
		}
	}
}

// waitQuiet waits until nothing has been received for the time while, or no consumer receives any more, at most until
// deadline. It reports whether that came before.
func (r *run) waitQuiet(ctx context.Context, deadline time.Time, while time.Duration) (done bool) {
	q := quiet[uint64]{most: 4 * pollInterval}
	r.waitFor(ctx, deadline, func() bool {
		done = q.look(r.received()) >= while || !alive(r.step.consumers)
		return done
	})
	return done
}

// waitFor polls done until it is true, the deadline is over or ctx ends, and checks for arrivals each time. Once a
// second it judges the figures so far, if anybody looks at them.
func (r *run) waitFor(ctx context.Context, deadline time.Time, done func() bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var judged time.Time
	for r.watchArrivals(); !done(); r.watchArrivals() {
		if r.live && time.Since(judged) >= sampleInterval {
			_ = r.judgeSoFar() // the load is over
			judged = time.Now()
		}
		left := time.Until(deadline)
		if left <= 0 {
			return
		}
		timer.Reset(min(pollInterval, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// inFlight counts the messages of producers in flight, and the producers that are still in Send.
func inFlight(producers []*producer) (n uint64) {
	for _, p := range producers {
		switch {
		case p.driver == nil || p.ended == nil:
		case lasts(p.ended):
			n++
		default:
			n += p.rec.InFlight()
		}
	}
	return n
}

// lasts reports whether the load of a worker has begun and not ended.
func lasts(ended chan struct{}) bool { return ended != nil && !isClosed(ended) }

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// unansweredMessages reports whether the broker still owes an answer to open producers: to messages in flight, or to
// messages that a time-out has ended.
func unansweredMessages(producers []*producer) bool {
	return inFlight(producers) > 0 || slices.ContainsFunc(producers, func(p *producer) bool {
		return p.driver != nil && p.ended != nil && p.load.Unanswered()
	})
}

// alive reports whether one of the consumers still receives.
func alive(consumers []*consumer) bool {
	return slices.ContainsFunc(consumers, func(c *consumer) bool { return c.driver != nil && lasts(c.ended) })
}

func (r *run) received() (n uint64) {
	for _, c := range r.consumers {
		n += c.rec.Total()
	}
	return n
}

// countCopies returns the number of redeliveries and resends: more copies than one may arrive.
func (r *run) countCopies() (n uint64) {
	for _, c := range r.consumers {
		n += c.rec.Count(result.Redelivered)
	}
	for _, p := range r.producers {
		n += p.rec.AllResent()
	}
	return n
}

// allConfirmed reports that all messages were accepted, so that no unconfirmed ones may still arrive.
func (r *run) allConfirmed() bool {
	return !slices.ContainsFunc(r.producers, func(p *producer) bool { return p.rec.Completed() != p.rec.Ended() })
}

// expectedKnown reports whether the number of deliveries follows from the number of messages sent.
func (r *run) expectedKnown() bool {
	return r.role == plan.Client && r.plan.Shard.IsZero() && !slices.ContainsFunc(r.groups, func(g *group) bool {
		sends, receives := sendsMessages(g.plan)
		return sends || receives
	}) && !slices.ContainsFunc(r.consumers,
		func(c *consumer) bool { return c.spec.Partial() })
}

// compareReceived compares the messages completed with those received, for each subscription, so that a duplicate at
// one does not hide a missing message at another.
func (r *run) compareReceived() (expected, missing, excess uint64) {
	completed := r.completed()
	for _, s := range r.subs {
		want, got := s.expected(completed), s.received()
		expected += want
		if !r.isParked(s) {
			missing += max(want, got) - got
		}
		excess += max(want, got) - want
	}
	return expected, missing, excess
}

// completed counts the completed messages that will be delivered, by destination.
func (r *run) completed() map[place]uint64 {
	n := map[place]uint64{}
	for _, p := range r.producers {
		withheld := p.rec.Withheld() // before Completed, of which it is a part
		n[p.place()] += p.rec.Completed() - withheld
	}
	return n
}

// awaited returns the number of missing messages that may still arrive, on subscriptions with a live consumer.
func (r *run) awaited() (n uint64) {
	completed := r.completed()
	for _, s := range r.subs {
		if s.over || !alive(s.consumers) {
			continue
		}
		if r.verify != nil {
			n += r.verify.missingAt(s)
		} else if want, got := s.expected(completed), s.received(); got < want {
			n += want - got
		}
	}
	return n
}

// quiet measures the time without a sign of life. Time without a call of look hardly counts: if the machine stops this
// process, it receives nothing either.
type quiet[T comparable] struct {
	most   time.Duration // that counts between two calls of look
	seen   T
	looked time.Time // zero before the first call
	lasted time.Duration
}

// look takes the signs so far, and returns the time since their last change.
func (q *quiet[T]) look(signs T) time.Duration {
	now := time.Now()
	if q.looked.IsZero() {
		q.looked = now
	}
	q.lasted += min(now.Sub(q.looked), q.most)
	q.looked = now
	if signs != q.seen {
		q.seen, q.lasted = signs, 0
	}
	return q.lasted
}

// newSilenceCheck returns a function that returns an error if the broker gave no sign of life for too long although
// messages are due. Call it each interval, from one goroutine. It is nil for a run that does not end with its last
// message.
func (r *run) newSilenceCheck() func() error {
	ends := slices.ContainsFunc(r.step.uses, func(u *use) bool {
		return len(u.producers) > 0 && u.toSend(0) < math.MaxUint64
	})
	if !ends || r.step.plan.Duration > 0 {
		return nil
	}
	limit, q := max(r.plan.DrainTimeout, minSilence), quiet[signs]{most: 2 * sampleInterval, looked: time.Now()}
	return func() error { return r.checkSilence(limit, &q) }
}

// toSend returns the number of messages that the group is to send in a step of that duration, which may be 0; the
// maximum without a count or an end.
func (u *use) toSend(duration time.Duration) uint64 {
	all := cmp.Or(u.plan.Count, math.MaxUint64)
	if end, ok := u.plan.Rate.End(); ok {
		all = min(all, u.plan.Rate.Due(end))
	}
	if duration > 0 && !u.plan.Rate.IsZero() {
		all = min(all, u.plan.Rate.Due(duration))
	}
	return all
}

// signs of life are messages that the broker took, and the time of the last answer or message to any worker.
type signs struct {
	sent uint64
	last time.Time
}

// checkSilence returns an error if there was no sign of life for that long.
func (r *run) checkSilence(limit time.Duration, q *quiet[signs]) error {
	if len(r.outages.Disconnected()) > 0 { // reconnecting handles it
		q.lasted, q.looked = 0, time.Now()
		return nil
	}
	var seen signs
	var waiting uint64
	later := false // no message is due now or was due lately
	for _, u := range r.step.uses {
		if len(u.producers) == 0 {
			continue
		}
		sent, inFlight := u.sent()
		if !u.to.Factory.Capabilities.Reconnects { // such a client takes messages without a broker
			seen.sent += sent
		}
		waiting += inFlight
		if u.awaitsDraw() || u.ramped && r.clock.Now()-r.step.start <= u.plan.RampWorkers {
			q.lasted, q.looked = 0, time.Now()
			return nil
		}
		left := u.ownShare(u.toSend(0)) > sent
		// The schedule counts the messages of all shards.
		due := u.plan.Rate.At(uint64(float64(sent) / u.share()))
		later = later || left && !u.plan.Rate.IsZero() && r.clock.Now()-r.step.start-due < limit
	}
	if last, ok := r.collector.LastSign(); ok {
		seen.last = last
	}
	if q.look(seen) < limit || later {
		return nil
	}
	return driver.Errorf(driver.ClassTimeout, "wait for the broker",
		"is the broker stalled, a queue full, or the connection half open? --drain-timeout is the time to wait (10s "+
			"at least), --send-timeout ends messages without an answer, -o idle-timeout (AMQP) or -o heart-beat "+
			"(STOMP) a silent connection, --duration the run",
		"it did nothing for %s; messages waiting for it: %d", limit, waiting)
}
