package verify

import (
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

const (
	// maxStreams bounds the producers that one subscription keeps apart, of all runs. The messages of more are foreign:
	// messages of strangers must not use up our memory.
	maxStreams = 1 << 17
	// maxNumbers is above any number that a producer reaches, and low enough for sets up to there to be handled.
	maxNumbers = 1 << 38
	// maxExamples bounds the messages of a kind that are kept by name.
	maxExamples = 5
)

// The marks of a delivery.
const (
	redelivered = 1 << iota // the broker says that it has delivered the message before
	behind                  // this consumer has had a later message of that producer before
	afterOutage             // an outage, if there was one, explains that the broker delivers it again
)

// span is a number of deliveries in a row: of successive messages, with the same flags.
type span struct {
	stream   *stream
	from, to uint64
	flags    uint8
}

// Tracker knows the messages that arrived at one subscription, from the checkers of its consumers. It is safe for
// concurrent use.
type Tracker struct {
	outages   Outages // nil without --reconnect
	wasCutOff bool    // consumers in other processes have lost their connections
	// With a window, the tracker does not keep the numbers of foreign messages. clock is the time in which the
	// consumers could receive, of the goroutine that calls [Turn].
	windowed bool
	clock    time.Duration
	taken    unnamed // what Take has returned

	mu       sync.Mutex
	checkers []*Checker
	streams  map[Stream]*stream
	own      []*stream // in the order of their appearance
	sealed   bool
}

// Window prepares for [Turn]. Call it before the first Check.
func (t *Tracker) Window() { t.windowed = true }

// NewTracker returns a tracker that has seen nothing yet.
func NewTracker() *Tracker { return &Tracker{streams: map[Stream]*stream{}} }

// stream returns the messages that arrived from a producer; nil if there are too many producers.
func (t *Tracker) stream(key Stream) *stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.streams) >= maxStreams {
		return t.streams[key]
	}
	return t.ensure(key)
}

// ensure returns the stream of a producer. The caller holds the lock.
func (t *Tracker) ensure(key Stream) *stream {
	s := t.streams[key]
	if s == nil {
		s = newStream(key)
		t.streams[key] = s
		t.own = append(t.own, s)
	}
	return s
}

// merge takes deliveries over.
func (t *Tracker) merge(spans []span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return
	}
	for i := range spans {
		spans[i].stream.add(&spans[i])
	}
}

// damaged notes a message with a body that differs from the one sent.
func (t *Tracker) damaged(s *stream, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return
	}
	s.Damaged++
	if len(s.DamagedFirst) < maxExamples {
		s.DamagedFirst = append(s.DamagedFirst, n)
	}
}

// flush makes the tracker know all that its checkers know, and returns their own counts.
func (t *Tracker) flush() (sum unnamed) {
	t.mu.Lock()
	checkers := slices.Clone(t.checkers)
	t.mu.Unlock()
	for _, c := range checkers { // without the lock: checkers take theirs before the tracker's
		n := c.flush()
		sum.foreign += n.foreign
		sum.illegible += n.illegible
		sum.last = max(sum.last, n.last)
	}
	return sum
}

// Seal ends the tracker and returns the messages that arrived. Deliveries that come later are ignored. The caller
// fills in the rest.
func (t *Tracker) Seal() *Received {
	n := t.flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = true
	if !t.cutOff() {
		for _, s := range t.own {
			s.AfterOutage, s.Outaged = 0, nil
		}
	}
	return &Received{
		Foreign: n.foreign, Illegible: n.illegible, Last: n.last, Streams: t.own, CutOff: t.cutOff(),
	}
}

// cutOff reports whether a consumer has lost its connection and went on.
func (t *Tracker) cutOff() bool { return t.wasCutOff || t.outages != nil && t.outages.Receiving() }

// Last returns when the last message came that the run counts, in microseconds since the Unix epoch; 0 if none did.
func (t *Tracker) Last() int64 { return t.flush().last }

// Open counts the messages in the ledgers that are to arrive here and have not arrived yet, if they were sent in the
// periods.
func (t *Tracker) Open(ledgers []*Ledger, sent Periods) (n uint64) {
	t.flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range ledgers {
		s := t.streams[l.Stream()]
		if s == nil {
			s = newStream(l.Stream())
		}
		n += l.open(s, sent[l.Stream()].From)
	}
	return n
}

