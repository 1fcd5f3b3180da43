package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Broker is an in-process broker. Its methods are safe for concurrent use. Times are durations since it was made.
type Broker struct {
	// OnStore is called with the lock for each message that a destination gets. It is set before the first one.
	OnStore func(driver.Destination, Message)

	epoch time.Time

	mu      sync.Mutex // guards all that follows, destinations, lines, connections, producers, consumers
	changed *sync.Cond // something may have ended a wait; consumers without messages wait for [queue.arrived]
	options Options
	told    bool // there are faults, or there is a stall

	arrived, stored, commits int // since the options were set
	connects                 int // connections asked for since then
	stallFrom, stallUntil    time.Duration

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

// wakeAll lets everything that waits look again, and forgets lost connections.
func (b *Broker) wakeAll() {
	maps.DeleteFunc(b.conns, func(c *conn, _ struct{}) bool { return c.lost })
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
func (b *Broker) Set(o Options) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(o)
}

func (b *Broker) set(o Options) {
	b.options, b.told = o, o != Options{
		Auth: o.Auth, Connect: o.Connect, Login: o.Login, Attach: o.Attach, Close: o.Close,
		RefuseOpen: o.RefuseOpen, SilentOpen: o.SilentOpen, MostOpen: o.MostOpen,
	}
	b.connects = 0
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
		d = &destination{Broker: b, name: name}
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

	Ended [driver.NumStates]uint64 // sends by their end; the sum is Arrived once all producers are closed

	Withheld   uint64 // part of Stored, never acknowledged
	Lost       uint64 // part of Stored, dropped by a fault
	Late       uint64 // part of Stored, delivered late by a fault
	Duplicated uint64 // extra copies by a fault, counted once per message
	Reordered  uint64 // messages overtaken by the next one
	Damaged    uint64 // part of Stored, with a flipped bit in the body
	DamagedIDs uint64 // part of Stored, with a flipped bit in the number
	RolledBack uint64 // part of Accepted, never stored, as the producer was told

	Delivered    uint64 // calls of deliver
	Redelivered  uint64 // part of Delivered, marked as redelivered
	Acknowledged uint64 // part of Delivered, settled
	Refused      uint64 // part of Delivered, rejected by consumers: dropped

	Commits        uint64 // confirmed transactions of producers and consumers
	CommitsRefused uint64 // transactions rolled back

	// Present values:
	Backlog     uint64 // messages in queues and subscriptions
	Connections uint64
}

// Stats returns the counts up to now.
func (b *Broker) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Connections = uint64(len(b.conns))
	for _, d := range b.destinations {
		s.Backlog += d.waiting()
	}
	return s
}

// Subscriptions returns the number of subscriptions of a topic.
func (b *Broker) Subscriptions(topic string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.destination(driver.Destination{Kind: driver.Topic, Name: topic}).queues)
}

// inspect returns the counters of a destination.
func (b *Broker) inspect(dest driver.Destination) driver.DestinationCount {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := driver.NoDestination()
	if d := b.destinations[dest]; d != nil {
		n.Added.N, n.Acknowledged, n.Depth.N = d.added, driver.Count{}, d.waiting()
		for _, q := range d.queues {
			n.Consumers.N += uint64(len(q.members))
			for _, c := range q.members {
				n.Depth.N += uint64(c.unsettled) //nolint:gosec // not below 0
			}
		}
	}
	return n
}

// Options are the faults of a broker, all off in the zero value. "Every n-th" is off at 0. A driver opened with other
// options sets them for the whole broker.
type Options struct {
	Latency         time.Duration `opt:"latency" help:"delay of answers"`
	DeliveryLatency time.Duration `opt:"delivery-latency" help:"delay of deliveries"`

	StallAfter time.Duration `opt:"stall-after" help:"start of the stall"`
	StallFor   time.Duration `opt:"stall-for" help:"length of the stall"`

	Lose      int `opt:"lose" help:"lose every n-th message"`
	Duplicate int `opt:"duplicate" help:"deliver every n-th message twice"`
	Reorder   int `opt:"reorder" help:"swap every n-th message and the next"`

	Damage   int `opt:"damage" help:"damage every n-th body"`
	DamageID int `opt:"damage-id" help:"damage every n-th ID"`
	Rollback int `opt:"rollback" help:"roll back every n-th message"`

	Reject   int `opt:"reject" help:"reject every n-th message"`
	Release  int `opt:"release" help:"release every n-th message"`
	Modify   int `opt:"modify" help:"modify every n-th message"`
	Fail     int `opt:"fail" help:"fail every n-th message"`
	Withhold int `opt:"withhold" help:"never confirm every n-th message"`

	FailCommit int `opt:"fail-commit" help:"refuse every n-th commit"`
	Limit      int `opt:"limit" help:"messages per queue; 0: any"`

	// Of OnlyReplies, all of these but Auth and the stall concern only the messages of anonymous producers.
	OnlyReplies bool          `opt:"only-replies" help:"faults of replies only"`
	Late        int           `opt:"late" help:"deliver every n-th message late-by later"`
	LateBy      time.Duration `opt:"late-by" help:"delay of late messages"`

	Auth string `opt:"auth" help:"user:password to demand"`

	// The length of each stage of an opening, and of closing.
	Connect time.Duration `opt:"connect" help:"time to connect"`
	Login   time.Duration `opt:"login" help:"time to log in"`
	Attach  time.Duration `opt:"attach" help:"time to attach"`
	Close   time.Duration `opt:"close" help:"time to close"`

	RefuseOpen int `opt:"refuse-open" help:"refuse every n-th connection"`
	SilentOpen int `opt:"silent-open" help:"never answer every n-th connection"`
	MostOpen   int `opt:"most-open" help:"connections at once; 0: any"`
}

