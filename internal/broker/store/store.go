// Package store is the memory of the embedded broker: destinations, queues, subscriptions and injected faults. It knows
// no protocol. The front-ends speak one protocol each and share one [Store], so that a message sent over one protocol
// can be received over another.
//
//	front-end -> Destination.Send -> Queue (one, or one per subscription) -> Consumer.Take -> front-end
//	                                   ^---------- Release, Close ------------+-- Accept: gone
//
// # Bounds
//
// The broker has one limit of bytes, see memory.go, for messages in queues and transactions, destinations,
// subscriptions and connections. A message counts once for each subscription.
//
// A queue has a limit of messages and of bytes; unsettled deliveries count. Without [Config.Reject] messages are stored
// beyond the limit, and front-ends apply the back-pressure: they ask [Destination.Room] before they grant credit or
// read on, and again every few milliseconds until there is. The overshoot is the granted credit. With [Config.Reject]
// messages are refused.
//
// An expired message is dropped when a consumer reaches it, and also before a sender is refused or waits.
//
// # Order
//
// Messages leave a queue by priority, then in order of arrival. A returned message takes its old place. Messages that a
// consumer's filter or another owner of their group excludes stay where they are.
//
// # Waiting
//
// The store blocks only during a stall. A consumer that has emptied its queue is notified once of new messages, so
// a front-end needs one goroutine per connection, not one per consumer.
package store

