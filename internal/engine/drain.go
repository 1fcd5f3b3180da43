package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
)

// drain waits, for the drain time-out at most, until all messages in flight have ended and all that were completed have
// been received.
func (r *run) drain(ctx context.Context) {
	started := time.Now()
	defer func() { r.drained = time.Since(started) }()
	if r.role == plan.Consumer {
		return // messages until it is told to stop are no longer measured as part of a full second
	}
	patience := r.plan.DrainTimeout
	if r.silent { // that long it has been waiting already
		patience = min(patience, silentDrainTimeout)
	}
	deadline := started.Add(patience)
	r.waitFor(ctx, deadline, func() bool { return r.inFlight() == 0 })
	if len(r.step.consumers()) == 0 {
		return
	}
	if r.expectedKnown() {
		r.waitFor(ctx, deadline, func() bool { return r.awaited() == 0 })
		if r.verify != nil && r.patience() > 0 && r.inFlight() == 0 {
			r.waitFor(ctx, time.Now().Add(proofTime), func() bool { return r.awaited() == 0 || r.proven() })
		}
		switch {
		case r.redelivered()+r.resent() > 0:
			// Messages delivered twice stand in for some that may still come; and more of them may.
		case r.verify == nil:
			return
		case r.progress().Duplicates == 0 && r.allConfirmed():
			r.waitQuiet(ctx, deadline, duplicateWait)
			return
		}
	}
	r.waitQuiet(ctx, deadline, quietTime)
}

// over returns a function that reports whether the consumers of the present step end its load, and why; nil if they
// never do.
func (r *run) over(producing bool) func() (why string, done bool) {
	switch s := r.step.plan; {
	case s.Idle > 0:
		return r.idle(s.Idle)
	case !producing && s.Drained:
		return r.drainedAll()
	default:
		return nil
	}
}

// drainedAll returns a function that reports whether the consumers of a step without producers are done, and why: they
// have received all messages that the run has sent, or, where their number is not known, nothing has come for a while.
// If some of them never come, the drain time-out ends the wait.
func (r *run) drainedAll() func() (why string, done bool) {
	q := quietness{received: r.received(), looked: time.Now(), every: watchInterval}
	return func() (string, bool) {
		idle := q.look(time.Now(), r.received())
		known := r.expectedKnown() && r.redelivered()+r.resent() == 0
		switch {
		case known && r.awaited() == 0, !known && idle >= drainedIdleTime:
			return "drained", true
		case known && idle >= max(r.plan.DrainTimeout, drainedIdleTime):
			r.silent = true // the drain need not wait that long again
			return "nothing came any more", true
		default:
			return "", false
		}
	}
}

// idle returns a function that reports whether the consumers of the present step have received nothing for a time,
// foreign messages included.
func (r *run) idle(lasting time.Duration) func() (why string, done bool) {
	arrived := func() (n uint64) {
		for _, c := range r.step.consumers() {
			n += c.rec.Arrived()
		}
		return n
	}
	q := quietness{received: arrived(), looked: time.Now(), every: watchInterval}
	return func() (string, bool) {
		return fmt.Sprintf("idle: nothing was received for %v", lasting), q.look(time.Now(), arrived()) >= lasting
	}
}

// waitQuiet waits until nothing has been received for a while.
func (r *run) waitQuiet(ctx context.Context, deadline time.Time, while time.Duration) {
	q := quietness{received: r.received(), looked: time.Now(), every: pollInterval}
	r.waitFor(ctx, deadline, func() bool {
		return q.look(time.Now(), r.received()) >= while || !alive(r.step.consumers())
	})
}

// quietness is for how long nothing has been received. Time without a call of look does not count: a machine that stops
// this process stops the consumers, too, and messages that came meanwhile have not been received yet.
type quietness struct {
	received uint64
	looked   time.Time
	every    time.Duration // the usual time between calls of look
	lasted   time.Duration
}

// look takes the count of received messages, and returns how long it has not changed.
func (q *quietness) look(now time.Time, received uint64) time.Duration {
	q.lasted += min(now.Sub(q.looked), 4*q.every)
	q.looked = now
	if received != q.received {
		q.received, q.lasted = received, 0
	}
	return q.lasted
}

// waitFor polls done until it is true, the deadline is over or ctx ends, and checks for arrivals each time.
func (r *run) waitFor(ctx context.Context, deadline time.Time, done func() bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for r.watchArrivals(); !done(); r.watchArrivals() {
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

// inFlight counts the messages of the run that may still complete, and the producers that are still handing one over.
func (r *run) inFlight() uint64 { return inFlight(r.producers) }

func inFlight(producers []*producer) (n uint64) {
	for _, p := range producers {
		if p.driver == nil || p.ended == nil {
			continue
		}
		select {
		case <-p.ended:
			n += p.rec.InFlight()
		default:
			n++
		}
	}
	return n
}

// alive tells whether one of the consumers is left to receive anything.
func alive(consumers []*consumer) bool {
	for _, c := range consumers {
		if c.driver == nil || c.ended == nil { // never started
			continue
		}
		select {
		case <-c.ended:
		default:
			return true
		}
	}
	return false
}

func (r *run) received() (n uint64) {
	for _, c := range r.consumers {
		n += c.rec.Total()
	}
	return n
}

func (r *run) redelivered() (n uint64) {
	for _, c := range r.consumers {
		n += c.rec.Redelivered()
	}
	return n
}

// resent counts the times that a message was sent again: both may arrive.
func (r *run) resent() (n uint64) {
	for _, p := range r.producers {
		n += p.rec.AllResent()
	}
	return n
}

// allConfirmed tells whether all messages were accepted: no unconfirmed ones may still come.
func (r *run) allConfirmed() bool {
	for _, p := range r.producers {
		if p.rec.Completed() != p.rec.Ended() {
			return false
		}
	}
	return true
}

// expectedKnown tells whether the number of deliveries follows from the number of messages sent.
func (r *run) expectedKnown() bool {
	return r.role == plan.Client && r.plan.Shard.IsZero() && !slices.ContainsFunc(r.consumers,
		func(c *consumer) bool { return c.spec.Selector != "" })
}

// tally compares the messages completed with those received, each subscription on its own, so that a duplicate of one
// does not hide a message missing from another.
func (r *run) tally() (expected, missing, excess uint64) {
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

// completed counts the messages by destination that were completed and are to be delivered.
func (r *run) completed() map[place]uint64 {
	n := map[place]uint64{}
	for _, p := range r.producers {
		withheld := p.rec.Withheld() // before Completed, of which it is a part
		n[p.place()] += p.rec.Completed() - withheld
	}
	return n
}

// awaited is the number of missing messages that may still come, on subscriptions with a consumer left.
func (r *run) awaited() (n uint64) {
	completed := r.completed()
	for _, s := range r.subs {
		if s.over || !alive(s.consumers) {
			continue
		}
		if r.verify != nil {
			n += r.verify.open(s)
		} else if want, got := s.expected(completed), s.received(); got < want {
			n += want - got
		}
	}
	return n
}
