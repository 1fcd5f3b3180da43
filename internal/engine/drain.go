package engine

import (
	"context"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// poll is how often the drain looks whether all has come. It adds at most this to the end of a run and nothing to
	// any latency.
	poll = 5 * time.Millisecond
	// quiet is how long consumers must have received nothing before the drain takes it for the end, where it cannot
	// know how many messages to expect.
	quiet = time.Second
)

// subscription is a set of consumers of which one gets each message: all consumers of a queue, one consumer of a topic,
// or the consumers that share a subscription.
type subscription struct {
	destination driver.Destination
	consumers   []*consumer
	tracker     *verify.Tracker // nil if nothing is verified
}

func subscriptions(r *run) []subscription {
	type key struct {
		dest driver.Destination
		name string
	}
	var subs []subscription
	index := map[key]int{}
	for _, c := range r.consumers {
		k := key{dest: c.spec.Destination}
		switch {
		case c.spec.Shared:
			k.name = c.spec.Subscription
		case c.spec.Destination.Kind == driver.Topic:
			k.name = c.spec.Name
		}
		i, ok := index[k]
		if !ok {
			i = len(subs)
			index[k] = i
			subs = append(subs, subscription{destination: c.spec.Destination})
		}
		subs[i].consumers = append(subs[i].consumers, c)
	}
	return subs
}

// drain waits, for the drain time-out at most, until all messages in flight have ended and all that were completed have
// been received.
func (r *run) drain(ctx context.Context) {
	r.sampler.enter(stats.Drain)
	if r.plan.Role == plan.Consumer {
		return // what comes until it is told to stop is no longer measured as part of a full second
	}
	patience := r.plan.DrainTimeout
	if r.silent { // that long it has been waiting already
		patience = min(patience, lastLook)
	}
	deadline := time.Now().Add(patience)
	r.waitFor(ctx, deadline, func() bool { return r.inFlight() == 0 })
	if r.plan.Role == plan.Producer {
		return
	}
	if r.expectedKnown() {
		r.waitFor(ctx, deadline, func() bool { return r.awaited() == 0 })
		switch {
		case r.redelivered() > 0:
			// Messages delivered twice stand in for some that may still come; and more of them may.
		case r.verify == nil:
			return
		case r.progress().Duplicates == 0 && r.allConfirmed():
			r.waitQuiet(ctx, deadline, afterglow)
			return
		}
	}
	r.waitQuiet(ctx, deadline, quiet)
}

// waitQuiet waits until nothing has been received for a while.
func (r *run) waitQuiet(ctx context.Context, deadline time.Time, while time.Duration) {
	q := quietness{received: r.received(), looked: time.Now()}
	r.waitFor(ctx, deadline, func() bool {
		return q.look(time.Now(), r.received()) >= while || !alive(r.consumers)
	})
}

// quietness is for how long nothing has been received. Time in which nobody looked does not count: a machine that stops
// this process stops the consumers, too, and what came meanwhile has not been received yet.
type quietness struct {
	received uint64
	looked   time.Time
	lasted   time.Duration
}

// look takes what has been received until now, and returns how long that has not changed.
func (q *quietness) look(now time.Time, received uint64) time.Duration {
	q.lasted += min(now.Sub(q.looked), 4*poll)
	q.looked = now
	if received != q.received {
		q.received, q.lasted = received, 0
	}
	return q.lasted
}

// waitFor polls done until it is true, the deadline is over or ctx ends, and looks at the same time what comes.
func (r *run) waitFor(ctx context.Context, deadline time.Time, done func() bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for r.attend(); !done(); r.attend() {
		left := time.Until(deadline)
		if left <= 0 {
			return
		}
		timer.Reset(min(poll, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// inFlight counts the messages that may still complete, and the producers that are still handing one over.
func (r *run) inFlight() (n uint64) {
	for _, p := range r.producers {
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

// allConfirmed tells whether all messages were accepted: no others may still come.
func (r *run) allConfirmed() bool {
	for _, p := range r.producers {
		if p.rec.Completed() != p.rec.Ended() {
			return false
		}
	}
	return true
}

// expectedKnown tells whether the number of deliveries follows from the number of messages sent.
func (r *run) expectedKnown() bool { return r.plan.Role == plan.Client && r.plan.Selector == "" }

// tally compares what was completed with what was received, each subscription on its own, so that what one got twice
// does not hide what another never got.
func (r *run) tally() (expected, missing, excess uint64) {
	completed := r.completed()
	for _, s := range r.subs {
		want, got := completed[s.destination], s.received()
		expected += want
		missing += max(want, got) - got
		excess += max(want, got) - want
	}
	return expected, missing, excess
}

// completed counts the messages by destination that were completed and are to be delivered.
func (r *run) completed() map[driver.Destination]uint64 {
	n := map[driver.Destination]uint64{}
	for _, p := range r.producers {
		withheld := p.rec.Withheld() // before Completed, of which it is a part
		n[p.spec.Destination] += p.rec.Completed() - withheld
	}
	return n
}

func (s *subscription) received() (n uint64) {
	for _, c := range s.consumers {
		n += c.rec.Total()
	}
	return n
}

// awaited is the number of missing messages that may still come: those of subscriptions with a consumer left.
func (r *run) awaited() (n uint64) {
	if r.verify != nil {
		for i := range r.subs {
			if alive(r.subs[i].consumers) {
				n += r.verify.open(&r.subs[i])
			}
		}
		return n
	}
	completed := r.completed()
	for _, s := range r.subs {
		if want, got := completed[s.destination], s.received(); got < want && alive(s.consumers) {
			n += want - got
		}
	}
	return n
}
