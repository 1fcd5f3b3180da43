package store

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Faults are injected errors. The zero value is a faultless broker. "Every" n means the messages n, 2n, 3n ... of all
// destinations together, counted since the faults were set, without refused ones. A message gets at most one of lose,
// damage, duplicate, reorder, in this order of precedence; withhold is independent of them.
type Faults struct {
	LoseEvery      uint64 // accept and discard
	DamageEvery    uint64 // flip one bit of the body; an empty body is neither damaged nor counted
	DuplicateEvery uint64 // store twice
	ReorderEvery   uint64 // store after the next message of the same source to the same destination
	WithholdEvery  uint64 // store, but never confirm
	DropEvery      uint64 // break all connections; the n-th message is stored and not confirmed

	Delay  time.Duration // from the send of a message to its delivery
	Rate   uint64        // messages delivered each second, all destinations together
	Work   time.Duration // before a message is stored and confirmed; the messages of a connection one after another
	Full   bool          // behave as if every limit were reached
	Refuse bool          // close new connections at once
}

// FaultCounts are the effects of the faults: numbers of messages unless noted otherwise.
type FaultCounts struct {
	Lost       uint64 `json:"lost"`
	Damaged    uint64 `json:"damaged"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
	Withheld   uint64 `json:"withheld"` // including the messages at which connections were broken
	// Delayed are messages stored for a later delivery than without the fault: not lost messages, messages without
	// a subscription, or messages with a longer delay of their own. A duplicated message counts once.
	Delayed uint64 `json:"delayed"`
	// Served are messages delayed by [Faults.Rate], Worked messages delayed by [Faults.Work].
	Served  uint64 `json:"served"`
	Worked  uint64 `json:"worked"`
	Dropped uint64 `json:"dropped"` // connections
	Refused uint64 `json:"refused"` // connections
	Stalls  uint64 `json:"stalls"`
}

// faults are the current faults.
type faults struct {
	Faults
	sent atomic.Uint64

	// The queueing server of Rate: a message is served 1/Rate after the later of its arrival and the service of the
	// previous message.
	mu     sync.Mutex
	since  int64  // the beginning of the busy period, in nanoseconds since the Unix epoch
	served uint64 // messages in the busy period
}

// serve returns the end of service of a message that arrives now.
func (f *faults) serve(now int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now > f.serviceEnd() {
		f.since, f.served = now, 0
	}
	f.served++
	return f.serviceEnd()
}

// serviceEnd is exact to the nanosecond, whatever the length of the busy period.
func (f *faults) serviceEnd() int64 {
	seconds, rest := f.served/f.Rate, f.served%f.Rate
	whole := int64(seconds) * int64(time.Second)                    //nolint:gosec // within a lifetime
	return f.since + whole + int64(rest*uint64(time.Second)/f.Rate) //nolint:gosec // less than a second
}

// notBefore returns the earliest delivery of a message that arrives now, in nanoseconds since the Unix epoch; 0 for
// at once.
func (f *faults) notBefore() (at int64) {
	if f.Delay == 0 && f.Rate == 0 {
		return 0
	}
	now := time.Now()
	if f.Rate > 0 {
		at = f.serve(now.UnixNano())
	}
	if f.Delay > 0 {
		at = max(at, now.Add(f.Delay).UnixNano())
	}
	return at
}

// count adds to one of the fields of s.done, and returns its value.
func (s *Store) count(field *uint64, n uint64) uint64 {
	s.doneMu.Lock()
	defer s.doneMu.Unlock()
	*field += n
	return *field
}

func every(n, i uint64) bool { return n > 0 && i%n == 0 }

// damaged returns a copy of m with one bit of its body flipped; n varies the bit.
func damaged(m *Message, n uint64) *Message {
	body := append([]byte(nil), m.Content.Body()...)
	body[n*61%uint64(len(body))] ^= 1 << (n % 8)
	c := *m
	c.Content = m.Content.WithBody(body)
	return &c
}

// Faults returns the current faults.
func (s *Store) Faults() Faults {
	if f := s.faults.Load(); f != nil {
		return f.Faults
	}
	return Faults{}
}

// SetFaults replaces the faults. Counting to n starts again; [FaultCounts] continue.
func (s *Store) SetFaults(f Faults) {
	var next *faults
	if f != (Faults{}) {
		next = &faults{Faults: f}
	}
	s.faults.Store(next)
}

// FaultCounts returns the counts of the faults so far.
func (s *Store) FaultCounts() FaultCounts {
	s.doneMu.Lock()
	defer s.doneMu.Unlock()
	return s.done
}

// Full reports whether [Faults.Full] is set: a [Sink] then has no room.
func (s *Store) Full() bool {
	f := s.faults.Load()
	return f != nil && f.Full
}

// Refuse reports whether to close a new connection at once, and counts it if so.
func (s *Store) Refuse() bool {
	refuse := s.Faults().Refuse
	if refuse {
		s.count(&s.done.Refused, 1)
	}
	return refuse
}

// CountDropped counts connections broken on request.
func (s *Store) CountDropped(n int) { s.count(&s.done.Dropped, uint64(n)) }

// Stall pauses the broker for d, or ends the pause if d is zero: nothing is stored, delivered or settled, and
// front-ends do not answer requests by which clients learn whether it is stalled. It replaces a current stall.
func (s *Store) Stall(d time.Duration) {
	s.stallMu.Lock()
	defer s.stallMu.Unlock()
	if s.stallTimer != nil {
		s.stallTimer.Stop()
		s.stallTimer = nil
	}
	if d <= 0 {
		s.endStall()
		return
	}
	if s.stallOver.Load() == nil {
		s.count(&s.done.Stalls, 1)
		begun := make(chan struct{})
		s.stallOver.Store(&begun)
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		s.stallMu.Lock()
		defer s.stallMu.Unlock()
		if s.stallTimer == timer {
			s.endStall()
		}
	})
	s.stallTimer = timer
}

// endStall ends a stall; its lock is held.
func (s *Store) endStall() {
	if over := s.stallOver.Swap(nil); over != nil {
		close(*over)
		go s.each((*Destination).notifyAll)
	}
}

// waitForStall blocks until the end of a stall.
func (s *Store) waitForStall() {
	if over := s.stallOver.Load(); over != nil {
		<-*over
	}
}

// Stalled reports whether the broker is stalled.
func (s *Store) Stalled() bool { return s.stallOver.Load() != nil }

// AwaitStall waits for the end of a stall, if there is one, after flush. It fails as flush does, or with
// [net.ErrClosed] if done is closed before.
func (s *Store) AwaitStall(done <-chan struct{}, flush func() error) error {
	over := s.stallOver.Load()
	if over == nil {
		return nil
	}
	if err := flush(); err != nil {
		return err
	}
	for ; over != nil; over = s.stallOver.Load() {
		select {
		case <-*over:
		case <-done:
			return net.ErrClosed
		}
	}
	return nil
}
