package store

import (
	"sync"
	"sync/atomic"
	"time"
)

// Waiters are senders that wait for room in a queue or topic. A timer checks for room, too: the expiry of messages
// and claims, and memory freed elsewhere, cause no notification.
type Waiters struct {
	waiting atomic.Bool // list is not empty

	mu       sync.Mutex
	list     []func()
	ticking  bool
	notified time.Time // the last time that maxWaiters was exceeded
}

const (
	// roomPause is the time between checks for room.
	roomPause = 25 * time.Millisecond
	// maxWaiters is how many may wait before all are notified once a second: active waiters ask again, and waiters of
	// ended connections are forgotten.
	maxWaiters = 256
)

// Waiting reports whether a sender waits.
func (w *Waiters) Waiting() bool { return w.waiting.Load() }

// Add registers a call of notify, once, when full may return false. full must not be called with locks held that notify
// takes.
func (w *Waiters) Add(s *Store, full func() bool, notify func()) {
	w.mu.Lock()
	w.list = append(w.list, notify)
	w.waiting.Store(true)
	if !w.ticking {
		w.ticking = true
		time.AfterFunc(roomPause, func() { w.check(s, full) })
	}
	w.mu.Unlock()
	if !full() { // room may have come before waiting was set
		w.Notify()
	}
}

func (w *Waiters) check(s *Store, full func() bool) {
	w.mu.Lock()
	w.ticking = len(w.list) > 0
	tooMany := len(w.list) > maxWaiters && time.Since(w.notified) > time.Second
	if tooMany {
		w.notified = time.Now()
	}
	ticking := w.ticking
	w.mu.Unlock()
	if !ticking {
		return
	}
	if !s.Stalled() { // its end notifies all waiters
		if s.Tight() {
			s.reclaimMemory()
		}
		if tooMany || !full() {
			w.Notify()
		}
	}
	time.AfterFunc(roomPause, func() { w.check(s, full) })
}

// Notify calls all waiters.
func (w *Waiters) Notify() {
	w.mu.Lock()
	list := w.list
	w.list = nil
	w.waiting.Store(false)
	w.mu.Unlock()
	for _, notify := range list {
		notify()
	}
}
