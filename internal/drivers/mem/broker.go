package mem

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Broker is an in-process broker. Its methods are safe for concurrent use.
type Broker struct {
	epoch  time.Time
	faults atomic.Pointer[faults] // nil without faults

	mu           sync.Mutex // taken before the lock of a destination or producer, never inside
	options      Options
	pinned       bool // options were set by Set
	destinations map[driver.Destination]*destination
	conns        map[*conn]struct{}
	lines        map[string]*Line // by host
	producers    map[*producer]struct{}
}

// New returns an empty broker without faults.
func New() *Broker {
	return &Broker{
		epoch: time.Now(), options: DefaultOptions(), destinations: map[driver.Destination]*destination{},
		conns: map[*conn]struct{}{}, lines: map[string]*Line{}, producers: map[*producer]struct{}{},
	}
}

// now returns nanoseconds since the broker was made, above zero.
func (b *Broker) now() int64 { return int64(time.Since(b.epoch)) + 1 }

// Set replaces the faults, at once and for all connections. It resets the counting of "every n-th" and the clock of the
// stall. From then on the options of drivers are ignored. It returns the mistakes in o, and then changes nothing.
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

// apply sets o as a driver's own options, unless they are the defaults or in force already.
func (b *Broker) apply(o Options) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.pinned && o != DefaultOptions() && o != b.options {
		b.set(o)
	}
}

func (b *Broker) set(o Options) {
	b.options = o
	var f *faults
	if o != DefaultOptions() {
		f = newFaults(o)
	}
	if old := b.faults.Swap(f); old != nil {
		close(old.replaced)
	}
	for p := range b.producers {
		p.schedule()
	}
}

// Options returns the faults in force.
func (b *Broker) Options() Options {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.options
}

// Stall begins a stall now: for the time d nothing is accepted, acknowledged or delivered. It replaces any other stall.
// [Broker.Set] ends it.
func (b *Broker) Stall(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.faults.Load()
	if f == nil {
		f = newFaults(b.options)
		b.faults.Store(f)
	}
	now := b.now()
	f.stall(now, now+int64(d))
}

// wait returns how long something due at a time, 0 for at once, has to wait, stalls included, and what may end the wait
// before: other faults.
func (b *Broker) wait(due int64) (d time.Duration, replaced chan struct{}) {
	f := b.faults.Load()
	if f == nil && due == 0 {
		return 0, nil
	}
	now := b.now()
	due = max(now, due)
	if f != nil {
		due, replaced = f.afterStall(due), f.replaced
	}
	return time.Duration(due - now), replaced
}

// destination returns the destination of that name, and creates it if need be. b.mu is held.
func (b *Broker) destination(name driver.Destination) *destination {
	d := b.destinations[name]
	if d == nil {
		d = &destination{}
		if name.Kind == driver.Queue {
			d.queues = []*queue{{dest: d, permanent: true}}
		}
		b.destinations[name] = d
	}
	return d
}

// Stats are the broker's true counts since it was made. They are exact when nothing is being sent or received; under
// load, related counts can differ by the messages in flight.
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
	CommitsRefused uint64 // transactions rolled back, by a fault or because a queue was full

	// Present values:
	Backlog                           uint64 // messages in queues and subscriptions
	Subscriptions                     uint64 // of topics
	Producers, Consumers, Connections uint64
}

// count adds to a count of a destination.
func count[N int | int64](to *uint64, n N) { atomic.AddUint64(to, uint64(n)) }

// ended counts the end of n sends.
func (s *Stats) ended(state driver.State, n int) {
	count([driver.NumStates]*uint64{&s.Accepted, &s.Rejected, &s.Released, &s.Modified, &s.Failed, &s.Unknown}[state], n)
}

// Stats returns the counts up to now.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{Connections: uint64(len(b.conns)), Producers: uint64(len(b.producers))}
	sum := reflect.ValueOf(&s).Elem()
	for _, d := range b.destinations {
		d.mu.Lock()
		counts := reflect.ValueOf(&d.stats).Elem()
		for i := range counts.NumField() {
			n, _ := counts.Field(i).Addr().Interface().(*uint64)
			sum.Field(i).SetUint(sum.Field(i).Uint() + atomic.LoadUint64(n))
		}
		for _, q := range d.queues {
			s.Backlog += uint64(q.items.len())
			s.Consumers += uint64(len(q.members))
			if !q.permanent {
				s.Subscriptions++
			}
		}
		if d.held != nil {
			s.Backlog++
		}
		d.mu.Unlock()
	}
	return s
}

// Subscriptions returns how many subscriptions a topic has.
func (b *Broker) Subscriptions(topic string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.destination(driver.Destination{Kind: driver.Topic, Name: topic})
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queues)
}

// Message is a message as the broker stores it.
type Message struct {
	Time       int64
	ID         driver.ID
	Body       []byte
	Properties []driver.Property
	Group      string
	Priority   int // 0 to 9
	Persistent bool
	Text       bool
	TTL        time.Duration // 0: never expires
}

// Tap sees all messages that are stored at a destination, consumed or not. Its methods are safe for concurrent use.
type Tap struct {
	mu   sync.Mutex
	seen []Message
}

// Tap begins to watch a destination. It never stops: it is for tests.
func (b *Broker) Tap(dest driver.Destination) *Tap {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.destination(dest)
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &Tap{}
	d.taps = append(d.taps, t)
	return t
}

// Messages returns the messages seen so far, in the order of arrival.
func (t *Tap) Messages() []Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.seen)
}
