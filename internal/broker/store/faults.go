package store

import (
	"sync"
	"sync/atomic"
	"time"
)

// Faults are the errors that the broker makes on request. The zero value is a faultless broker. "Every" n counts the
// messages sent to the broker since the faults were set, all destinations together: n, 2n, 3n ... A message gets one
// of lose, damage, duplicate, reorder at most, in this order of precedence; withhold is independent of them, and
// messages that find the broker full are not counted.
type Faults struct {
	LoseEvery      uint64 // accept, and forget
	DamageEvery    uint64 // flip one bit of the body; an empty body is left alone and not counted
	DuplicateEvery uint64 // store twice
	ReorderEvery   uint64 // store after the next message of the same source to the same destination
	WithholdEvery  uint64 // store, but never confirm
	DropEvery      uint64 // break all connections; the n-th message is stored and not confirmed

	Delay  time.Duration // from the send of a message to its delivery
	Rate   uint64        // messages served each second, all destinations together: each waits for its turn to be delivered
	Work   time.Duration // before a message is stored and confirmed; the messages of a connection one after another
	Full   bool          // behave as if every limit were reached
	Refuse bool          // close new connections at once
}

// FaultCounts are how often each fault really happened. Those without a remark are messages.
type FaultCounts struct {
	Lost       uint64 `json:"lost"`
	Damaged    uint64 `json:"damaged"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
	Withheld   uint64 `json:"withheld"` // those included at which connections were broken
	// Delayed are messages that were stored to be delivered later than without the fault. A message that is lost, that
	// had no subscription, or that was to wait longer anyway is not counted; one that was stored twice counts once.
	Delayed uint64 `json:"delayed"`
	// Served are messages that were given a turn by [Faults.Rate], Worked are messages that [Faults.Work] was done for.
	Served uint64 `json:"served"`
	Worked uint64 `json:"worked"`
	// Full are messages that were refused or kept waiting because of [Faults.Full]; each once, however often it asks
	// for room. Messages that were already waiting when the fault began are not counted. See [Store.CountFull].
	Full    uint64 `json:"full"`
	Dropped uint64 `json:"dropped"` // connections
	Refused uint64 `json:"refused"` // connections
	Stalls  uint64 `json:"stalls"`
}

// faults are the ones at work.
type faults struct {
	Faults
	sent  atomic.Uint64
	turns turns
}

// turns serves messages at a rate, one after another: a message is served 1/rate after the later of its arrival and the
// service of the one before.
type turns struct {
	mu    sync.Mutex
	since int64  // when the first of a row of messages arrived that left no pause, in nanoseconds since the Unix epoch
	n     uint64 // messages of that row
}

// next returns when a message that arrives now has been served.
func (t *turns) next(now int64, rate uint64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now > t.after(rate) {
		t.since, t.n = now, 0
	}
	t.n++
	return t.after(rate)
}

// after is exact to the nanosecond however long the row is.
func (t *turns) after(rate uint64) int64 {
	seconds, rest := t.n/rate, t.n%rate
	whole := int64(seconds) * int64(time.Second)                  //nolint:gosec // within a lifetime
	return t.since + whole + int64(rest*uint64(time.Second)/rate) //nolint:gosec // less than a second
}

// notBefore returns when a message that arrives now may be delivered, in nanoseconds since the Unix epoch; 0 for at
// once.
func (f *faults) notBefore() (at int64) {
	if f.Delay == 0 && f.Rate == 0 {
		return 0
	}
	now := time.Now()
	if f.Rate > 0 {
		at = f.turns.next(now.UnixNano(), f.Rate)
	}
	if f.Delay > 0 {
		at = max(at, now.Add(f.Delay).UnixNano())
	}
	return at
}

// work takes the broker's time for a message.
func (f *faults) work(c *faultCounters) {
	if f.Work > 0 {
		<-time.After(f.Work)
		c.worked.Add(1)
	}
}

type faultCounters struct {
	lost, damaged, duplicated, reordered, withheld, delayed, served, worked, full, dropped, refused, stalls atomic.Uint64
}

func (c *faultCounters) counts() FaultCounts {
	return FaultCounts{
		Lost: c.lost.Load(), Damaged: c.damaged.Load(), Duplicated: c.duplicated.Load(), Reordered: c.reordered.Load(),
		Withheld: c.withheld.Load(), Delayed: c.delayed.Load(),
		Served: c.served.Load(), Worked: c.worked.Load(), Full: c.full.Load(), Dropped: c.dropped.Load(),
		Refused: c.refused.Load(), Stalls: c.stalls.Load(),
	}
}

// fate is the effect of the faults on one message.
type fate uint8

const (
	keep fate = iota
	lose
	damage
	duplicate
	reorder
)

// judge decides about the next message.
func (f *faults) judge() (what fate, withhold, drop bool) {
	n := f.sent.Add(1)
	switch {
	case every(f.LoseEvery, n):
		what = lose
	case every(f.DamageEvery, n):
		what = damage
	case every(f.DuplicateEvery, n):
		what = duplicate
	case every(f.ReorderEvery, n):
		what = reorder
	}
	return what, every(f.WithholdEvery, n), every(f.DropEvery, n)
}

func every(n, i uint64) bool { return n > 0 && i%n == 0 }

// damaged returns a copy of m with one bit of its body flipped, another one with each n.
func damaged(m *Message, n uint64) *Message {
	body := append([]byte(nil), m.Content.Body()...)
	body[n*61%uint64(len(body))] ^= 1 << (n % 8)
	c := *m
	c.Content = m.Content.WithBody(body)
	return &c
}

// Faults returns the faults at work.
func (s *Store) Faults() Faults {
	if f := s.faults.Load(); f != nil {
		return f.Faults
	}
	return Faults{}
}

// SetFaults replaces the faults. Counting to n begins anew; the counts of [FaultCounts] stay. Messages that were held
// back to be reordered are delivered.
func (s *Store) SetFaults(f Faults) {
	var next *faults
	if f != (Faults{}) {
		next = &faults{Faults: f}
	}
	old := s.faults.Swap(next)
	if old != nil && old.ReorderEvery > 0 {
		s.each((*Destination).letGo)
	}
	if old != nil && old.Full && !f.Full {
		s.each((*Destination).tellRoom)
	}
}

// FaultCounts returns the counts of the faults so far.
func (s *Store) FaultCounts() FaultCounts { return s.counters.counts() }

// Refuse tells whether a new connection is to be closed at once, and counts it if so.
func (s *Store) Refuse() bool {
	f := s.faults.Load()
	if f == nil || !f.Refuse {
		return false
	}
	s.counters.refused.Add(1)
	return true
}

// CountFull adds to the messages that were refused or kept waiting by the fault [Faults.Full], if that is at work,
// and tells whether it is. Front-ends call it for messages that they keep waiting or refuse by themselves;
// [Destination.Send] calls it for messages that it refuses. A protocol in which broker and sender do not meet before
// there is room (AMQP's credit) counts one message for each sender that it leaves without.
func (s *Store) CountFull(n int) bool {
	if !s.full() {
		return false
	}
	s.counters.full.Add(uint64(n))
	return true
}

// CountDropped adds to the connections that were broken by request.
func (s *Store) CountDropped(n int) { s.counters.dropped.Add(uint64(n)) }

// stall is a time in which nothing goes on.
type stall struct {
	mu    sync.Mutex
	until time.Time
	over  atomic.Pointer[chan struct{}] // nil: no stall; closed at its end
	timer *time.Timer
}

// Stall makes the broker stop for d: nothing is stored, delivered or settled, and front-ends do not answer requests by
// which clients learn whether it stands still. A stall under way is extended if it would end earlier. It ends early when
// d is zero or less.
func (s *Store) Stall(d time.Duration) {
	st := &s.stall
	st.mu.Lock()
	defer st.mu.Unlock()
	if d <= 0 {
		st.end(s)
		return
	}
	until := time.Now().Add(d)
	if st.over.Load() == nil {
		s.counters.stalls.Add(1)
		over := make(chan struct{})
		st.over.Store(&over)
		st.until = until
		st.timer = time.AfterFunc(d, func() { s.endStall() })
	} else if until.After(st.until) {
		st.until = until
		st.timer.Reset(d)
	}
}

func (s *Store) endStall() {
	st := &s.stall
	st.mu.Lock()
	defer st.mu.Unlock()
	if time.Until(st.until) <= 0 {
		st.end(s)
	}
}

// end is called with the lock held.
func (st *stall) end(s *Store) {
	over := st.over.Swap(nil)
	if over == nil {
		return
	}
	st.timer.Stop()
	close(*over)
	go s.each((*Destination).tellAll)
}

// await waits for the end of a stall.
func (st *stall) await() {
	if over := st.over.Load(); over != nil {
		<-*over
	}
}

func (st *stall) active() bool { return st.over.Load() != nil }
