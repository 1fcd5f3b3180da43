package mem

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Broker is an in-process broker. Its methods are safe for concurrent use. Times are durations since it was made.
type Broker struct {
	epoch time.Time

	mu           sync.Mutex // guards all that follows, destinations, lines, connections, producers, consumers
	changed      *sync.Cond // something may have ended a wait; consumers without messages wait for [queue.arrived]
	options      Options
	pinned       bool // options were set by Set
	told         bool // there are faults, or there is a stall
	breaks       bool // connections are to break, by Options.DisconnectAfter
	arrived      int  // messages since the options were set, likewise the next two
	stored       int
	commits      int
	stallFrom    time.Duration
	stallUntil   time.Duration
	stats        Stats
	destinations map[driver.Destination]*destination
	lines        map[string]*Line // by host
	conns        map[*conn]struct{}
	producers    map[*producer]struct{}
}

// New returns an empty broker without faults.
func New() *Broker {
	b := &Broker{
		epoch: time.Now(), destinations: map[driver.Destination]*destination{}, lines: map[string]*Line{},
		conns: map[*conn]struct{}{}, producers: map[*producer]struct{}{},
	}
	b.changed = sync.NewCond(&b.mu)
	return b
}

func (b *Broker) now() time.Duration { return time.Since(b.epoch) }

// until returns the time that something due at a time, 0 for at once, has to wait, the stall included.
func (b *Broker) until(due time.Duration) time.Duration {
	if due == 0 && b.stallUntil == 0 {
		return 0
	}
	now := b.now()
	due = max(due, now)
	if due >= b.stallFrom && due < b.stallUntil {
		due = b.stallUntil
	}
	return due - now
}

// locked returns a function that calls f with the lock.
func (b *Broker) locked(f func()) func() {
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		f()
	}
}

// wait waits for a change, until ctx ends, and for a time at most unless that is 0.
func (b *Broker) wait(ctx context.Context, most time.Duration) {
	defer context.AfterFunc(ctx, b.locked(b.changed.Broadcast))()
	if most > 0 {
		defer time.AfterFunc(most, b.locked(b.changed.Broadcast)).Stop()
	}
	b.changed.Wait()
}

// wakeAll lets everything that waits look again.
func (b *Broker) wakeAll() {
	b.changed.Broadcast()
	for _, d := range b.destinations {
		for _, q := range d.queues {
			q.arrived.Broadcast()
		}
	}
	for p := range b.producers {
		p.settle()
	}
}

// Set replaces the faults, at once and for all connections. It resets the counting of "every n-th" and ends a stall.
// From then on the options of drivers are ignored. It returns the mistakes in o, and then changes nothing.
func (b *Broker) Set(o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pinned = true
	b.set(o)
	return nil
}

func (b *Broker) set(o Options) {
	b.options, b.told = o, o != Options{Auth: o.Auth}
	b.arrived, b.stored, b.commits, b.stallFrom, b.stallUntil = 0, 0, 0, 0, 0
	b.wakeAll()
}

// Stall begins a stall now: for the time d nothing is accepted, acknowledged or delivered. It replaces any other stall.
// [Broker.Set] ends it.
func (b *Broker) Stall(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told, b.stallFrom, b.stallUntil = true, b.now(), b.now()+d
}

// destination returns the destination of that name, and creates it if need be.
func (b *Broker) destination(name driver.Destination) *destination {
	d := b.destinations[name]
	if d == nil {
		d = &destination{Broker: b}
		if name.Kind == driver.Queue {
			d.add(&queue{})
		}
		b.destinations[name] = d
	}
	return d
}

// Stats are the broker's true counts since it was made.
type Stats struct {
	Arrived uint64 // sends that returned nil
	Stored  uint64 // part of Arrived for which the broker took responsibility, including lost and withheld messages

	// How sends ended; the sum is Arrived once all producers are closed.
	Accepted, Rejected, Released, Modified, Failed, Unknown uint64

	Withheld   uint64 // part of Stored, never acknowledged
	Lost       uint64 // part of Stored, dropped by a fault
	Duplicated uint64 // extra copies by a fault, counted once per message
	Reordered  uint64 // messages overtaken by the next one
	Damaged    uint64 // part of Stored, with a flipped bit in the body
	DamagedIDs uint64 // part of Stored, with a flipped bit in the number
	RolledBack uint64 // part of Accepted, never stored, as the producer was told

	Delivered    uint64 // calls of deliver
	Redelivered  uint64 // part of Delivered, marked as redelivered
	Acknowledged uint64 // part of Delivered, settled
	Refused      uint64 // part of Delivered, rejected by consumers: dropped
	Expired      uint64 // messages dropped because of their time to live

	Commits        uint64 // confirmed transactions of producers and consumers
	CommitsRefused uint64 // transactions rolled back

	// Present values:
	Backlog                           uint64 // messages in queues and subscriptions
	Subscriptions                     uint64 // of topics
	Producers, Consumers, Connections uint64
}

// ended counts the end of n sends.
func (s *Stats) ended(state driver.State, n int) {
	*[driver.NumStates]*uint64{
		&s.Accepted, &s.Rejected, &s.Released, &s.Modified, &s.Failed, &s.Unknown,
	}[state] += uint64(n) //nolint:gosec // a count
}

// Stats returns the counts up to now.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Connections, s.Producers = uint64(len(b.conns)), uint64(len(b.producers))
	for name, d := range b.destinations {
		for _, q := range d.queues {
			s.Backlog += uint64(len(q.items.list()))
			s.Consumers += uint64(len(q.members))
		}
		if name.Kind == driver.Topic {
			s.Subscriptions += uint64(len(d.queues))
		}
		if d.held != nil {
			s.Backlog++
		}
	}
	return s
}

// Subscriptions returns the number of subscriptions that a topic has.
func (b *Broker) Subscriptions(topic string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.destination(driver.Destination{Kind: driver.Topic, Name: topic}).queues)
}

// Tap returns a function that returns all messages put into a destination from now on.
func (b *Broker) Tap(dest driver.Destination) func() []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, seen := b.destination(dest), &[]Message{}
	d.taps = append(d.taps, seen)
	return func() []Message {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.Clone(*seen)
	}
}

// inspect returns the counters of a destination.
func (b *Broker) inspect(dest driver.Destination) driver.DestinationCount {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := driver.NoDestination()
	if d := b.destinations[dest]; d != nil {
		n.Added.N, n.Acknowledged = d.added, driver.Count{}
		for _, q := range d.queues {
			n.Depth.N += uint64(len(q.items.list()))
			n.Consumers.N += uint64(len(q.members))
			for _, c := range q.members {
				n.Depth.N += uint64(c.unsettled) //nolint:gosec // not below 0
			}
		}
	}
	return n
}
