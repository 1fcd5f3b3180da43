package verify

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Judge compares the messages that the sides of a run sent with the messages that they received. Messages of runs that
// no side sent are foreign. If no side sent any, Judge judges all runs, as far as the numbers received allow. If shards
// of a run are missing, the messages that should have arrived are unknown too.
func Judge(sides ...*Side) *Result {
	j := &judge{
		sent: map[Stream]*Sent{}, runs: map[int64]bool{}, ended: map[string]int64{}, absent: Absent(sides),
	}
	r := &Result{Verification: result.Verification{Known: true}}
	for _, side := range sides {
		for _, s := range side.Sent {
			key := Stream{side.ID, s.Producer}
			j.sent[key], j.runs[key.Run] = s, true
			j.order = append(j.order, key)
			j.ended[s.Destination] = max(j.ended[s.Destination], s.Ended)
			r.Sent += s.Count
			j.expires = j.expires || side.TTL && s.Count > 0
		}
	}
	for _, group := range groups(sides) {
		scope := j.scope(group)
		r.forgotten += forgotten(group)
		r.Scopes = append(r.Scopes, *scope)
		r.Total.Add(&scope.Verified)
		r.Known = r.Known && scope.Known
	}
	r.Known = r.Known && len(r.Scopes) > 0
	r.runs, r.LostBefore = len(j.runs), j.lostBefore
	j.unwatched(r)
	j.notes(r)
	return r
}

type judge struct {
	sent    map[Stream]*Sent
	order   []Stream         // of sent
	runs    map[int64]bool   // that sent; without any, those that were received
	ended   map[string]int64 // by destination, when the last producer ended
	expires bool
	partial bool // a scope is selective

	lostBefore []uint64 // see Result.LostBefore
	// absent are, by run, the shards that are not there.
	absent map[int64][]string
}

// forgotten adds up [Window].Forgotten.
func forgotten(parts []*Received) (n uint64) {
	for _, part := range parts {
		for _, st := range part.Streams {
			if st.Window != nil {
				n += st.Window.Forgotten
			}
		}
	}
	return n
}

// AbsentNote is in the note of a [Result] about shards that are missing.
const AbsentNote = "that are not here"

// maxNamed bounds the number of missing shards that are named.
const maxNamed = 10

// Absent returns the numbers of the missing shards, by run. Runs without any shard are left out.
func Absent(sides []*Side) map[int64][]string {
	type shard struct {
		run    int64
		number int
	}
	there, shards := map[shard]bool{}, map[int64]int{}
	for _, side := range sides {
		there[shard{side.ID, side.Shard}] = true
		shards[side.ID] = max(shards[side.ID], side.Shards)
	}
	missing := map[int64][]string{}
	for run, of := range shards {
		for number := 1; number <= of; number++ {
			if !there[shard{run, number}] {
				missing[run] = append(missing[run], strconv.Itoa(number))
			}
		}
	}
	return missing
}

// groups puts together the sides of the same subscription, in the order of appearance.
func groups(sides []*Side) (list [][]*Received) {
	type key struct {
		destination  string
		subscription string
		side         int // for private ones: place of the side plus one
	}
	at := map[key]int{} // in the list
	for i, side := range sides {
		for _, part := range side.Received {
			k := key{destination: part.Destination, subscription: part.Subscription}
			if part.Private {
				k.side = i + 1
			}
			n, known := at[k]
			if !known {
				n, list = len(list), append(list, nil)
				at[k] = n
			}
			list[n] = append(list[n], part)
		}
	}
	return list
}

