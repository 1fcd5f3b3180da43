package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is the kind of an address.
type Kind uint8

// The kinds of addresses. The same name may be used for one of each; they have nothing to do with each other.
const (
	KindQueue Kind = iota // each message goes to one consumer
	KindTopic             // each message goes to every subscription
)

// Address names a destination.
type Address struct {
	Kind Kind
	Name string
}

// String returns queue://NAME or topic://NAME.
func (a Address) String() string {
	if a.Kind == KindTopic {
		return "topic://" + a.Name
	}
	return "queue://" + a.Name
}

// Sink receives the messages of a topic: it is a subscription, or was attached by a front-end.
type Sink interface {
	// Put takes over a message; it is called by many goroutines.
	Put(*Message)
	// Room is as [Queue.Room].
	Room(notify func()) bool
}

// Verdict is the result of sending a message.
type Verdict uint8

// The verdicts.
const (
	Stored   Verdict = iota // confirm it
	Withheld                // stored, but by request never to be confirmed
	Full                    // not stored: there is no room, and the broker rejects rather than blocks
)

// Destination is an address with its queue or subscriptions. It is safe for concurrent use.
type Destination struct {
	store   *Store
	addr    Address
	subs    atomic.Pointer[[]Sink] // a queue has its one Queue here
	sent    atomic.Uint64
	refused atomic.Uint64
	nobody  atomic.Uint64 // messages to a topic without subscription
	gone    atomic.Bool   // deleted

	mu   sync.Mutex // for changes of subs, and for held
	held map[uint64]*heldBack
}

// heldBack is a message that waits for the next one of its source, to be stored after it.
type heldBack struct {
	m     *Message
	timer *time.Timer
}

// reorderWait is how long a message is held back if no other one follows. It then was not reordered.
const reorderWait = 100 * time.Millisecond

// Address returns the address that was given to [Store.Destination].
func (d *Destination) Address() Address { return d.addr }

// Gone tells whether the destination was deleted. Messages sent to it then are lost: a holder has to ask the
// store anew.
func (d *Destination) Gone() bool { return d.gone.Load() }

// Send stores m in all queues behind the address, or applies the faults to it. It waits while the broker is stalled.
// When the broker blocks rather than rejects, it stores m even beyond the limit: look at Room before taking more from
// senders. There is an end to that, too: messages are refused where senders, all together, were given
// leave for an eighth more than the broker's memory.
func (d *Destination) Send(m *Message) Verdict {
	s := d.store
	s.stall.await()
	d = d.current()
	if s.overfull() || s.cfg.Full == Reject && !d.Room(nil) {
		d.refused.Add(1)
		s.CountFull(1)
		return Full
	}
	return d.take(m)
}

// Commit is Send for a message of a transaction, for all of which its sender has found Room: it is stored even if
// others have taken that room since, because a part of the transaction may be stored already. It never returns
// [Full].
func (d *Destination) Commit(m *Message) Verdict {
	d.store.stall.await()
	return d.current().take(m)
}

// current returns the destination that has the address now, if it is a topic: a deleted topic may have been made anew,
// and its subscriptions must get the messages of senders that still hold the old one.
func (d *Destination) current() *Destination {
	if d.addr.Kind == KindTopic && d.gone.Load() {
		return d.store.Destination(d.addr)
	}
	return d
}

func (d *Destination) take(m *Message) Verdict {
	d.sent.Add(1)
	f := d.store.faults.Load()
	if f == nil {
		d.deliver(m)
		return Stored
	}
	return d.sendFaulty(f, m)
}

func (d *Destination) sendFaulty(f *faults, m *Message) Verdict {
	c := &d.store.counters
	f.work(c)
	what, withhold, drop := f.judge()
	if what != lose {
		m = d.postpone(f, m)
	}
	switch what {
	case lose:
		c.lost.Add(1)
	case damage:
		if len(m.Content.Body()) > 0 {
			m = damaged(m, c.damaged.Add(1))
		}
		d.deliverInTurn(m)
	case duplicate:
		c.duplicated.Add(1)
		d.deliverInTurn(m)
		d.deliver(m)
	case reorder:
		d.holdBack(m)
	default:
		d.deliverInTurn(m)
	}
	if drop {
		d.store.dropAll()
		withhold = true
	}
	if withhold {
		c.withheld.Add(1)
		return Withheld
	}
	return Stored
}

