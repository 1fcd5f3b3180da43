package transport

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	chunkBits = 8
	chunkSize = 1 << chunkBits

	// A place holds the generation of its message, with one of these marks, or without a mark when it is free.
	inFlight = 1 << 32 // it was sent and has not ended
	ending   = 1 << 33 // its end is being reported
)

// InFlight are the messages of a producer in flight, by the index of their slots. The goroutine that changes a place
// from inFlight to ending reports the end of its message: exactly one does. Its memory grows as places are used, 8
// bytes for each. No method allocates for a message, and none waits but [InFlight.Await]. Begin and Undo are for the
// goroutine that sends; the others are safe for concurrent use.
type InFlight struct {
	done    driver.Completions
	chunks  []atomic.Pointer[[chunkSize]atomic.Uint64] // allocated on first use
	givenUp atomic.Int64                               // sends without a place: each may get a late answer
	awaited atomic.Bool
	settled chan struct{} // signalled when a send has ended while awaited
}

// NewInFlight returns an empty table for the indexes below maxPending ([driver.ProducerSpec.MaxPending]).
func NewInFlight(maxPending int, done driver.Completions) *InFlight {
	return &InFlight{
		done: done, settled: make(chan struct{}, 1),
		chunks: make([]atomic.Pointer[[chunkSize]atomic.Uint64], (max(maxPending, 1)+chunkSize-1)>>chunkBits),
	}
}

// place returns the place of a slot, or nil, which an invalid answer of a broker may name.
func (s *InFlight) place(slot driver.Slot) *atomic.Uint64 {
	index := slot.Index()
	if int(index>>chunkBits) >= len(s.chunks) {
		return nil
	}
	c := s.chunks[index>>chunkBits].Load()
	if c == nil {
		return nil
	}
	return &c[index%chunkSize]
}

// Begin marks a slot as sent, before the message can leave. The index is below maxPending.
func (s *InFlight) Begin(slot driver.Slot) {
	at := &s.chunks[slot.Index()>>chunkBits]
	c := at.Load()
	if c == nil {
		c = new([chunkSize]atomic.Uint64)
		at.Store(c)
	}
	if c[slot.Index()%chunkSize].Swap(inFlight|uint64(slot.Generation()))&inFlight != 0 {
		s.givenUp.Add(1)
	}
}

// Undo undoes Begin for a message that did not leave. It returns false if its end was reported meanwhile: then Send
// returns nil.
func (s *InFlight) Undo(slot driver.Slot) bool {
	return s.place(slot).CompareAndSwap(inFlight|uint64(slot.Generation()), 0)
}

// Claim claims the right to report the end of a send, by [InFlight.Report]. It returns false if the end was reported
// before, and for a slot that was never sent.
func (s *InFlight) Claim(slot driver.Slot) bool {
	generation, at := uint64(slot.Generation()), s.place(slot)
	return at != nil && at.CompareAndSwap(inFlight|generation, ending|generation)
}

// Report reports claimed slots.
func (s *InFlight) Report(slots []driver.Slot, o driver.Outcome) {
	if len(slots) == 0 {
		return
	}
	s.done.DoneAll(slots, o)
	for _, slot := range slots { // free, unless the place has been reused already
		s.place(slot).CompareAndSwap(ending|uint64(slot.Generation()), uint64(slot.Generation()))
	}
	if s.awaited.Load() {
		Notify(s.settled)
	}
}

// End claims and reports the slots that have not ended yet. It keeps them at the beginning of slots.
func (s *InFlight) End(slots []driver.Slot, o driver.Outcome) {
	claimed := slots[:0]
	for _, slot := range slots {
		if s.Claim(slot) {
			claimed = append(claimed, slot)
		}
	}
	s.Report(claimed, o)
}

// EndAll claims and reports all messages in flight, as when no answer will come.
func (s *InFlight) EndAll(o driver.Outcome) { s.Report(s.claimAll(), o) }

// Late reports the answer to a send whose place was reused before its end: the engine had given the send up. It does so
// for as many answers as there were such sends, so that a broker cannot invent them, and returns false for others.
func (s *InFlight) Late(slot driver.Slot, o driver.Outcome) bool {
	at := s.place(slot)
	if at == nil || int32(uint32(at.Load())-slot.Generation()) <= 0 { //nolint:gosec // generations are serial numbers
		return false
	}
	for n := s.givenUp.Load(); n > 0; n = s.givenUp.Load() {
		if s.givenUp.CompareAndSwap(n, n-1) {
			s.done.Done(slot, o)
			return true
		}
	}
	return false
}

// places iterates over the places used so far, by the indexes of their slots.
func (s *InFlight) places() iter.Seq2[int, *atomic.Uint64] {
	return func(yield func(int, *atomic.Uint64) bool) {
		for i := range s.chunks {
			c := s.chunks[i].Load()
			for j := 0; c != nil && j < len(c); j++ {
				if !yield(i<<chunkBits+j, &c[j]) {
					return
				}
			}
		}
	}
}

// claimAll claims all messages in flight.
func (s *InFlight) claimAll() (slots []driver.Slot) {
	for i, at := range s.places() {
		state := at.Load()
		slot := driver.NewSlot(uint32(i), uint32(state)) //nolint:gosec // the lower half is the generation
		if state&inFlight != 0 && s.Claim(slot) {
			slots = append(slots, slot)
		}
	}
	return slots
}

// None reports whether no send is in flight.
func (s *InFlight) None() bool {
	for _, at := range s.places() {
		if at.Load()&inFlight != 0 {
			return false
		}
	}
	return true
}

// Await waits until the end of every send has been reported. It returns false when ctx ends first: the producer then
// ends the others, and awaits ends that other goroutines are reporting. One goroutine waits; no message is sent
// meanwhile.
func (s *InFlight) Await(ctx context.Context) bool {
	s.awaited.Store(true)
	for _, at := range s.places() {
		for at.Load()&(inFlight|ending) != 0 {
			select {
			case <-s.settled:
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}