// scope judges one subscription.
func (j *judge) scope(parts []*Received) *Scope {
	s := &Scope{Examples: map[Kind][]Message{}, Subscription: result.Subscription{
		Destination: parts[0].Destination, Name: parts[0].Subscription, Known: len(j.sent) > 0 && len(j.absent) == 0,
	}}
	streams, cutOff := map[Stream]*stream{}, map[Stream]bool{}
	var order []Stream
	for _, part := range parts {
		s.Foreign += part.Foreign
		s.Illegible += part.Illegible
		s.Damaged += part.Illegible
		if part.Selective {
			s.Known, j.partial = false, true
		}
		for _, st := range part.Streams {
			if have := streams[st.Stream]; have != nil {
				st = have.join(st, cutOff[st.Stream], part.CutOff)
			} else {
				order = append(order, st.Stream)
			}
			streams[st.Stream] = st
			cutOff[st.Stream] = cutOff[st.Stream] || part.CutOff
		}
	}
	var own []Stream // without those of strangers
	for _, key := range order {
		st, sent := streams[key], j.sent[key]
		shard := sent == nil && len(j.absent[key.Run]) > 0 // of another one
		if !shard && len(j.sent) > 0 && (sent == nil || sent.Destination != parts[0].Destination) {
			s.Foreign += st.Copies
			continue
		}
		own, j.runs[key.Run] = append(own, key), true
		if sent != nil {
			s.arrived(st, sent.Count, sent.Resent)
			continue
		}
		end := endOf(st.arrived)
		s.arrived(st, end, nil)
		if !shard {
			s.Gaps += end - st.arrived.GetCardinality()
		}
	}
	if len(s.Examples[Duplicated]) == 0 { // all copies are explained
		for _, key := range own {
			s.examples(Duplicated, key, streams[key].doubled)
		}
	}
	if s.Known {
		for _, key := range j.order {
			if sent := j.sent[key]; sent.Destination == parts[0].Destination {
				j.compare(s, key, streams[key], j.when(parts, key), boundsOf(parts, key, sent))
			}
		}
	}
	return s
}

// arrived adds the counts of a stream that do not depend on the outcomes of its sends. Numbers from end on were never
// sent.
func (s *Scope) arrived(st *stream, end uint64, resent tally) {
	within := below(st.arrived, end)
	s.Foreign += st.arrived.GetCardinality() - within
	s.Received += within
	s.Once += within - min(within, st.doubled.GetCardinality())
	s.Duplicates += st.Duplicates
	s.Redelivered += st.Redelivered
	twice, counted := st.explain(resent, nil)
	s.Resent += twice
	s.AfterOutage += st.AfterOutage - counted
	s.Disordered += st.late.GetCardinality()
	s.DisorderedRedelivered += st.lateMarked.GetCardinality()
	s.Damaged += st.Damaged
	s.examples(Duplicated, st.Stream, st.unexplained(resent))
	s.examples(Disordered, st.Stream, st.late)
	for _, n := range st.DamagedFirst {
		s.example(Damaged, st.Stream, uint64(n))
	}
	if w := st.Window; w != nil {
		s.Add(&w.Counts)
		for kind, list := range w.Examples {
			s.examples(kind, st.Stream, roaring64.BitmapOf(list...))
		}
	}
}

func (s *Scope) examples(kind Kind, key Stream, numbers *roaring64.Bitmap) {
	for it := numbers.Iterator(); it.HasNext() && s.example(kind, key, it.Next()); {
	}
}

// timing says how to read that a message did not arrive.
type timing struct {
	late  bool // the subscription may have been opened after the producer had begun: messages before its first are early
	never bool // and even after it had ended
	left  bool // the consumers did not wait for all: it may still be at the broker
}

func (j *judge) when(parts []*Received, key Stream) timing {
	sent := j.sent[key]
	t := timing{late: true, never: true, left: true}
	for _, part := range parts {
		_, known := part.Sent[key] // whether the messages sent before it are known
		late := part.Late && part.Opened > sent.Started && !known
		t.late = t.late && late
		t.never = t.never && late && part.Opened > sent.Ended
		if part.Drained && part.Ended >= j.ended[sent.Destination] {
			t.left = false
		}
	}
	return t
}

// boundsOf returns which messages of a producer were sent while a subscription existed.
func boundsOf(parts []*Received, key Stream, sent *Sent) Bounds {
	b := Bounds{To: sent.Count}
	for i, part := range parts {
		of, ok := part.Sent[key]
		if !ok {
			return Bounds{To: sent.Count}
		}
		if i == 0 {
			b = of
		}
		b.From, b.To = min(b.From, of.From), max(b.To, of.To)
	}
	b.To = min(b.To, sent.Count)
	b.From = min(b.From, b.To)
	return b
}

