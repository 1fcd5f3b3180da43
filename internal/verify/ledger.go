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
	"github.com/perfmq/perfmq/pkg/result"
)

// Ledger numbers the messages of one producer and keeps the outcomes of messages that were withheld or not accepted.
type Ledger struct {
	id     driver.ID // of the message that was numbered last; Next's goroutine only
	sums   *summer
	bodies []uint32
	dest   driver.Destination

	next atomic.Int64 // number of the next message

	mu     sync.Mutex
	sealed bool
	outcomes
	resent tally
	marks  []Bounds

	windowed bool
	delay    time.Duration // of the delivery
	// Messages that ended since the last [Ledger.take]; run has successive ones that are not in ended yet.
	ended  *roaring64.Bitmap
	run    Bounds
	judged uint64 // the end of the numbers judged at a subscription
}

// NewLedger returns the ledger of a producer of a run, above zero, that sends messages to dest; bodies are the
// [BodySum] of each variant.
func NewLedger(run int64, producer int, dest driver.Destination, bodies ...uint32) *Ledger {
	return &Ledger{
		id: driver.ID{Run: run, Producer: int64(producer)}, sums: newSummer(), bodies: bodies, dest: dest,
		outcomes: newOutcomes(),
	}
}

// outcomes are the numbers of messages not accepted for delivery, by outcome; no number is in two of them.
type outcomes struct{ refused, unconfirmed, withheld *roaring64.Bitmap }

func newOutcomes() outcomes { return outcomes{roaring64.New(), roaring64.New(), roaring64.New()} }

func (o *outcomes) byOutcome() []*roaring64.Bitmap {
	return []*roaring64.Bitmap{o.refused, o.unconfirmed, o.withheld}
}

// fate counts the messages of an outcome that arrived all the same, and those that did not.
type fate struct {
	arrived, missing *uint64
	kind             Kind // of those that arrived
}

// fatesIn returns the fates of all outcomes, in their order.
func fatesIn(v *result.Verified) []fate {
	return []fate{
		{&v.RefusedArrived, new(uint64), Refused},
		{&v.UnconfirmedArrived, &v.UnconfirmedMissing, Unconfirmed},
		{&v.WithheldArrived, new(uint64), Withheld},
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
	return s.explain(l.resent, nil)
}

// Stream names the messages of the ledger.
func (l *Ledger) Stream() Stream { return Stream{l.id.Run, l.id.Producer} }

// Delay sets the time for which the broker is to hold back the messages numbered from now on. The caller does not call
// Next meanwhile.
func (l *Ledger) Delay(delay time.Duration) { l.delay, l.id.Delay = delay, delay.Milliseconds() }

// SetBodies gives the messages that are numbered from now on other variants, as [NewLedger]. Next is not being called.
func (l *Ledger) SetBodies(bodies ...uint32) { l.bodies = slices.Clone(bodies) }

// SetBody sets the body of a variant for the message that is numbered next. The goroutine of Next calls it.
func (l *Ledger) SetBody(variant int, body []byte) {
	l.bodies[variant] = crc32.Checksum(body, l.sums.table)
}

// Count returns the number of messages numbered so far.
func (l *Ledger) Count() uint64 { return uint64(l.next.Load()) }

// Mark notes the messages numbered so far: see [Result].LostBefore.
func (l *Ledger) Mark() { l.note(func() { l.marks = append(l.marks, Bounds{l.judged, l.Count()}) }) }

// Unsent takes the number of the last message back, as it did not leave: the next message gets it.
func (l *Ledger) Unsent() { l.next.Store(l.id.Number) }

// Done notes the outcome of message n. It need not be called for messages that were accepted and not withheld. It is
// safe for concurrent use.
func (l *Ledger) Done(n int64, o driver.Outcome) {
	well := o.State == driver.Accepted && !o.Withheld
	if well && !l.windowed {
		return
	}
	l.note(func() {
		switch {
		case well:
		case o.State == driver.Accepted:
			l.withheld.Add(uint64(n))
		case o.State == driver.Unknown:
			l.unconfirmed.Add(uint64(n))
		default:
			l.refused.Add(uint64(n))
		}
		if l.windowed {
			l.end(uint64(n))
		}
	})
}

// Window makes [Turn] judge the messages. The caller then calls Done for each message. Call it before the first Next.
func (l *Ledger) Window() { l.windowed, l.ended = true, roaring64.New() }

// Windowed reports whether Done is to be called for each message.
func (l *Ledger) Windowed() bool { return l.windowed }

// end notes that a message has ended. The caller holds the lock.
func (l *Ledger) end(n uint64) {
	if n == l.run.To && l.run.From < n {
		l.run.To++
		return
	}
	l.ended.AddRange(l.run.From, l.run.To)
	l.run = Bounds{n, n + 1}
}

// take returns the messages that ended since the last call, and all numbers that are exceptions or were sent again.
func (l *Ledger) take() (numbers, exceptions *roaring64.Bitmap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended.AddRange(l.run.From, l.run.To)
	numbers, l.ended, l.run = l.ended, roaring64.New(), Bounds{}
	numbers.RunOptimize()
	return numbers, roaring64.FastOr(l.exceptions()...)
}

func (l *Ledger) exceptions() []*roaring64.Bitmap { return append(l.byOutcome(), l.resent...) }

// contents returns what the ledger has. The caller holds the lock.
func (l *Ledger) contents() *Sent {
	return &Sent{
		Producer: l.id.Producer, Destination: hidden(l.dest), Count: l.Count(), outcomes: l.outcomes, Resent: l.resent,
	}
}

// forget removes exceptions that are no longer needed.
func (l *Ledger) forget(numbers *roaring64.Bitmap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed || numbers.IsEmpty() {
		return
	}
	for _, set := range l.exceptions() {
		set.AndNot(numbers)
	}
}

// Seal ends the ledger and returns its contents; the messages in flight count as unconfirmed. Outcomes that come later
// are ignored.
func (l *Ledger) Seal(inFlight []int64) *Sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.contents()
	if s.Marks = l.marks; l.sealed {
		return s
	}
	l.sealed = true
	l.resent = slices.DeleteFunc(l.resent, (*roaring64.Bitmap).IsEmpty) // see remove
	s.Resent = l.resent
	for _, n := range inFlight {
		if uint64(n) < s.Count {
			l.unconfirmed.Add(uint64(n))
			if l.windowed {
				l.end(uint64(n))
			}
		}
	}
	return s
}

// open counts the sent messages from a number up that are to arrive at a stream, have not, and are not judged yet.
func (l *Ledger) open(s *stream, from uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent, arrived := l.Count(), s.arrived
	from = min(from, sent)
	base, expected, got := from, uint64(0), uint64(0)
	if w := s.Window; w != nil {
		base = min(max(from, w.From), sent)
		rest := Bounds{from, base}.of(w.open)
		expected, got = rest.GetCardinality(), arrived.AndCardinality(rest)
	}
	expected, got = expected+sent-base, got+below(arrived, sent)-below(arrived, base)
	for _, exception := range l.byOutcome() {
		within := Bounds{From: from, To: math.MaxUint64}.of(s.Window.unjudged(exception))
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