// arrive counts a message.
func (b *Broker) arrive() {
	if b.arrived++; b.arrived == 1 && b.options.StallFor > 0 {
		b.stallFrom = b.now() + b.options.StallAfter
		b.stallUntil = b.stallFrom + b.options.StallFor
	}
}

// refuse returns the answer to a message that is not to be stored; to others, the zero value.
func (b *Broker) refuse() driver.Outcome {
	o := &b.options
	for state, n := range [driver.NumStates]int{
		driver.Rejected: o.Reject, driver.Released: o.Release, driver.Modified: o.Modify, driver.Failed: o.Fail,
	} {
		if every(n, b.arrived) {
			return told(driver.State(state)) //nolint:gosec // a state
		}
	}
	if every(o.Rollback, b.arrived) {
		b.stats.RolledBack++
		return driver.Outcome{Withheld: true}
	}
	return driver.Outcome{}
}

// refuseCommit decides on the next commit, and returns when its answer is due.
func (b *Broker) refuseCommit() (refused bool, due time.Duration) {
	b.commits++
	return every(b.options.FailCommit, b.commits), b.now() + b.options.Latency
}

// committed counts and reports the end of a transaction.
func (b *Broker) committed(report driver.Commits, began time.Time, confirmed bool) {
	if confirmed {
		b.stats.Commits++
	} else {
		b.stats.CommitsRefused++
	}
	if report != nil {
		report(time.Since(began), confirmed)
	}
}

// storeFaulty stores a message with at most one fault, the first in this order.
func (p *producer) storeFaulty(it *Message) {
	o, s := &p.options, &p.stats
	p.stored++
	s.Stored++
	if o.DeliveryLatency > 0 {
		it.due = p.now() + o.DeliveryLatency
	}
	if every(o.Late, p.stored) {
		s.Late++
		later, dest := *it, p.dest
		time.AfterFunc(o.LateBy, p.locked(func() { dest.put(&later) }))
		return
	}
	switch {
	case every(o.Lose, p.stored):
		s.Lost++
		return
	case every(o.Duplicate, p.stored):
		s.Duplicated++
		again := *it
		again.redelivered = true
		defer p.dest.put(&again)
	case every(o.Reorder, p.stored) && p.dest.held == nil:
		p.dest.held = new(*it)
		return
	case every(o.Damage, p.stored) && len(it.Body) > 0:
		s.Damaged++
		it.Body = slices.Clone(it.Body)
		it.Body[len(it.Body)/2] ^= 1 << 3
	case every(o.DamageID, p.stored) && it.ID != driver.ID{}:
		s.DamagedIDs++
		it.ID.Number ^= 1 << 20
	}
	p.store(it)
}

func every(n, i int) bool { return n > 0 && i%n == 0 }

func told(s driver.State) driver.Outcome {
	return driver.Outcome{State: s, Class: driver.ClassOther, Err: errors.New("the test asked for it")}
}

// Message is a message as the broker stores it.
type Message struct {
	Time int64
	ID   driver.ID
	driver.Variant
	Persistent  bool
	TTL         time.Duration // 0: never expires
	replyTo     string
	correlation []byte
	redelivered bool
	due         time.Duration // earliest delivery; 0 for at once
	expires     time.Duration // 0 for never
}

// fifo is a list with a fast way to remove its head. It never shrinks. The zero value is empty.
type fifo[T any] struct {
	buf  []T
	head int
}

// list returns the elements, for use until the next change.
func (f *fifo[T]) list() []T { return f.buf[f.head:] }

func (f *fifo[T]) insert(i int, v T) {
	if f.head > len(f.buf)/2 && len(f.buf) == cap(f.buf) {
		f.buf, f.head = append(f.buf[:0], f.list()...), 0
	}
	f.buf = slices.Insert(f.buf, f.head+i, v)
}

func (f *fifo[T]) remove(i int) T {
	v := f.list()[i]
	if i > 0 {
		f.buf = slices.Delete(f.buf, f.head+i, f.head+i+1)
	} else if f.head++; f.head == len(f.buf) {
		f.buf, f.head = f.buf[:0], 0
	}
	return v
}

