package store

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// ParseAddress parses an address with a prefix: queue://NAME, topic://NAME, /queue/NAME or /topic/NAME. Without one of
// these, the whole text is the name, and ok is false.
func ParseAddress(text string) (a driver.Destination, ok bool) {
	for _, p := range []struct {
		text string
		kind driver.Kind
	}{{"queue://", driver.Queue}, {"/queue/", driver.Queue}, {"topic://", driver.Topic}, {"/topic/", driver.Topic}} {
		if name, ok := strings.CutPrefix(text, p.text); ok {
			return driver.Destination{Kind: p.kind, Name: name}, true
		}
	}
	return driver.Destination{Name: text}, false
}

// Sink receives the messages of a topic: a subscription, or a front-end's own storage.
type Sink interface {
	// Put stores a message. It is safe for concurrent use.
	Put(*Message)
	// Room reports whether there is room for another message.
	Room() bool
}

// Verdict is the result of sending a message.
type Verdict uint8

// The verdicts.
const (
	Stored   Verdict = iota // to be confirmed
	Withheld                // stored, but not to be confirmed: a fault
	Full                    // not stored, for lack of room
)

// Destination is an address with its queue or subscriptions. It is safe for concurrent use.
type Destination struct {
	store    *Store
	addr     driver.Destination
	subs     atomic.Pointer[[]Sink] // of a queue: its one [Queue]
	sent     atomic.Uint64
	refused  atomic.Uint64
	unrouted atomic.Uint64 // messages to a topic without subscriptions

	mu        sync.Mutex // for changes of subs, and for reordered
	reordered map[uint64]*reorderedMessage
}

// reorderedMessage is to be stored after the next message of its source.
type reorderedMessage struct {
	m     *Message
	timer *time.Timer
}

// reorderWait bounds the wait for the next message of the source. At its end the message is delivered in order.
const reorderWait = 100 * time.Millisecond

// Address returns the destination's address.
func (d *Destination) Address() driver.Destination { return d.addr }

// Send applies the faults to m and stores it in all queues of the address. It blocks during a stall. Without
// [Config.Reject] it stores m even beyond the limit, up to an eighth beyond the broker's memory; see
// [Destination.Room].
func (d *Destination) Send(m *Message) Verdict {
	s := d.store
	s.waitForStall()
	if s.overfull() {
		s.reclaimMemory()
	}
	if s.overfull() || s.Rejects() && !d.Room() {
		d.CountRefused(1)
		return Full
	}
	return d.take(m)
}

// WhyFull tells a sender that was refused whether the destination is full or the broker's memory, and in the second
// case which option gives more.
func (d *Destination) WhyFull() string {
	if d.store.Tight() {
		return "the broker's memory is full: --max-memory"
	}
	return d.addr.String() + " is full"
}

// CountRefused counts n messages that were refused for lack of room without Send, as of a transaction.
func (d *Destination) CountRefused(n int) {
	d.refused.Add(uint64(n)) //nolint:gosec // a count
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
	s := d.store
	if f.Work > 0 {
		<-time.After(f.Work)
		s.count(&s.done.Worked, 1)
	}
	n := f.sent.Add(1)
	if every(f.LoseEvery, n) {
		s.count(&s.done.Lost, 1)
	} else {
		d.deliverFaulty(f, d.postpone(f, m), n)
	}
	drop := every(f.DropEvery, n)
	if f := s.onDrop.Load(); drop && f != nil {
		go (*f)()
	}
	if drop || every(f.WithholdEvery, n) {
		s.count(&s.done.Withheld, 1)
		return Withheld
	}
	return Stored
}

// deliverFaulty delivers the n-th message.
func (d *Destination) deliverFaulty(f *faults, m *Message, n uint64) {
	s := d.store
	switch {
	case every(f.DamageEvery, n):
		if len(m.Content.Body()) > 0 {
			m = damaged(m, s.count(&s.done.Damaged, 1))
		}
		d.deliverInTurn(m)
	case every(f.DuplicateEvery, n):
		s.count(&s.done.Duplicated, 1)
		d.deliverInTurn(m)
		d.deliver(m)
	case every(f.ReorderEvery, n):
		d.reorder(m)
	default:
		d.deliverInTurn(m)
	}
}

