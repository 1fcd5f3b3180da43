package mem

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Broker is an in-process broker. Its methods are safe for concurrent use.
type Broker struct {
	epoch  time.Time
	faults atomic.Pointer[faults] // nil without faults

	mu           sync.Mutex // taken before the lock of a destination, never inside
	options      Options
	pinned       bool // options were set by Set
	destinations map[driver.Destination]*destination
	conns        map[*conn]struct{}
	lines        map[string]*Line    // by host
	tallies      map[*tally]struct{} // of open producers and consumers
	past         [numCounters]uint64 // of closed producers and consumers
	purged       uint64
	producers    int
	consumers    int
}

// New returns an empty broker without faults.
func New() *Broker {
	return &Broker{
		epoch: time.Now(), options: DefaultOptions(), destinations: map[driver.Destination]*destination{},
		conns: map[*conn]struct{}{}, lines: map[string]*Line{}, tallies: map[*tally]struct{}{},
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