import (
	"cmp"
	"crypto/rand"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Config are the limits of a store. Zero values mean the defaults.
type Config struct {
	Limit      int64 // messages per queue or subscription; default 1,000,000
	LimitBytes int64 // bytes per queue or subscription; default 256 MiB
	Memory     int64 // bytes for all clients together; default 512 MiB
	Reject     bool  // a full broker refuses messages; otherwise senders wait
}

const (
	defaultLimit      = 1_000_000
	defaultLimitBytes = 256 << 20
	defaultMemory     = 512 << 20
)

// Store holds all destinations of one broker. It is safe for concurrent use.
type Store struct {
	cfg    Config
	faults atomic.Pointer[faults]

	stallMu    sync.Mutex
	stallOver  atomic.Pointer[chan struct{}] // nil: no stall; closed at its end
	stallTimer *time.Timer                   // of the last Stall: an earlier one that has fired already does nothing

	onDrop  atomic.Pointer[func()]
	sources atomic.Uint64
	seed    maphash.Seed // of message groups

	doneMu sync.Mutex
	done   FaultCounts

	used      atomic.Int64 // bytes
	reclaim   atomic.Pointer[func()]
	reclaimed atomic.Int64 // the last call of it, in nanoseconds since the Unix epoch

	mu           sync.RWMutex
	destinations map[driver.Destination]*Destination
	deleted      Totals // counts of deleted destinations, without Destinations and Queues
}

// New returns an empty store.
func New(cfg Config) *Store {
	cfg.Limit = cmp.Or(cfg.Limit, defaultLimit)
	cfg.LimitBytes = cmp.Or(cfg.LimitBytes, defaultLimitBytes)
	cfg.Memory = cmp.Or(cfg.Memory, defaultMemory)
	return &Store{cfg: cfg, seed: maphash.MakeSeed(), destinations: map[driver.Destination]*Destination{}}
}

// Rejects reports [Config.Reject].
func (s *Store) Rejects() bool { return s.cfg.Reject }

// Config returns the limits of the store with the defaults filled in.
func (s *Store) Config() Config { return s.cfg }

// NewSource returns an unused number for [Message.Source].
func (s *Store) NewSource() uint64 { return s.sources.Add(1) }

// OnDrop sets the function that breaks all connections, for [Faults.DropEvery]. It is called on its own goroutine.
func (s *Store) OnDrop(f func()) { s.onDrop.Store(&f) }

// Open finds or creates a destination. It fails with [ErrNoMemory], [ErrLongName] or [ErrGone].
func (s *Store) Open(a driver.Destination) (*Destination, error) {
	if d := s.Find(a); d != nil {
		return d, nil
	}
	switch {
	case len(a.Name) > maxName:
		return nil, ErrLongName
	case strings.HasPrefix(a.Name, temporaryPrefix):
		return nil, ErrGone
	case s.overfull():
		return nil, ErrNoMemory
	}
	return s.Destination(a), nil
}

// Resolve returns the destination of a message that names it in an address: without a prefix, a topic of that name if
// there is no such queue.
func (s *Store) Resolve(address string) driver.Destination {
	a, prefixed := ParseAddress(address)
	topic := driver.Destination{Kind: driver.Topic, Name: a.Name}
	if !prefixed && s.Find(a) == nil && s.Find(topic) != nil {
		return topic
	}
	return a
}

// ownSize is the accounted memory of a destination without its messages, in bytes.
func (d *Destination) ownSize() int64 { return destinationSize + int64(len(d.addr.Name)) }

// Destination is Open without limits, for a destination that must exist.
func (s *Store) Destination(a driver.Destination) *Destination {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.destinations[a]; d != nil {
		return d
	}
	d := &Destination{store: s, addr: a}
	var subs []Sink
	if a.Kind == driver.Queue {
		subs = []Sink{&Queue{dest: d, durable: true}}
	}
	d.subs.Store(&subs)
	s.destinations[a] = d
	s.Charge(d.ownSize())
	return d
}

// temporaryPrefix begins the names of temporary destinations. Only the broker chooses such names.
const temporaryPrefix = "perfmq.temporary."

// Temporary creates a queue with a name of its own, which lasts until [Destination.Delete]. It fails with
// [ErrNoMemory].
func (s *Store) Temporary() (*Destination, error) {
	if s.overfull() {
		return nil, ErrNoMemory
	}
	return s.Destination(driver.Destination{Name: temporaryPrefix + rand.Text()}), nil
}

// Delete removes a temporary destination with its messages. Messages that are sent to it afterwards go nowhere.
func (d *Destination) Delete() {
	s := d.store
	s.mu.Lock()
	again := s.destinations[d.addr] != d
	delete(s.destinations, d.addr)
	s.mu.Unlock()
	if again {
		return
	}
	d.mu.Lock()
	queues := d.queues()
	d.subs.Store(&[]Sink{})
	d.mu.Unlock()
	queues[0].end()
	s.Return(d.ownSize())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted.addCounts(d, queues)
	s.deleted.Consumers, s.deleted.Depth, s.deleted.Bytes = 0, 0, 0
}

// Find returns a destination, or nil.
func (s *Store) Find(a driver.Destination) *Destination {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.destinations[a]
}

// Queue finds or creates a queue.
func (s *Store) Queue(name string) *Queue {
	return s.Destination(driver.Destination{Kind: driver.Queue, Name: name}).queues()[0]
}

// ConsumeQueue is [Queue.Consume] for a queue that is created first if need be, with the limits of [Store.Open].
func (s *Store) ConsumeQueue(name string, filter Filter, notify func()) (*Consumer, error) {
	d, err := s.Open(driver.Destination{Kind: driver.Queue, Name: name})
	if err != nil {
		return nil, err
	}
	queues := d.queues()
	if d.addr.Kind != driver.Queue || len(queues) == 0 {
		return nil, ErrGone
	}
	return queues[0].Consume(filter, notify)
}

func (s *Store) each(f func(*Destination)) {
	s.mu.RLock()
	list := slices.Collect(maps.Values(s.destinations))
	s.mu.RUnlock()
	for _, d := range list {
		f(d)
	}
}

// QueueStats are the exact counts of a queue or subscription since its creation.
type QueueStats struct {
	Subscription string `json:"subscription,omitempty"` // its name; empty for queues and unnamed subscriptions

	Consumers   int    `json:"consumers"`
	Depth       int64  `json:"depth"` // messages stored and not settled, including unsettled deliveries
	Bytes       int64  `json:"bytes"`
	Stored      uint64 `json:"stored"`
	Delivered   uint64 `json:"delivered"`
	Redelivered uint64 `json:"redelivered"` // part of Delivered
	Settled     uint64 `json:"settled"`     // accepted by consumers
	Returned    uint64 `json:"returned"`    // released by consumers, or unsettled when they closed
	Rejected    uint64 `json:"rejected"`    // by consumers
	Expired     uint64 `json:"expired"`
}

// DestinationStats are the exact counts of one destination since its creation.
type DestinationStats struct {
	Address  string       `json:"address"`
	Sent     uint64       `json:"sent"`     // accepted messages, including lost ones
	Refused  uint64       `json:"refused"`  // for lack of room
	Unrouted uint64       `json:"unrouted"` // sent to a topic without subscriptions
	Queues   []QueueStats `json:"queues"`
}

// Totals are the counts of all destinations together, deleted ones included.
type Totals struct {
	Destinations int    `json:"destinations"`
	Queues       int    `json:"queues"` // and subscriptions
	Sent         uint64 `json:"sent"`
	Refused      uint64 `json:"refused"`
	Unrouted     uint64 `json:"unrouted"`
	QueueStats
}

// Stats returns the counts of all destinations, in the order of their names. They are exact on an idle broker.
func (s *Store) Stats() []DestinationStats {
	list, _, _ := s.Page(math.MaxInt)
	return list
}

// Page returns the counts of the first limit destinations, in the order of their names, the totals of all destinations,
// and the number of the others.
func (s *Store) Page(limit int) (page []DestinationStats, total Totals, more int) {
	var list []*Destination
	s.mu.RLock()
	total = s.deleted
	s.mu.RUnlock()
	s.each(func(d *Destination) {
		queues := d.queues()
		total.Destinations++
		total.Queues += len(queues)
		total.addCounts(d, queues)
		list = append(list, d)
	})
	slices.SortFunc(list, func(a, b *Destination) int {
		return cmp.Or(cmp.Compare(a.addr.Kind, b.addr.Kind), strings.Compare(a.addr.Name, b.addr.Name))
	})
	n := min(limit, len(list))
	page = make([]DestinationStats, 0, n)
	for _, d := range list[:n] {
		page = append(page, d.Stats())
	}
	return page, total, len(list) - n
}

func (t *Totals) addCounts(d *Destination, queues []*Queue) {
	t.Sent += d.sent.Load()
	t.Refused += d.refused.Load()
	t.Unrouted += d.unrouted.Load()
	for _, q := range queues {
		s := q.Stats()
		t.Consumers += s.Consumers
		t.Depth += s.Depth
		t.Bytes += s.Bytes
		t.Stored += s.Stored
		t.Delivered += s.Delivered
		t.Redelivered += s.Redelivered
		t.Settled += s.Settled
		t.Returned += s.Returned
		t.Rejected += s.Rejected
		t.Expired += s.Expired
	}
}

// Stats returns the counts of one destination.
func (d *Destination) Stats() DestinationStats {
	s := DestinationStats{
		Address: d.addr.String(), Sent: d.sent.Load(), Refused: d.refused.Load(), Unrouted: d.unrouted.Load(),
	}
	for _, q := range d.queues() {
		s.Queues = append(s.Queues, q.Stats())
	}
	slices.SortFunc(s.Queues, func(a, b QueueStats) int { return cmp.Compare(a.Subscription, b.Subscription) })
	return s
}

// Stats returns the counts of one queue.
func (q *Queue) Stats() QueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.counts
	s.Subscription = q.name
	s.Consumers, s.Depth, s.Bytes, s.Settled = len(q.consumers), q.size.Load(), q.bytes.Load(), q.accepted.Load()
	return s
}