// postpone applies the faults delay and rate.
func (d *Destination) postpone(f *faults, m *Message) *Message {
	if len(*d.subs.Load()) == 0 {
		return m
	}
	s := d.store
	at := f.notBefore()
	if f.Rate > 0 {
		s.count(&s.done.Served, 1)
	}
	if at <= m.NotBefore {
		return m
	}
	if f.Delay > 0 {
		s.count(&s.done.Delayed, 1)
	}
	later := *m
	later.NotBefore = at
	return &later
}

// deliver stores m in all subscriptions.
func (d *Destination) deliver(m *Message) {
	subs := *d.subs.Load()
	if len(subs) == 0 {
		d.unrouted.Add(1)
	}
	for _, s := range subs {
		s.Put(m)
	}
}

// reorder keeps m until after the next message of its source. An earlier reordered message of the source goes first.
func (d *Destination) reorder(m *Message) {
	d.release(m.Source, false)
	h := &reorderedMessage{m: m}
	d.mu.Lock()
	if d.reordered == nil {
		d.reordered = map[uint64]*reorderedMessage{}
	}
	d.reordered[m.Source] = h
	h.timer = time.AfterFunc(reorderWait, func() {
		d.mu.Lock()
		waits := d.reordered[m.Source] == h
		d.mu.Unlock()
		if waits {
			d.release(m.Source, false)
		}
	})
	d.mu.Unlock()
}

// deliverInTurn delivers m and then a reordered message of its source.
func (d *Destination) deliverInTurn(m *Message) {
	d.deliver(m)
	d.release(m.Source, true)
}

// release delivers the reordered message of a source; overtaken means after another message.
func (d *Destination) release(source uint64, overtaken bool) {
	d.mu.Lock()
	h := d.reordered[source]
	delete(d.reordered, source)
	d.mu.Unlock()
	if h == nil {
		return
	}
	h.timer.Stop()
	if overtaken {
		d.store.count(&d.store.done.Reordered, 1)
	}
	d.deliver(h.m)
}

// Room reports whether the destination has room.
func (d *Destination) Room() bool {
	for _, s := range *d.subs.Load() {
		if !s.Room() {
			return false
		}
	}
	return true
}

// RoomPause is the time between two checks for room. Nothing notifies those that wait for it: room comes also by
// expiry, by the end of a claim, by memory freed elsewhere, and with the end of a fault.
const RoomPause = 5 * time.Millisecond

// Attach adds a sink to a topic, for messages sent from now on; detach removes it.
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

func (d *Destination) notifyAll() {
	for _, q := range d.queues() {
		q.notifyConsumers()
	}
}

// Transaction holds the messages of a client until their commit. It is for one goroutine.
type Transaction struct {
	// Failed means that a bound was exceeded: the transaction holds nothing and is not to be committed.
	Failed bool
	Held   int64 // bytes

	account *Account
	sends   []*Message
	to      []*Destination // of each of sends
	acks    []ack
}

// ack is the end of deliveries of a consumer at the commit.
type ack struct {
	c           *Consumer
	first, last uint64
	outcome     Outcome
}

// ackSize is the accounted size of an ack, in bytes.
const ackSize = 64

// maxTransaction bounds an uncommitted transaction, in bytes.
const maxTransaction = 64 << 20

// Begin begins a transaction of the client.
func (a *Account) Begin() Transaction { return Transaction{account: a} }

// Hold accounts for bytes of the transaction, until its end. It returns false for a transaction that has failed.
func (t *Transaction) Hold(bytes int64) bool {
	if t.Failed || t.Held+bytes > maxTransaction || !t.account.Take(bytes) {
		t.Return()
		t.Failed = true
		return false
	}
	t.Held += bytes
	return true
}

// Send keeps a message until the commit. It returns false as Hold does.
func (t *Transaction) Send(d *Destination, m *Message) bool {
	if !t.Hold(m.size()) {
		return false
	}
	t.sends, t.to = append(t.sends, m), append(t.to, d)
	return true
}

// Settle ends the deliveries from first to last at the commit. It returns false as Hold does.
func (t *Transaction) Settle(c *Consumer, first, last uint64, o Outcome) bool {
	if !t.Hold(ackSize) {
		return false
	}
	t.acks = append(t.acks, ack{c, first, last, o})
	return true
}

// Orphaned reports whether a consumer of the deliveries to be settled has ended.
func (t *Transaction) Orphaned() bool {
	return slices.ContainsFunc(t.acks, func(a ack) bool {
		a.c.mu.Lock()
		defer a.c.mu.Unlock()
		return a.c.closed
	})
}

