package store

import (
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
}

// note takes account of a message that expires; 0 is never.
func (e *expiry) note(at int64) {
	if at != 0 && (e.soonest == 0 || at < e.soonest) {
		e.soonest = at
	}
}

// expire drops expired messages, if it is time to look for them.
func (q *Queue) expire() {
	q.mu.Lock()
	now := time.Now()
	if q.expiry.soonest == 0 || now.UnixMilli() < q.expiry.soonest || now.Before(q.expiry.rest) {
		q.mu.Unlock()
		return
	}
	q.expiry.soonest = 0
	var n, bytes int64
	over := func(e entry) bool {
		if x := e.m.Expires; x == 0 || x > now.UnixMilli() {
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
	q.expired += uint64(n) //nolint:gosec // a count
	q.expiry.rest = time.Now().Add(max(sweepPause, sweepShare*time.Since(now)))
	q.mu.Unlock()
	q.shrink(n, bytes)
}
