package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// slots are the places of the messages that one producer may have in flight. The producer takes all returned places at
// once, so that it locks once per burst, not once per message.
type slots struct {
	places []place

	// Of the producer's goroutine.
	ready []uint32     // places to take
	fresh atomic.Int64 // places from here on were never used; others may read it

	mu      sync.Mutex
	back    []uint32      // places given back
	waiting bool          // the producer waits for one
	wake    chan struct{} // to the producer
}

// place is one message in flight, or none. Its times, number and size are written before the generation becomes odd.
type place struct {
	intended, actual time.Duration
	number           int64         // of the message, with a ledger
	generation       atomic.Uint32 // odd while a message is in flight
	size             uint32        // bytes of the body
}

func newSlots(n int) *slots { return &slots{places: make([]place, n), wake: make(chan struct{}, 1)} }

// hasRoom reports whether takePlace finds a place at once.
func (s *slots) hasRoom() bool { return len(s.ready) > 0 || s.refill() || s.used() < len(s.places) }

// used returns the number of places used so far.
func (s *slots) used() int { return int(s.fresh.Load()) }

// refill takes over the places given back.
func (s *slots) refill() bool {
	s.mu.Lock()
	s.ready, s.back = s.back, s.ready[:0]
	s.mu.Unlock()
	return len(s.ready) > 0
}

// takePlace returns a free place, if there is one. The message is in flight after beginMessage.
func (s *slots) takePlace() (index uint32, ok bool) {
	if len(s.ready) == 0 && !s.refill() {
		fresh := s.used()
		if fresh == len(s.places) {
			return 0, false
		}
		s.fresh.Store(int64(fresh + 1))
		return uint32(fresh), true //nolint:gosec // below MaxPending
	}
	last := len(s.ready) - 1
	index = s.ready[last]
	s.ready = s.ready[:last]
	return index, true
}

// awaitPlace waits until a place is given back; it returns false if ctx ends before.
func (s *slots) awaitPlace(ctx context.Context) bool {
	for {
		if !s.startWaiting() {
			return true
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return false
		}
	}
}

// nextSlot returns the slot that beginMessage will return for a place.
func (s *slots) nextSlot(index uint32) driver.Slot {
	return driver.NewSlot(index, s.places[index].generation.Load()+1)
}

// idle reports whether no message is in flight.
func (s *slots) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready)+len(s.back) == s.used()
}

// awaitEnd waits until a message ends; it returns false when ctx ended before.
func (s *slots) awaitEnd(ctx context.Context) bool {
	s.mu.Lock()
	s.ready, s.back = append(s.ready, s.back...), s.back[:0]
	s.mu.Unlock()
	return s.idle() || s.awaitPlace(ctx)
}

// beginMessage marks the message of a place as in flight, before it goes to the driver. Its times must be written
// before.
func (s *slots) beginMessage(index uint32) driver.Slot {
	return driver.NewSlot(index, s.places[index].generation.Add(1))
}

// endMessage ends a message and returns its place; nil if the message has ended before or was never in flight.
func (s *slots) endMessage(slot driver.Slot) *place {
	if uint64(slot.Index()) >= uint64(len(s.places)) || slot.Generation()%2 == 0 {
		return nil
	}
	p := &s.places[slot.Index()]
	if !p.generation.CompareAndSwap(slot.Generation(), slot.Generation()+1) {
		return nil
	}
	return p
}

// giveBack frees the places of ended messages. It reports whether the producer waits for one: the caller then has to
// call wakeUp, or to send a message in its stead.
func (s *slots) giveBack(ended []driver.Slot) (waiting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slot := range ended {
		s.back = append(s.back, slot.Index())
	}
	waiting = s.waiting
	s.waiting = false
	return waiting
}

// wakeUp ends the producer's wait for a place.
func (s *slots) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// startWaiting lets the producer wait for the next place; it returns false if there is one.
func (s *slots) startWaiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = len(s.back) == 0
	return s.waiting
}

// putBack frees the place of a message that did not leave. Only the producer's goroutine calls it.
func (s *slots) putBack(index uint32) { s.ready = append(s.ready, index) }

// inFlight calls visit for each message in flight.
func (s *slots) inFlight(visit func(*place)) {
	for i := range s.places[:s.used()] {
		if p := &s.places[i]; p.generation.Load()%2 == 1 {
			visit(p)
		}
	}
}
