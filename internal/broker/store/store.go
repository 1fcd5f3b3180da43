// Package store is the memory of the embedded broker: destinations, queues, subscriptions, and the faults that a
// broker can be told to have. It knows no protocol; the front-ends beside it speak one each and share one [Store], so
// that a message sent over one protocol can be received over another.
//
//	front-end -> Destination.Send -> Queue (one, or one per subscription) -> Consumer.Take -> front-end
//	                                   ^---------- Release, Close ------------+-- Accept: gone
//
// # Bounds
//
// The broker as a whole has a limit of bytes, see [memory]: for messages, whether in queues or in transactions, and
// for destinations, subscriptions and connections, which clients can make as many of as they like. A message that
// several subscriptions hold counts for each.
//
// A queue has a limit of messages and of bytes, including messages that consumers hold. A broker that blocks (the
// default) still stores messages beyond it, and leaves it to the front-ends to stop taking more: they ask
// [Destination.Room] before they grant credit or read on, and are told when there is room. So the overshoot is the
// credit that front-ends have granted. A broker that rejects refuses instead. Waiters for room are told when an eighth
// of the limit is free, and of less a little later.
//
// An expired message is dropped when a consumer comes to it, and also, since no consumer may ever come, while a queue
// is full.
//
// # Order
//
// Messages leave a queue by priority, then in the order in which they came; a message that a consumer gives back takes
// its old place. A consumer with a filter, and messages of a group that another one owns, are passed over without being
// moved. Groups beyond the first 50,000 of a queue share owners.
//
// # Waiting
//
// Nothing here waits except for the end of a stall. A consumer that took all there was is told once when there may be
// more, so a front-end needs one goroutine per connection, not one per consumer.
package store

import (
	"sync"
	"sync/atomic"
)

// Policy is the behavior of a full broker towards senders.
type Policy uint8

// The policies.
const (
	Block  Policy = iota // they wait
	Reject               // their messages are refused
)

// Config are the limits of a store. Zero values mean the defaults.
type Config struct {
	Limit      int64 // messages per queue or subscription; default 1,000,000
	LimitBytes int64 // bytes per queue or subscription; default 256 MiB
	Memory     int64 // bytes of all that clients have at the broker; default 512 MiB
	Full       Policy
}

const (
	defaultLimit      = 1_000_000
	defaultLimitBytes = 256 << 20
	defaultMemory     = 512 << 20
)

// Store holds all destinations of one broker. It is safe for concurrent use.
type Store struct {
	cfg      Config
	faults   atomic.Pointer[faults]
	counters faultCounters
	stall    stall
	memory   memory
	onDrop   atomic.Pointer[func()]
	onMake   atomic.Pointer[func(Address)]
	sources  atomic.Uint64

	mu           sync.RWMutex
	destinations map[Address]*Destination
}

// New returns an empty store.
func New(cfg Config) *Store {
	if cfg.Limit <= 0 {
		cfg.Limit = defaultLimit
	}
	if cfg.LimitBytes <= 0 {
		cfg.LimitBytes = defaultLimitBytes
	}
	if cfg.Memory <= 0 {
		cfg.Memory = defaultMemory
	}
	return &Store{cfg: cfg, memory: memory{limit: cfg.Memory}, destinations: map[Address]*Destination{}}
}

// NewSource returns a number for [Message.Source] that is not in use.
func (s *Store) NewSource() uint64 { return s.sources.Add(1) }

// OnDrop sets the function that breaks all connections; see [Faults.DropEvery]. It is called on a goroutine of its own.
func (s *Store) OnDrop(f func()) { s.onDrop.Store(&f) }

func (s *Store) dropAll() {
	if f := s.onDrop.Load(); f != nil {
		go (*f)()
	}
}

func (s *Store) full() bool {
	f := s.faults.Load()
	return f != nil && f.Full
}

// Open returns the destination of an address; it is made if need be. It fails with [ErrNoMemory] or [ErrLongName].
func (s *Store) Open(a Address) (*Destination, error) {
	if d := s.Find(a); d != nil {
		return d, nil
	}
	switch {
	case len(a.Name) > maxName:
		return nil, ErrLongName
	case s.overfull():
		return nil, ErrNoMemory
	}
	return s.Destination(a), nil
}

// Destination is Open for a destination that must exist, however little memory is left.
func (s *Store) Destination(a Address) *Destination {
	if d := s.Find(a); d != nil {
		return d
	}
	d := s.add(a)
	if f := s.onMake.Load(); f != nil {
		(*f)(a)
	}
	return d
}

// size is the memory that a destination counts, in bytes.
func (a Address) size() int64 { return destinationSize + int64(len(a.Name)) }

func (s *Store) add(a Address) *Destination {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.destinations[a]; d != nil {
		return d
	}
	d := &Destination{store: s, addr: a}
	var subs []Sink
	if a.Kind == KindQueue {
		subs = []Sink{&Queue{dest: d, durable: true}}
	}
	d.subs.Store(&subs)
	s.destinations[a] = d
	s.Charge(a.size())
	return d
}

// Find returns the destination of an address, or nil if there is none.
func (s *Store) Find(a Address) *Destination {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.destinations[a]
}

// Queue returns the queue of that name; it is made if need be.
func (s *Store) Queue(name string) *Queue {
	return s.Destination(Address{KindQueue, name}).queues()[0]
}

// OpenQueue is Queue that fails as Open does.
func (s *Store) OpenQueue(name string) (*Queue, error) {
	d, err := s.Open(Address{KindQueue, name})
	if err != nil {
		return nil, err
	}
	return d.queues()[0], nil
}

// Delete removes a destination and all its messages. Its consumers get nothing more. It returns false if there is none.
func (s *Store) Delete(a Address) bool {
	s.mu.Lock()
	d := s.destinations[a]
	delete(s.destinations, a)
	s.mu.Unlock()
	if d == nil {
		return false
	}
	d.gone.Store(true)
	s.Return(a.size())
	for _, q := range d.queues() {
		q.end()
	}
	return true
}

func (s *Store) each(f func(*Destination)) {
	s.mu.RLock()
	var list []*Destination
	for _, d := range s.destinations {
		list = append(list, d)
	}
	s.mu.RUnlock()
	for _, d := range list {
		f(d)
	}
}
