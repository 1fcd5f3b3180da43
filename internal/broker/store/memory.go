package store

import (
	"errors"
	"sync/atomic"
	"time"
)

// memory accounts for the bytes that the broker holds for its clients, over all queues, subscriptions, destinations,
// transactions and connections together. The count is close to the memory use of the process, garbage left aside.
//
// There are three bounds. At the limit there is no room any more: a front-end that asks for it before it gives leave
// to send gives none. An eighth beyond it, messages are refused that senders had leave for, and no destination or
// subscription is made. A quarter beyond it, at the end, nothing is taken from any client: the range between is for
// frames that are being read, and for the connections of consumers, which make room.
type memory struct {
	limit     int64
	used      atomic.Int64
	reclaim   atomic.Pointer[func()]
	reclaimed atomic.Int64 // when it was called last, in nanoseconds since the Unix epoch
}

// The errors of a request to make a destination, subscription or consumer.
var (
	ErrNoMemory = errors.New("the broker's memory is full") // there is no room for more, in the broker as a whole
	ErrLongName = errors.New("the name is longer than 1024 bytes")
)

// maxName is the length of the longest name of a destination or subscription, in bytes.
const maxName = 1024

// The sizes of objects without the texts that they hold, in bytes.
const (
	destinationSize  = 1 << 10 // with its queue
	subscriptionSize = 1 << 10
	consumerSize     = 512
	// ConnectionSize is the size of a connection for the front-ends: its buffers.
	ConnectionSize = 64 << 10
)

// Reserve takes n bytes of the broker's memory, or returns false if that would go beyond its end. Return gives them
// back.
func (s *Store) Reserve(n int64) bool {
	if s.memory.used.Add(n) <= s.memory.end() {
		return true
	}
	s.Return(n)
	return false
}

// end is the bound that only messages already under way can exceed.
func (m *memory) end() int64 { return m.limit + m.limit/4 }

// Return gives back n bytes.
func (s *Store) Return(n int64) { s.memory.used.Add(-n) }

// Charge takes n bytes even if fewer are free: for messages and objects that [Destination.Room] or [Store.Open]
// admitted.
func (s *Store) Charge(n int64) { s.memory.used.Add(n) }

// Tight tells that the broker's memory is full: a [Sink] then has no room.
func (s *Store) Tight() bool { return s.memory.used.Load() >= s.memory.limit }

// Memory returns how many bytes are in use, and the limit.
func (s *Store) Memory() (used, limit int64) { return s.memory.used.Load(), s.memory.limit }

// overfull tells that no more messages are taken, and no destinations made.
func (s *Store) overfull() bool {
	return s.memory.used.Load() >= s.memory.limit+s.memory.limit/8
}

// OnTight sets the function that is called, once a second at most, while a sender waits for memory: to give up data
// that is kept only in case of a later request.
func (s *Store) OnTight(f func()) { s.memory.reclaim.Store(&f) }

// Account counts the broker's memory that one client uses, except for sent messages and destinations. It is safe for
// concurrent use.
type Account struct {
	store *Store
	held  atomic.Int64
}

// NewAccount returns an account of which nothing is in use.
func (s *Store) NewAccount() *Account { return &Account{store: s} }

// Take is [Store.Reserve].
func (a *Account) Take(n int64) bool {
	if !a.store.Reserve(n) {
		return false
	}
	a.held.Add(n)
	return true
}

// Give is [Store.Return].
func (a *Account) Give(n int64) {
	if n != 0 {
		a.held.Add(-n)
		a.store.Return(n)
	}
}

// End gives back all bytes that are still in use.
func (a *Account) End() { a.store.Return(a.held.Swap(0)) }

// reclaimPause is the least time between two searches for memory.
const reclaimPause = time.Second

// reclaimMemory makes owners give up memory, if it is time to.
func (s *Store) reclaimMemory() {
	m := &s.memory
	now := time.Now().UnixNano()
	if last := m.reclaimed.Load(); now-last < int64(reclaimPause) || !m.reclaimed.CompareAndSwap(last, now) {
		return
	}
	s.each(func(d *Destination) {
		for _, q := range d.queues() {
			q.expire()
		}
	})
	if f := m.reclaim.Load(); f != nil {
		(*f)()
	}
}
