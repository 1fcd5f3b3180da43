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

// noteExpiry records the expiry of a message in the queue; 0 is never.
func (q *Queue) noteExpiry(at int64) {
	if at != 0 && (q.soonest == 0 || at < q.soonest) {
		q.soonest = at
	}
}

// expire removes expired messages, if a search is due.
func (q *Queue) expire() {
	q.mu.Lock()
	now := time.Now()
	if q.soonest == 0 || now.UnixMilli() < q.soonest || now.Before(q.noSweep) {
		q.mu.Unlock()
		return
	}
	q.soonest = 0
	millis := now.UnixMilli()
	n, bytes := q.sweep(func(m *Message) bool {
		expired := m.Expired(&millis)
		if !expired {
			q.noteExpiry(m.Expires)
		}
		return expired
	})
	q.counts.Expired += uint64(n) //nolint:gosec // a count
	q.noSweep = time.Now().Add(max(sweepPause, sweepShare*time.Since(now)))
	q.mu.Unlock()
	q.shrink(n, bytes)
}