// postpone returns m as it is to be stored by a broker that delays messages or serves them at a rate.
func (d *Destination) postpone(f *faults, m *Message) *Message {
	if len(*d.subs.Load()) == 0 {
		return m
	}
	c := &d.store.counters
	at := f.notBefore()
	if f.Rate > 0 {
		c.served.Add(1)
	}
	if at <= m.NotBefore {
		return m
	}
	if f.Delay > 0 {
		c.delayed.Add(1)
	}
	later := *m
	later.NotBefore = at
	return &later
}

// deliver hands m to all subscriptions.
func (d *Destination) deliver(m *Message) {
	subs := *d.subs.Load()
	if len(subs) == 0 {
		d.nobody.Add(1)
	}
	for _, s := range subs {
		s.Put(m)
	}
}

// holdBack keeps m until the next message of its source. One that is already held back goes first.
func (d *Destination) holdBack(m *Message) {
	d.release(m.Source, false)
	h := &heldBack{m: m}
	d.mu.Lock()
	if d.held == nil {
		d.held = map[uint64]*heldBack{}
	}
	d.held[m.Source] = h
	h.timer = time.AfterFunc(reorderWait, func() {
		d.mu.Lock()
		mine := d.held[m.Source] == h
		d.mu.Unlock()
		if mine {
			d.release(m.Source, false)
		}
	})
	d.mu.Unlock()
}

// deliverInTurn delivers m and then the message that was held back for it.
func (d *Destination) deliverInTurn(m *Message) {
	d.deliver(m)
	d.release(m.Source, true)
}

// release delivers the message of a source that is held back; overtaken tells that another message has gone before it.
func (d *Destination) release(source uint64, overtaken bool) {
	d.mu.Lock()
	h := d.held[source]
	delete(d.held, source)
	d.mu.Unlock()
	if h == nil {
		return
	}
	h.timer.Stop()
	if overtaken {
		d.store.counters.reordered.Add(1)
	}
	d.deliver(h.m)
}

// letGo releases all that is held back.
func (d *Destination) letGo() {
	d.mu.Lock()
	var sources []uint64
	for s := range d.held {
		sources = append(sources, s)
	}
	d.mu.Unlock()
	for _, s := range sources {
		d.release(s, false)
	}
}

// Room tells whether the destination takes messages. If not, notify (unless it is nil) is called, once, when it may
// again: ask again then.
func (d *Destination) Room(notify func()) bool {
	for _, s := range *d.subs.Load() {
		if !s.Room(notify) {
			return false
		}
	}
	return true
}

// Attach adds a sink to a topic; messages sent from now on go to it as well. detach takes it off again.
func (d *Destination) Attach(s Sink) (detach func()) {
	d.change(func(subs []Sink) []Sink { return append(subs, s) })
	return func() {
		d.change(func(subs []Sink) []Sink { return slices.DeleteFunc(subs, func(x Sink) bool { return x == s }) })
	}
}

func (d *Destination) change(f func([]Sink) []Sink) {
	d.mu.Lock()
	defer d.mu.Unlock()
	subs := f(slices.Clone(*d.subs.Load()))
	d.subs.Store(&subs)
}

func (d *Destination) queues() (list []*Queue) {
	for _, s := range *d.subs.Load() {
		if q, ok := s.(*Queue); ok {
			list = append(list, q)
		}
	}
	return list
}

func (d *Destination) tellAll() {
	for _, q := range d.queues() {
		q.tellAll()
		q.room.Tell()
	}
}

func (d *Destination) tellRoom() {
	for _, s := range *d.subs.Load() {
		if t, ok := s.(roomTeller); ok {
			t.TellRoom()
		}
	}
}

// Put implements [Sink].
func (q *Queue) Put(m *Message) { q.put(m) }
