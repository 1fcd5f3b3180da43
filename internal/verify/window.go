package verify

import (
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/perfmq/perfmq/pkg/result"
)

// Window is the knowledge of a stream about messages that were judged while the run continued. Their numbers are in no
// other set of the stream, so its memory is bounded by the length of the window.
type Window struct {
	// From: all lower numbers are judged, without those in open. Numbers below First are not for the subscription.
	From  uint64 `json:"from"`
	First uint64 `json:"first,omitempty"`
	// Counts are those of the judged messages, but for duplicates and damages: the stream counts these.
	Counts   result.Verified   `json:"counts"`
	Examples map[Kind][]uint64 `json:"examples,omitempty"`
	// Forgotten is the number of messages that left the records below, see maxRecords.
	Forgotten uint64 `json:"forgotten,omitempty"`

	open *roaring64.Bitmap // below From, and not judged yet
	// The records of judged messages: missing ones that may still come, and received ones with duplicates.
	lost, twice *roaring64.Bitmap
	// Missing ones in doubt, or not to arrive; unselected ones need not, as another consumer's selector may have them.
	outcomes
	unselected *roaring64.Bitmap

	ended []ended // not judged yet, by the time of their end
}

// ended are messages that ended until a moment of the [Tracker.clock].
type ended struct {
	at      time.Duration
	numbers *roaring64.Bitmap
	own     bool // of no other window
}

// maxRecords is the size in bytes, as in files, from which on a subscription forgets the older half of its records. In
// memory isolated numbers take ten times that.
const maxRecords = 1 << 20

func newWindow(first uint64) *Window {
	return &Window{
		From: first, First: first, Examples: map[Kind][]uint64{}, open: roaring64.New(), lost: roaring64.New(),
		twice: roaring64.New(), outcomes: newOutcomes(), unselected: roaring64.New(),
	}
}

func (w *Window) records() []**roaring64.Bitmap {
	return []**roaring64.Bitmap{&w.lost, &w.unconfirmed, &w.twice, &w.refused, &w.withheld, &w.unselected}
}

// judged reports whether a message was judged.
func (w *Window) judged(n uint64) bool {
	return w != nil && n < w.From && n >= w.First && !w.open.Contains(n)
}

// unjudged returns the numbers of a set that are not judged yet.
func (w *Window) unjudged(set *roaring64.Bitmap) *roaring64.Bitmap {
	if w == nil || set.IsEmpty() {
		return set
	}
	rest := set.Clone()
	rest.RemoveRange(0, w.From)
	rest.Or(roaring64.And(set, w.open))
	return rest
}

// within returns the numbers within the bounds that are not judged yet.
func (w *Window) within(b Bounds) *roaring64.Bitmap {
	rest := roaring64.New()
	if w == nil {
		rest.AddRange(b.From, b.To)
		return rest
	}
	if from := max(b.From, w.From); from < b.To {
		rest.AddRange(from, b.To)
	}
	rest.Or(b.of(w.open))
	return rest
}

// push adds messages that ended at that time.
func (w *Window) push(at time.Duration, numbers *roaring64.Bitmap) {
	last := len(w.ended) - 1
	if last < 0 || w.ended[last].at < at {
		w.ended = append(w.ended, ended{at: at, numbers: numbers})
		return
	}
	if e := &w.ended[last]; !e.own {
		e.numbers, e.own = roaring64.Or(e.numbers, numbers), true
	} else {
		e.numbers.Or(numbers)
	}
}

// pop removes and returns the messages that ended until then; nil if there are none.
func (w *Window) pop(until time.Duration) (numbers *roaring64.Bitmap) {
	n := 0
	for ; n < len(w.ended) && w.ended[n].at <= until; n++ {
		if numbers == nil {
			numbers = roaring64.New()
		}
		numbers.Or(w.ended[n].numbers)
	}
	w.ended = slices.Delete(w.ended, 0, n)
	return numbers
}