// destination is a queue, or a topic with one queue per subscription.
type destination struct {
	*Broker
	temporary, gone bool // made for a dynamic consumer, which has closed
	name            driver.Destination
	queues          []*queue
	held            *Message // by Options.Reorder, to be overtaken
	added           uint64
}

// queue holds the messages of a queue or of a subscription: messages of higher priority first, messages of equal
// priority in their order. Consumers take from it.
type queue struct {
	dest     *destination
	key      string           // of a subscription that several consumers can have, at once or one after the other
	selector *driver.Property // of the subscription
	durable  bool
	items    fifo[Message]
	groups   map[string]*consumer // the owners of message groups
	members  []*consumer
	arrived  *sync.Cond // there may be a message for a consumer
}

// add adds a queue.
func (d *destination) add(q *queue) *queue {
	q.dest, q.groups, q.arrived = d, map[string]*consumer{}, sync.NewCond(&d.mu)
	d.queues = append(d.queues, q)
	return q
}

// waiting returns how many messages wait in the queues.
func (d *destination) waiting() (n uint64) {
	for _, q := range d.queues {
		n += uint64(len(q.items.list()))
	}
	return n
}

// full reports whether a queue holds as many messages as it may.
func (d *destination) full() bool {
	limit := d.options.Limit
	return limit > 0 && slices.ContainsFunc(d.queues, func(q *queue) bool { return len(q.items.list()) >= limit })
}

// put adds a message to all matching queues.
func (d *destination) put(it *Message) {
	d.added++
	if d.OnStore != nil {
		d.OnStore(d.name, *it)
	}
	for _, q := range d.queues {
		if !selects(q.selector, it) {
			continue
		}
		q.insert(*it, false)
	}
}

// insert adds a message behind those of its priority, or before them.
func (q *queue) insert(it Message, first bool) {
	list := q.items.list()
	i := len(list)
	for i > 0 && (list[i-1].Priority < it.Priority || first && list[i-1].Priority == it.Priority) {
		i--
	}
	q.items.insert(i, it)
	q.arrived.Broadcast()
}

// release puts the held message into the queues, and reports whether there was one.
func (d *destination) release() bool {
	held := d.held
	if d.held = nil; held != nil {
		d.put(held)
	}
	return held != nil
}

// take moves messages to a consumer, as many as it has credit for, but no more than its share.
func (q *queue) take(c *consumer) {
	n := min(c.spec.Credit-c.unsettled, (len(q.items.list())+len(q.members)-1)/max(1, len(q.members)))
	for i := 0; n > 0 && i < len(q.items.list()); {
		if it := &q.items.list()[i]; !selects(c.selector, it) || !q.owns(c, it.Group) {
			i++
			continue
		}
		it := q.items.remove(i)
		c.ahead.insert(len(c.ahead.list()), it)
		c.line.received.Add(int64(len(it.Body)))
		c.unsettled++
		n--
	}
	if len(c.ahead.list()) > 0 {
		q.dest.changed.Broadcast() // there is room
		q.arrived.Broadcast()      // there is something for the consumer's other workers
	}
}

// owns reports whether the messages of a group go to c. A group without an owner is assigned to c.
func (q *queue) owns(c *consumer, group string) bool {
	if group != "" && q.groups[group] == nil {
		q.groups[group] = c
	}
	return group == "" || q.groups[group] == c
}

// giveBack returns messages, in their order, to the head.
func (q *queue) giveBack(redelivered bool, items ...Message) {
	for _, it := range slices.Backward(items) {
		it.redelivered = it.redelivered || redelivered
		q.insert(it, true)
	}
}

// correlationLike is the name of the property that a selector of correlation IDs by their prefix has.
const correlationLike = "JMSCorrelationID LIKE"

// parseSelector reads the supported part of JMS selectors: name = 'value' and JMSCorrelationID LIKE 'prefix%'. It
// returns nil for "", which selects all.
func parseSelector(s string) (*driver.Property, error) {
	if s == "" {
		return nil, nil
	}
	parts := regexp.MustCompile(`^\s*([^ =<>']+)\s*=\s*'([^']*)'\s*$`).FindStringSubmatch(s)
	if prefix := regexp.MustCompile(`^JMSCorrelationID LIKE '([^'%_]*)%'$`).FindStringSubmatch(s); prefix != nil {
		return &driver.Property{Key: correlationLike, Value: prefix[1]}, nil
	}
	if parts == nil {
		return nil, fmt.Errorf("selector %q: only name = 'value' is understood", s)
	}
	return &driver.Property{Key: parts[1], Value: parts[2]}, nil
}

func selects(s *driver.Property, m *Message) bool {
	if s != nil && s.Key == correlationLike {
		return bytes.HasPrefix(m.correlation, []byte(s.Value))
	}
	return s == nil || slices.Contains(m.Properties, *s)
}
