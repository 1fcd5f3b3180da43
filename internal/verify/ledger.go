package verify

import (
	"hash/crc32"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Ledger numbers the messages of one producer and keeps the outcomes of messages that were withheld or not accepted.
type Ledger struct {
	id     driver.ID // of the message that was numbered last; Next's goroutine only
	sums   *summer
	bodies []uint32
	dest   driver.Destination

	next atomic.Int64 // number of the next message

	mu                             sync.Mutex
	sealed                         bool
	refused, unconfirmed, withheld *roaring64.Bitmap
	resent                         tally
	marks                          []uint64
}

// NewLedger returns the ledger of a producer of a run, above zero, that sends messages to dest; bodies are the
// [BodySum] of each variant.
func NewLedger(run int64, producer int, dest driver.Destination, bodies ...uint32) *Ledger {
	return &Ledger{
		id: driver.ID{Run: run, Producer: int64(producer)}, sums: newSummer(), bodies: bodies, dest: dest,
		refused: roaring64.New(), unconfirmed: roaring64.New(), withheld: roaring64.New(),
	}
}

// Next numbers a message of a variant that is about to be sent. Only one goroutine calls it and Unsent.
func (l *Ledger) Next(variant int) driver.ID {
	l.id.Number = l.next.Load()
	l.id.Sum = l.sums.sum(&l.id, l.bodies[variant])
	l.next.Store(l.id.Number + 1)
	return l.id
}

// Again returns the ID of a message that is about to be sent once more, and notes that. The goroutine of Next calls it.
func (l *Ledger) Again(n int64, variant int) driver.ID {
	id := l.id
	id.Number = n
	id.Sum = l.sums.sum(&id, l.bodies[variant])
	l.note(func() { l.resent.add(uint64(n)) })
	return id
}

// note calls f, which changes what the lock guards, unless the ledger is sealed.
func (l *Ledger) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.sealed {
		f()
	}
}

// NotAgain takes the last Again of a message back: it did not leave once more.
func (l *Ledger) NotAgain(n int64) { l.note(func() { l.resent.remove(uint64(n)) }) }

// explain is the [stream.explain] of a stream of the ledger's messages.
func (l *Ledger) explain(s *stream) (twice, counted uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.explain(l.resent)
}

// Stream names the messages of the ledger.
func (l *Ledger) Stream() Stream { return Stream{l.id.Run, l.id.Producer} }

// Delay sets the time for which the broker is to hold back the messages numbered from now on. The caller does not call
// Next meanwhile.
func (l *Ledger) Delay(delay time.Duration) { l.id.Delay = delay.Milliseconds() }

// SetBodies gives the messages that are numbered from now on other variants, as [NewLedger]. Next is not being called.
func (l *Ledger) SetBodies(bodies ...uint32) { l.bodies = slices.Clone(bodies) }

// SetBody sets the body of a variant for the message that is numbered next. The goroutine of Next calls it.
func (l *Ledger) SetBody(variant int, body []byte) {
	l.bodies[variant] = crc32.Checksum(body, l.sums.table)
}

// Count returns the number of messages numbered so far.
func (l *Ledger) Count() uint64 { return uint64(l.next.Load()) }

// Mark notes the number of messages numbered so far: see [Result].LostBefore.
func (l *Ledger) Mark() { l.note(func() { l.marks = append(l.marks, l.Count()) }) }

// Unsent takes the number of the last message back, as it did not leave: the next message gets it.
func (l *Ledger) Unsent() { l.next.Store(l.id.Number) }

// Done notes the outcome of message n. It need not be called for messages that were accepted and not withheld. It is
// safe for concurrent use.
func (l *Ledger) Done(n int64, o driver.Outcome) {
	exception := l.refused
	switch {
	case o.State == driver.Accepted && !o.Withheld:
		return
	case o.State == driver.Accepted:
		exception = l.withheld
	case o.State == driver.Unknown:
		exception = l.unconfirmed
	}
	l.note(func() { exception.Add(uint64(n)) })
}

// Seal ends the ledger and returns its contents; the messages in flight count as unconfirmed. Outcomes that come later
// are ignored.
func (l *Ledger) Seal(inFlight []int64) *Sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &Sent{
		Producer: l.id.Producer, Destination: hidden(l.dest), Count: l.Count(),
		refused: l.refused, unconfirmed: l.unconfirmed, withheld: l.withheld, Resent: l.resent, Marks: l.marks,
	}
	if l.sealed {
		return s
	}
	l.sealed = true
	l.resent = slices.DeleteFunc(l.resent, (*roaring64.Bitmap).IsEmpty) // see remove
	s.Resent = l.resent
	for _, n := range inFlight {
		if uint64(n) < s.Count {
			l.unconfirmed.Add(uint64(n))
		}
	}
	return s
}

// open counts the sent messages from a number up that are to arrive and are not in arrived.
func (l *Ledger) open(arrived *roaring64.Bitmap, from uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := l.Count()
	from = min(from, sent)
	expected, got := sent-from, below(arrived, sent)-below(arrived, from)
	for _, exception := range []*roaring64.Bitmap{l.refused, l.unconfirmed, l.withheld} {
		within := Bounds{From: from, To: math.MaxUint64}.of(exception)
		expected -= within.GetCardinality()
		got -= arrived.AndCardinality(within)
	}
	return expected - min(got, expected)
}

// below counts the numbers of a set that are less than n.
func below(b *roaring64.Bitmap, n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return b.Rank(n - 1)
}

// endOf returns the highest number of a set plus one; 0 if it is empty.
func endOf(b *roaring64.Bitmap) uint64 {
	if b.IsEmpty() {
		return 0
	}
	return b.Maximum() + 1
}