// example notes the first numbers of a kind.
func (w *Window) example(kind Kind, numbers *roaring64.Bitmap) {
	for it := numbers.Iterator(); it.HasNext() && len(w.Examples[kind]) < maxExamples; {
		w.Examples[kind] = append(w.Examples[kind], it.Next())
	}
}

// Watched is a subscription of a run with a window.
type Watched struct {
	Tracker *Tracker
	Sent    Periods
	// Elapsed is the time since the last Turn, if the consumers could receive meanwhile; else 0.
	Elapsed time.Duration
	// Selective: not all messages are meant to arrive.
	Selective bool
}

// Turn judges the messages to one destination that ended a window before now, and forgets them. It returns the messages
// that have just been found lost, the first few of them by name.
func Turn(window time.Duration, ledgers []*Ledger, subs []Watched) (lost uint64, first []Message) {
	if len(subs) == 0 {
		return 0, nil // a later step may have the consumers
	}
	for i := range subs {
		subs[i].Tracker.flush()
		subs[i].Tracker.clock += subs[i].Elapsed
	}
	for _, l := range ledgers {
		numbers, exceptions := l.take()
		kept := roaring64.New()
		for i := range subs {
			missing, rest := subs[i].Tracker.turn(window, l, &subs[i], numbers, exceptions)
			kept.Or(rest)
			lost += missing.GetCardinality()
			for it := missing.Iterator(); it.HasNext() && len(first) < maxExamples; {
				first = append(first, Message{l.id.Run, l.id.Producer, it.Next()})
			}
		}
		l.forget(roaring64.AndNot(exceptions, kept))
	}
	for i := range subs {
		subs[i].Tracker.forget()
	}
	return lost, first
}

// turn judges the messages of a ledger that are due here. It returns the lost ones, and the exceptions that it needs.
func (t *Tracker) turn(
	window time.Duration, l *Ledger, sub *Watched, numbers, exceptions *roaring64.Bitmap,
) (lost, kept *roaring64.Bitmap) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ensure(l.Stream())
	bounds, bounded := sub.Sent[s.Stream]
	if !bounded {
		bounds.To = maxNumbers
	}
	if s.Window == nil {
		s.Window = newWindow(bounds.From)
	}
	if within := bounds.of(numbers); !within.IsEmpty() {
		s.Window.push(t.clock, within)
	}
	lost = roaring64.New()
	if due := s.Window.pop(t.clock - window - l.delay); due != nil {
		lost = s.judge(l, due, sub.Selective)
	}
	return lost, bounds.of(s.Window.unjudged(exceptions))
}

// judge counts and forgets messages that have ended, and returns the lost ones.
func (s *stream) judge(l *Ledger, due *roaring64.Bitmap, selective bool) (lost *roaring64.Bitmap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := s.Window
	c := &w.Counts
	expected, outcomes, records := due.Clone(), l.byOutcome(), w.byOutcome()
	for i, e := range fatesIn(c) {
		numbers := roaring64.And(outcomes[i], due)
		arrived := roaring64.And(s.arrived, numbers)
		if !selective { // as at the end, see [judge.scope]
			*e.arrived += arrived.GetCardinality()
			w.example(e.kind, arrived)
			missing := roaring64.AndNot(numbers, s.arrived)
			*e.missing += missing.GetCardinality()
			records[i].Or(missing)
		}
		expected.AndNot(numbers)
	}
	if lost = roaring64.New(); selective {
		w.unselected.Or(roaring64.AndNot(due, s.arrived))
	} else {
		lost = roaring64.AndNot(expected, s.arrived)
		c.Expected += expected.GetCardinality()
		c.Lost += lost.GetCardinality()
		w.lost.Or(lost)
		w.example(Lost, lost)
	}
	s.count(due, l.resent)
	s.remove(due)
	if end := endOf(due); end > w.From {
		w.open.AddRange(w.From, end)
		w.From = end
	}
	w.open.AndNot(due)
	l.judged = max(l.judged, w.From)
	return lost
}