// Progress returns the counts that need no comparison with the messages sent. With a run, it counts that run's messages
// alone. The ledgers know the messages that were sent again, so their copies count apart.
func (t *Tracker) Progress(run int64, ledgers ...*Ledger) result.Progress {
	n := t.flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	p := result.Progress{Foreign: n.foreign, Damaged: n.illegible}
	cutOff := t.cutOff()
	for _, s := range t.own {
		if run != 0 && s.Run != run {
			p.Foreign += s.Copies
			continue
		}
		if cutOff {
			p.AfterOutage += s.AfterOutage
		}
		p.Add(&result.Progress{
			Received: s.arrived.GetCardinality(), Duplicates: s.Duplicates, Redelivered: s.Redelivered,
			Disordered: s.late.GetCardinality(), Damaged: s.Damaged,
		})
		if w := s.Window; w != nil {
			p.Add(&result.Progress{
				Received: w.Counts.Received, Disordered: w.Counts.Disordered, Resent: w.Counts.Resent,
				Expected: w.Counts.Expected, Lost: w.Counts.Lost, ArrivedLate: w.Counts.ArrivedLate,
			})
		}
	}
	for _, l := range ledgers {
		s := t.streams[l.Stream()]
		if s == nil || run != 0 && s.Run != run {
			continue
		}
		twice, counted := l.explain(s)
		p.Resent += twice
		if cutOff {
			p.AfterOutage -= counted
		}
	}
	return p
}

// stream holds the messages that arrived from one producer. All its figures are the same in whatever order the
// checkers' buffers come in.
type stream struct {
	Stream
	Low    uint64 `json:"low,omitempty"` // all numbers below are in arrived: only in files of earlier versions
	Copies uint64 `json:"copies"`        // deliveries

	Duplicates  uint64 `json:"duplicates,omitempty"`  // deliveries beyond the first of each message
	Redelivered uint64 `json:"redelivered,omitempty"` // part of them that were marked as that
	AfterOutage uint64 `json:"afterOutage,omitempty"` // part of them that an outage explains, if there was one
	More        tally  `json:"more,omitempty"`        // the copies of doubled messages beyond the second
	Outaged     tally  `json:"outaged,omitempty"`     // AfterOutage, by message

	Window *Window `json:"window,omitempty"` // nil if all messages are judged at the end

	arrived    *roaring64.Bitmap
	loose      uint64            // numbers that were added since arrived was packed
	doubled    *roaring64.Bitmap // the messages with duplicates
	cut        *roaring64.Bitmap // messages of which an outage would explain all copies; not in files
	marked     *roaring64.Bitmap // messages of which all copies were marked as redelivered
	late       *roaring64.Bitmap // messages of which all copies came behind a later message
	lateMarked *roaring64.Bitmap // part of late: a copy was marked as redelivered

	Damaged      uint64  `json:"damaged,omitempty"`
	DamagedFirst []int64 `json:"damagedFirst,omitempty"`
}

func newStream(key Stream) *stream {
	return &stream{
		Stream: key, arrived: roaring64.New(), doubled: roaring64.New(), cut: roaring64.New(), marked: roaring64.New(),
		late: roaring64.New(), lateMarked: roaring64.New(),
	}
}

const (
	// packAfter numbers, at least, are added before a set is packed again; more in a large one, as that looks at all of
	// it.
	packAfter = 1 << 20
	// longSpan is the length from which a span is added as a whole: that looks at the ranges that are there.
	longSpan = 256
)

func (s *stream) add(d *span) {
	s.Copies += d.to - d.from
	if s.loose += d.to - d.from; s.loose >= max(packAfter, s.Copies/8) {
		s.arrived.RunOptimize()
		s.loose = 0
	}
	if d.flags == 0 && d.to-d.from >= longSpan && d.from >= endOf(s.arrived) &&
		(s.Window == nil || d.from >= s.Window.From) {
		s.arrived.AddRange(d.from, d.to)
		return
	}
	for n := d.from; n < d.to; n++ {
		if s.Window.judged(n) {
			s.afterWindow(n, d.flags)
			continue
		}
		if !s.arrived.CheckedAdd(n) {
			s.again(n, d.flags)
			continue
		}
		if d.flags&redelivered != 0 {
			s.marked.Add(n)
		}
		if d.flags&afterOutage != 0 {
			s.cut.Add(n)
		}
		if d.flags&behind != 0 {
			s.late.Add(n)
			if d.flags&redelivered != 0 {
				s.lateMarked.Add(n)
			}
		}
	}
}

// again notes one more copy of a message.
func (s *stream) again(n uint64, flags uint8) {
	s.Duplicates++
	if !s.doubled.CheckedAdd(n) {
		s.More.add(n)
	}
	// The buffers of the consumers come in any order. Of c copies, e of them after an outage or marked, the lesser of e
	// and c-1 are explained, whichever came first. The same holds for marked copies.
	if flags&afterOutage != 0 || s.cut.CheckedRemove(n) {
		s.AfterOutage++
		s.Outaged.add(n)
	}
	isMarked := flags&redelivered != 0
	if isMarked || s.marked.CheckedRemove(n) {
		s.Redelivered++
	}
	switch {
	case flags&behind == 0:
		if s.late.CheckedRemove(n) {
			s.lateMarked.Remove(n)
		}
	case isMarked && s.late.Contains(n):
		s.lateMarked.Add(n)
	}
}