// compare counts the messages of a producer that should have arrived and did not, and the other way round.
func (j *judge) compare(s *Scope, key Stream, st *stream, t timing, bounds Bounds) {
	sent := j.sent[key]
	if st == nil {
		st = newStream(key)
	}
	missing, outcomes := st.Window.within(bounds), sent.byOutcome()
	for i, e := range fatesIn(&s.Verified) {
		arrived, within := roaring64.And(st.arrived, outcomes[i]), bounds.of(st.Window.unjudged(outcomes[i]))
		*e.arrived += arrived.GetCardinality()
		*e.missing += within.GetCardinality() - st.arrived.AndCardinality(within)
		s.examples(e.kind, key, arrived)
		missing.AndNot(outcomes[i])
	}
	s.Expected += missing.GetCardinality()
	missing.AndNot(st.arrived)
	first := uint64(0)
	if t.late && !st.arrived.IsEmpty() {
		first = st.arrived.Minimum()
	} else if t.never {
		first = bounds.To
	}
	if st.Window != nil {
		for it := st.Window.lost.Iterator(); it.HasNext() && j.lostMark(sent.Marks, it.Next()); {
		}
	}
	s.Early += below(missing, first)
	missing.RemoveRange(0, first)
	if t.left {
		s.Left += missing.GetCardinality()
		return
	}
	s.Lost += missing.GetCardinality()
	for it := missing.Iterator(); it.HasNext(); {
		n := it.Next()
		if marked := j.lostMark(sent.Marks, n); !s.example(Lost, key, n) && !marked {
			break
		}
	}
}

// lostMark counts a lost message for the first mark after it. It returns false if no mark follows.
func (j *judge) lostMark(marks []Bounds, n uint64) bool {
	for i, mark := range marks {
		if i == len(j.lostBefore) {
			j.lostBefore = append(j.lostBefore, 0)
		}
		if n < mark.To {
			if n >= mark.From {
				j.lostBefore[i]++
			}
			return true
		}
	}
	return false
}

// unwatched finds destinations that were sent to, but that no side received from.
func (j *judge) unwatched(r *Result) {
	if len(r.Scopes) == 0 || len(j.absent) > 0 {
		return // a producer alone, or other processes receive
	}
	watched := map[string]bool{}
	for _, s := range r.Scopes {
		watched[s.Destination] = true
	}
	for _, key := range j.order {
		if d := j.sent[key].Destination; !watched[d] && j.sent[key].Count > 0 {
			watched[d] = true
			r.Unwatched = append(r.Unwatched, d)
		}
	}
}

// lostOnQueues reports whether messages were lost on queues, where other consumers may take messages away.
func (r *Result) lostOnQueues() bool {
	return slices.ContainsFunc(r.Scopes, func(s Scope) bool {
		return s.Lost > 0 && strings.HasPrefix(s.Destination, driver.Queue.String()+":")
	})
}

func (j *judge) notes(r *Result) {
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	half := func(others string) {
		note("without the %s no losses are detected: perfmq verify joins the files of all", others)
	}
	t := &r.Total
	for _, run := range slices.Sorted(maps.Keys(j.absent)) {
		note("shards of run %d %s: %s; perfmq merge or perfmq verify joins all and detects losses", run, AbsentNote,
			words.First(j.absent[run], maxNamed, ", "))
	}
	switch {
	case len(j.absent) > 0:
	case len(r.Scopes) == 0:
		half("consumers")
	case len(j.sent) == 0:
		half("producers")
	case j.partial:
		note("with a selector, or a filter or offset of a stream, losses are not detected")
	}
	if t.Lost > 0 && r.lostOnQueues() {
		note("messages of the queue's other consumers look lost here")
	}
	if t.Lost > 0 && j.expires {
		note("the broker may have dropped lost messages by their time to live")
	}
	if r.forgotten > 0 {
		note("judged messages no longer known by number: %d; one that comes now counts as duplicated", r.forgotten)
	}
	if t.Early > 0 {
		note("messages sent before the subscription existed: %d", t.Early)
	}
	if t.Gaps > 0 {
		note("numbers missing below the highest received: %d; other consumers may have had them", t.Gaps)
	}
}
