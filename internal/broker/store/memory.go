package store

import (
	"errors"
	"sync/atomic"
	"time"
)

// The store accounts for the bytes held for clients: queues, subscriptions, destinations, transactions and connections
// together. The sum is close to the memory use of the process without garbage.
//
// There are three bounds. At the limit, destinations have no room and front-ends grant no credit. At 9/8 of the limit,
// messages within granted credit are refused, and no destination or subscription is created. At 5/4 nothing is accepted
// from any client; the range up to there is for partly read frames, and for the connections of consumers, as
// their acknowledgements make room.

// The errors of requests for a destination, subscription or consumer, and of transactions.
var (
	ErrNoMemory         = errors.New("the broker's memory is full")
	ErrLargeTransaction = errors.New("the transaction is too large, or the broker's memory is full")
	ErrLongName         = errors.New("the name is longer than 1024 bytes")
	ErrGone             = errors.New("this temporary destination is no more")
)

// maxName is the longest name of a destination or subscription, in bytes.
const maxName = 1024

// The accounted sizes of objects without their texts, in bytes.
const (
	destinationSize  = 1 << 10 // with its queue
	subscriptionSize = 1 << 10
	consumerSize     = 512
	// ConnectionSize is the size of a connection's buffers.
	ConnectionSize = 64 << 10
)

// Reserve takes n bytes of the broker's memory, or returns false beyond the last bound. Return frees them.
func (s *Store) Reserve(n int64) bool {
	if s.used.Add(n) <= s.cfg.Memory+s.cfg.Memory/4 {
		return true
	}
	s.Return(n)
	return false
}

// Return frees n bytes.
func (s *Store) Return(n int64) { s.used.Add(-n) }

// Charge takes n bytes without a bound, for what [Destination.Room] or [Store.Open] admitted.
func (s *Store) Charge(n int64) { s.used.Add(n) }

// Tight reports that the broker's memory is full: a [Sink] then has no room.
func (s *Store) Tight() bool { return s.used.Load() >= s.cfg.Memory }

// Memory returns the number of bytes that are in use, and the limit.
func (s *Store) Memory() (used, limit int64) { return s.used.Load(), s.cfg.Memory }

// overfull reports that messages are refused, and no destinations created.
func (s *Store) overfull() bool {
	return s.used.Load() >= s.cfg.Memory+s.cfg.Memory/8
}

// OnTight sets the function that frees data kept only for possible later requests. It is called at most once a second,
// while senders lack memory.
func (s *Store) OnTight(f func()) { s.reclaim.Store(&f) }

// Account accounts for the memory of one client, without sent messages and destinations. It is safe for concurrent use.
type Account struct {
	store *Store
	held  atomic.Int64
}

// NewAccount returns an empty account.
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

// End returns all bytes.
func (a *Account) End() { a.store.Return(a.held.Swap(0)) }

// reclaimPause is the least time between two calls of reclaimMemory with an effect.
const reclaimPause = time.Second

// reclaimMemory removes expired messages, and frees data kept for later requests.
func (s *Store) reclaimMemory() {
	now := time.Now().UnixNano()
	if last := s.reclaimed.Load(); now-last < int64(reclaimPause) || !s.reclaimed.CompareAndSwap(last, now) {
		return
	}
	s.each(func(d *Destination) {
		for _, q := range d.queues() {
			q.expire()
		}
	})
	if f := s.reclaim.Load(); f != nil {
		(*f)()
	}
}
