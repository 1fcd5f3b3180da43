package store

import (
	"container/heap"
	"slices"
	"time"
)

// Messages that have expired go when a consumer comes to them, which costs nothing. Only a queue that is full looks
// for them itself, so that they do not keep senders waiting whom no consumer would ever help.

const (
	// sweepPause is the least time between two searches of a queue, and sweepShare how many times as long as the last
	// one took: a search goes through the whole queue.
	sweepPause = 100 * time.Millisecond
	sweepShare = 20
)

// expiry is a queue's record of messages that expire. It is used with the queue's lock held.
type expiry struct {
	soonest int64     // no message in the queue expires earlier, in milliseconds since the Unix epoch; 0: none does
	rest    time.Time // no search before that
	timer   *time.Timer
	armed   bool
}

// note takes account of a message that expires.
func (e *expiry) note(at int64) {
	if e.soonest == 0 || at < e.soonest {
		e.soonest = at
	}
}

// due returns when a search may find something; never is true if there is nothing to be found.
func (e *expiry) due() (at time.Time, never bool) {
	at = time.UnixMilli(e.soonest)
	if at.Before(e.rest) {
		at = e.rest
	}
	return at, e.soonest == 0
}

// expire drops expired messages, if it is time to look for them, and tells the waiters for room. It returns whether
// there were any.
func (q *Queue) expire() bool {
	q.mu.Lock()
	now := time.Now()
	at, never := q.expiry.due()
	if never || now.Before(at) {
		q.mu.Unlock()
		return false
	}
	n, bytes := q.dropExpired(now.UnixMilli())
	q.expiry.rest = time.Now().Add(max(sweepPause, sweepShare*time.Since(now)))
	q.mu.Unlock()
	q.shrink(n, bytes)
	return n > 0
}

// dropExpired goes through all that no consumer holds; q.mu is held.
func (q *Queue) dropExpired(now int64) (n, bytes int64) {
	q.expiry.soonest = 0
	over := func(e entry) bool {
		switch x := e.m.Expires; {
		case x == 0:
			return false
		case x > now:
			q.expiry.note(x)
			return false
		}
		n++
		bytes += e.m.size()
		return true
	}
	for _, l := range q.levels {
		if l == nil {
			continue
		}
		for pos := l.first; l.live > 0 && pos != l.next; pos++ {
			if e := *l.at(pos); e.m != nil && over(e) {
				l.take(pos)
			}
		}
		l.back = slices.DeleteFunc(l.back, over)
	}
	h := &q.delayed.heap
	if *h = slices.DeleteFunc(*h, over); len(*h) > 0 {
		heap.Init(h)
		q.delayed.arm(q, time.Now())
	}
	q.expired += uint64(n) //nolint:gosec // a count
	return n, bytes
}

// watch has the queue looked through when something will have expired, if a sender waits for room; q.mu is held.
func (q *Queue) watch() {
	e := &q.expiry
	if e.armed || len(q.room) == 0 {
		return
	}
	at, never := e.due()
	if never {
		return
	}
	e.armed = true
	if wait := time.Until(at); e.timer == nil {
		e.timer = time.AfterFunc(wait, q.search)
	} else {
		e.timer.Reset(wait)
	}
}

// search runs when the timer fires.
func (q *Queue) search() {
	stalled := q.dest.store.stall.active() // at its end all waiters for room ask again
	if !stalled {
		q.expire()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expiry.armed = false
	if !stalled {
		q.watch()
	}
}
