package store

import "time"

// Expired messages are removed when a consumer reaches them, at no cost. Only a full queue searches for them, so that
// senders do not wait for ever for a consumer.

const (
	// A search goes through the whole queue. The time between two searches of a queue is at least sweepPause, and
	// sweepShare times the duration of the last one.
	sweepPause = 100 * time.Millisecond
	sweepShare = 20
)

// expiry is the state of a queue's searches for expired messages. It is used with the queue's lock held.
type expiry struct {
	soonest int64     // the earliest expiry of a message in the queue, in milliseconds since the Unix epoch; 0 for none
	rest    time.Time // no search before that
}

// note records the expiry of a message; 0 is never.
func (e *expiry) note(at int64) {
	if at != 0 && (e.soonest == 0 || at < e.soonest) {
		e.soonest = at
	}
}

// expire removes expired messages, if a search is due.
func (q *Queue) expire() {
	q.mu.Lock()
	now := time.Now()
	if q.expiry.soonest == 0 || now.UnixMilli() < q.expiry.soonest || now.Before(q.expiry.rest) {
		q.mu.Unlock()
		return
	}
	q.expiry.soonest = 0
	millis := now.UnixMilli()
	n, bytes := q.sweep(func(m *Message) bool {
		expired := m.Expired(&millis)
		if !expired {
			q.expiry.note(m.Expires)
		}
		return expired
	})
	q.counts.Expired += uint64(n) //nolint:gosec // a count
	q.expiry.rest = time.Now().Add(max(sweepPause, sweepShare*time.Since(now)))
	q.mu.Unlock()
	q.shrink(n, bytes)
}
