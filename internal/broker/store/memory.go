package store

import (
	"errors"
	"sync"
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
	limit int64
	used  atomic.Int64

	wanted  atomic.Bool // a sender waits for room
	telling atomic.Bool // they will be told
	reclaim atomic.Pointer[func()]

	mu      sync.Mutex
	waiting map[roomTeller]struct{}
	watched bool // reclaim is called now and then
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
func (s *Store) Return(n int64) {
	m := &s.memory
	if used := m.used.Add(-n); m.wanted.Load() {
		s.mayTellMemory(used)
	}
}

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

// AwaitMemory has t told when there may be memory again. A [Sink] that keeps a list of its waiters calls this when
// [Store.Tight] is the reason.
func (s *Store) AwaitMemory(t roomTeller) {
	m := &s.memory
	m.mu.Lock()
	if m.waiting == nil {
		m.waiting = map[roomTeller]struct{}{}
	}
	m.waiting[t] = struct{}{}
	m.wanted.Store(true)
	if !m.watched {
		m.watched = true
		go s.reclaimMemory()
	}
	m.mu.Unlock()
	if !s.Tight() { // it was given back before wanted was seen
		s.mayTellMemory(m.used.Load())
	}
}

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

// reclaimPause is how often memory is looked for while a sender waits for it.
const reclaimPause = time.Second

// reclaimMemory makes owners give up memory until no sender waits for it.
func (s *Store) reclaimMemory() {
	m := &s.memory
	if !s.stall.active() {
		s.each(func(d *Destination) {
			for _, q := range d.queues() {
				q.expire()
			}
		})
		if f := m.reclaim.Load(); f != nil {
			(*f)()
		}
		if !s.Tight() {
			s.tellMemory()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watched = len(m.waiting) > 0; m.watched {
		time.AfterFunc(reclaimPause, s.reclaimMemory)
	}
}

// mayTellMemory tells the waiters, for an eighth of the memory at once, and after a while for less. It may run
// inside locks of queues.
func (s *Store) mayTellMemory(used int64) {
	m := &s.memory
	switch {
	case used >= m.limit, !m.telling.CompareAndSwap(false, true):
	case used < m.limit-m.limit/8:
		go s.tellMemory()
	default:
		time.AfterFunc(roomPause, s.tellMemory)
	}
}

func (s *Store) tellMemory() {
	m := &s.memory
	m.telling.Store(false)
	if s.stall.active() { // at its end all waiters are told
		return
	}
	m.mu.Lock()
	waiting := m.waiting
	m.waiting = nil
	m.wanted.Store(false)
	m.mu.Unlock()
	for t := range waiting {
		t.TellRoom()
	}
}