// count adds the figures of judged messages that do not depend on the outcomes of their sends.
func (s *stream) count(due *roaring64.Bitmap, resent tally) {
	w := s.Window
	c := &w.Counts
	arrived, doubled, late := s.arrived.AndCardinality(due), roaring64.And(s.doubled, due), roaring64.And(s.late, due)
	c.Received += arrived
	c.Once += arrived - min(arrived, doubled.GetCardinality())
	c.Disordered += late.GetCardinality()
	c.DisorderedRedelivered += s.lateMarked.AndCardinality(due)
	w.example(Disordered, late)
	if doubled.IsEmpty() {
		return
	}
	twice, counted := s.explain(resent, doubled)
	c.Resent += twice
	s.AfterOutage -= min(counted, s.AfterOutage)
	w.example(Duplicated, roaring64.And(s.unexplained(resent), due))
	w.twice.Or(doubled)
}

// remove forgets messages.
func (s *stream) remove(numbers *roaring64.Bitmap) {
	sets := append([]*roaring64.Bitmap{s.arrived, s.doubled, s.cut, s.marked, s.late, s.lateMarked}, s.More...)
	for _, set := range append(sets, s.Outaged...) {
		if set != nil && !set.IsEmpty() {
			set.AndNot(numbers)
		}
	}
	s.loose = 0
}

// afterWindow notes a delivery of a message that was judged.
func (s *stream) afterWindow(n uint64, flags uint8) {
	w := s.Window
	c := &w.Counts
	switch {
	case w.lost.CheckedRemove(n):
		c.Lost--
		c.ArrivedLate++
	case w.unconfirmed.CheckedRemove(n):
		c.UnconfirmedMissing--
		c.UnconfirmedArrived++
	case w.refused.CheckedRemove(n):
		c.RefusedArrived++
		w.example(Refused, roaring64.BitmapOf(n))
	case w.withheld.CheckedRemove(n):
		c.WithheldArrived++
		w.example(Withheld, roaring64.BitmapOf(n))
	case w.unselected.CheckedRemove(n):
	default:
		s.Duplicates++
		if flags&redelivered != 0 {
			s.Redelivered++
		}
		if flags&afterOutage != 0 {
			s.AfterOutage++
		} else {
			w.example(Duplicated, roaring64.BitmapOf(n))
		}
		if w.twice.CheckedAdd(n) {
			c.Once -= min(c.Once, 1)
		}
		return
	}
	c.Received++
	c.Once++
	if flags&behind != 0 {
		c.Disordered++
		if flags&redelivered != 0 {
			c.DisorderedRedelivered++
		}
	}
}

// forget keeps the records of the subscription below their limit.
func (t *Tracker) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	var size uint64
	for _, s := range t.own {
		if s.Window != nil {
			for _, set := range s.Window.records() {
				size += (*set).GetSerializedSizeInBytes()
			}
		}
	}
	if size < maxRecords {
		return
	}
	for _, s := range t.own {
		if s.Window == nil {
			continue
		}
		for _, set := range s.Window.records() {
			(*set).RunOptimize()
			if half := (*set).GetCardinality() / 2; half > 0 {
				limit, _ := (*set).Select(half)
				(*set).RemoveRange(0, limit)
				s.Window.Forgotten += half
			}
		}
	}
}

// joined returns the window after deliveries to another process, too. It takes the judged ones out of j.
func (w *Window) joined(j, o *stream) {
	with, judged := *w, roaring64.New()
	for _, set := range with.records() {
		*set = (*set).Clone()
	}
	with.Examples = maps.Clone(w.Examples)
	j.Window = &with
	for it := o.arrived.Iterator(); it.HasNext(); {
		if n := it.Next(); with.judged(n) {
			judged.Add(n)
			flags := uint8(0)
			if o.late.Contains(n) {
				flags = behind
			}
			if o.marked.Contains(n) {
				flags |= redelivered
			}
			j.afterWindow(n, flags)
		}
	}
	j.remove(judged)
}