// WithoutRoom returns a destination of the messages that has no room, or nil.
func (t *Transaction) WithoutRoom() *Destination {
	if i := slices.IndexFunc(t.to, func(d *Destination) bool { return !d.Room() }); i >= 0 {
		return t.to[i]
	}
	return nil
}

// Commit sends all messages, settles all deliveries that were not settled since, and ends the transaction. With
// [Config.Reject], if one of the destinations has no room, it sends none, counts all as refused, returns the
// deliveries, and returns the destination. withheld means that the fault withholds the confirmation.
func (t *Transaction) Commit() (withheld bool, full *Destination) {
	defer t.End()
	if len(t.to) > 0 && t.to[0].store.Rejects() {
		if full = t.WithoutRoom(); full != nil {
			for _, d := range t.to {
				d.CountRefused(1)
			}
			t.Return()
			return false, full
		}
	}
	for i, m := range t.sends {
		d := t.to[i]
		d.store.waitForStall()
		// Even if the room was used since: a part of the transaction may be stored already.
		withheld = d.take(m) == Withheld || withheld
	}
	for _, a := range t.acks {
		a.c.settle(a.first, a.last, a.outcome)
	}
	return withheld, nil
}

// Return returns the deliveries to be settled, as after failed attempts, and ends the transaction.
func (t *Transaction) Return() {
	for _, a := range t.acks {
		a.c.settle(a.first, a.last, Failed)
	}
	t.End()
}

// End discards the messages and settlements not committed.
func (t *Transaction) End() {
	t.account.Give(t.Held)
	t.sends, t.to, t.acks, t.Held = nil, nil, nil, 0
}

// Product is the name of the broker in all protocols.
const Product = "perfmq embedded broker"

// Message is a message in the store. It is immutable once sent, including the data that it points to.
type Message struct {
	Content Content
	// Source identifies the producer (a link, a connection): messages of one source are ordered, and the fault reorder
	// swaps two of them.
	Source uint64
	// Priority is 0 (lowest) to 9; 4 is normal.
	Priority uint8
	// Durable is only passed on: the store is in memory.
	Durable bool
	// Group binds the message to the consumer of the group's first message; empty for none.
	Group string
	// Expires is in milliseconds since the Unix epoch; 0 for never.
	Expires int64
	// NotBefore is the earliest delivery, in nanoseconds since the Unix epoch; 0 for at once.
	NotBefore int64
}

// Content is a message in the encoding of its protocol. The front-end of that protocol recognises the type and passes
// the encoding on; the others use this neutral interface.
type Content interface {
	// Size is the approximate memory, in bytes.
	Size() int
	// Body is the payload. It must not be changed.
	Body() []byte
	// Text reports a text body (a TextMessage in JMS): a string in AMQP, a SEND frame without content-length in STOMP,
	// a CONTENT_TYPE of text/... in RocketMQ.
	Text() bool
	// Properties are the application's, with unique keys; each call may decode them again.
	Properties() []Property
	// Property returns one of them, or nil, without decoding the rest.
	Property(key string) any
	// WithBody returns a copy with another body of the same length.
	WithBody(body []byte) Content
	// Addressing returns IDs and the address for replies.
	Addressing() Addressing
}

// Addressing is what relates messages to each other. Each text may be empty.
type Addressing struct {
	MessageID, CorrelationID string
	// ReplyTo is an address as [ParseAddress] reads it.
	ReplyTo string
}

// Property is one application property.
type Property struct {
	Key   string
	Value any // string, bool, int64, float64, []byte, or uint64 beyond int64
}

// Text formats the value of a property for protocols with text properties only: bytes in base64.
func Text(value any) string {
	switch x := value.(type) {
	case string:
		return x
	case []byte:
		return base64.StdEncoding.EncodeToString(x)
	}
	return fmt.Sprint(value)
}

// Lookup returns the value of a property, or nil.
func Lookup(list []Property, key string) any {
	for i := range list {
		if list[i].Key == key {
			return list[i].Value
		}
	}
	return nil
}

// Expired reports whether the message has expired. now is in milliseconds since the Unix epoch; 0 is replaced by
// the time when it is needed.
func (m *Message) Expired(now *int64) bool {
	if m.Expires == 0 {
		return false
	}
	if *now == 0 {
		*now = time.Now().UnixMilli()
	}
	return m.Expires <= *now
}

const priorities = 10

// size is the accounted size of a message, in bytes.
func (m *Message) size() int64 { return int64(m.Content.Size()) + MessageSize }

// MessageSize is the accounted size of a message without its content, in bytes: an estimate.
const MessageSize = 256
