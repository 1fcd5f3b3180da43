package store

import (
	"sync"
	"sync/atomic"
	"time"
)

// Waiters are senders that wait for room in a queue or topic. While there are some, a timer looks whether there is
// room: expired messages, claims that end and memory make room without a word.
type Waiters struct {
	wanted atomic.Bool // there are some

	mu      sync.Mutex
	list    []func()
	ticking bool
	told    time.Time // when so many waited that all were told
}

const (
	// roomPause is how often room is looked for.
	roomPause = 25 * time.Millisecond
	// crowd is how many may wait before all are told now and then: waiters that still need room ask again, and waiters
	// whose connections have ended are forgotten.
	crowd = 256
)

// Wanted tells whether a sender waits.
func (w *Waiters) Wanted() bool { return w.wanted.Load() }

// Add has notify called, once, when full may be false. full must not be called with locks held that notify takes.
func (w *Waiters) Add(s *Store, full func() bool, notify func()) {
	w.mu.Lock()
	w.list = append(w.list, notify)
	w.wanted.Store(true)
	if !w.ticking {
		w.ticking = true
		time.AfterFunc(roomPause, func() { w.look(s, full) })
	}
	w.mu.Unlock()
	if !full() { // it may have emptied before wanted was seen
		w.Tell()
	}
}

func (w *Waiters) look(s *Store, full func() bool) {
	w.mu.Lock()
	w.ticking = len(w.list) > 0
	crowded := len(w.list) > crowd && time.Since(w.told) > time.Second
	if crowded {
		w.told = time.Now()
	}
	ticking := w.ticking
	w.mu.Unlock()
	if !ticking {
		return
	}
	if !s.stall.active() { // at its end all waiters are told
		if s.Tight() {
			s.reclaimMemory()
		}
		if crowded || !full() {
			w.Tell()
		}
	}
	time.AfterFunc(roomPause, func() { w.look(s, full) })
}

// Tell calls all waiters.
func (w *Waiters) Tell() {
	w.mu.Lock()
	list := w.list
	w.list = nil
	w.wanted.Store(false)
	w.mu.Unlock()
	for _, notify := range list {
		notify()
	}
}
