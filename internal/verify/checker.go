package verify

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	bufferSize = 1024 // spans that a checker keeps before it gives them to its tracker
	cacheSize  = 256  // lanes that are found without a map; a power of two
)

// Verdict is the judgement of a checker on a delivery.
type Verdict uint8

// The verdicts.
const (
	Own       Verdict = iota // a message of the run, perhaps damaged
	Foreign                  // a message without ID, or of another run
	Illegible                // the ID is damaged: whose message it is cannot be told
)

// Checker checks the deliveries of one consumer. Check is for one goroutine; the rest is safe for concurrent use.
type Checker struct {
	tracker *Tracker
	run     int64
	sums    *summer

	mu    sync.Mutex // rarely contended: other goroutines take it once a second, and in the drain
	spans []span     // complete
	lanes map[Stream]*lane
	cache [cacheSize]*lane
	busy  []*lane // lanes with an open span
	n     unnamed
}

// unnamed holds the counts of a checker that belong to no stream.
type unnamed struct {
	foreign, illegible uint64
	last               int64 // when the last message came that is not foreign; microseconds since the Unix epoch
}

// lane is one producer as one consumer sees it.
type lane struct {
	key  Stream
	end  int64 // the highest number so far plus one
	open span  // not complete yet; empty if from == to
	busy bool
}

// Outages are the run's: a broker redelivers messages that the consumers could not settle.
type Outages interface {
	// Explain reports whether a consumer lost its connection a short time ago. It is called for each message, by the
	// goroutine that has received it.
	Explain() bool
	// Receiving reports whether a consumer has lost its connection: it also explains all copies that the broker marks
	// as redelivered.
	Receiving() bool
}

// Reconnecting notes that consumers may lose their connections and open them again. Call it before the first Check.
func (t *Tracker) Reconnecting(o Outages) { t.outages = o }

// NewChecker returns the checker of one more consumer of t. With a run, messages of other runs are foreign.
func NewChecker(t *Tracker, run int64) *Checker {
	c := &Checker{
		tracker: t, run: run, sums: newSummer(), spans: make([]span, 0, bufferSize), lanes: map[Stream]*lane{},
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checkers = append(t.checkers, c)
	return c
}

// Check checks a delivery that came now, in microseconds since the Unix epoch.
func (c *Checker) Check(d *driver.Delivery, now int64) Verdict { //nolint:gocyclo // the path of a message
	id := d.ID
	intact, legible := true, true
	// A run that numbers its messages sends no text with a run number alone: such a text was cut off.
	numbered := id != (driver.ID{}) && (id.Number != driver.Unnumbered || id.Run == c.run)
	if numbered {
		legible = id.Sum>>32 == c.sums.id(&id) && id.Run > 0 && id.Producer >= 0 && id.Number >= 0 && id.Number < maxNumbers
		intact = crc32.Checksum(d.Body, c.sums.table) == uint32(id.Sum)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !legible {
		c.n.illegible++
		c.n.last = now
		return Illegible
	}
	var l *lane
	if numbered && (!c.tracker.windowed || c.run == 0 || id.Run == c.run) {
		l = c.lane(Stream{id.Run, id.Producer})
	}
	if l == nil {
		c.n.foreign++
		return Foreign
	}
	var flags uint8
	if d.Redelivered {
		flags = redelivered
	}
	if o := c.tracker.outages; o != nil && (d.Redelivered || o.Explain()) {
		flags |= afterOutage
	}
	n := uint64(id.Number)
	if id.Number < l.end-1 {
		flags |= behind
	} else {
		l.end = id.Number + 1
	}
	if l.open.to == n && l.open.flags == flags && l.busy {
		l.open.to++
	} else {
		c.begin(l, n, flags)
	}
	if !intact {
		c.tracker.damaged(l.open.stream, id.Number)
	}
	if c.run != 0 && id.Run != c.run {
		return Foreign
	}
	c.n.last = now
	return Own
}

// lane returns the lane of a producer; nil if there are too many.
func (c *Checker) lane(key Stream) *lane {
	place := &c.cache[uint64(key.Run^key.Producer)%cacheSize]
	if l := *place; l != nil && l.key == key {
		return l
	}
	l := c.lanes[key]
	if l == nil {
		s := c.tracker.stream(key)
		if s == nil {
			return nil
		}
		l = &lane{key: key, open: span{stream: s}}
		c.lanes[key] = l
	}
	*place = l
	return l
}

// begin completes the open span of l and opens another one.
func (c *Checker) begin(l *lane, n uint64, flags uint8) {
	if l.busy {
		c.complete(l)
	} else {
		l.busy = true
		c.busy = append(c.busy, l)
	}
	l.open.from, l.open.to, l.open.flags = n, n+1, flags
}

// complete adds the open span of l to the complete ones.
func (c *Checker) complete(l *lane) {
	if len(c.spans) == cap(c.spans) {
		c.deliver()
	}
	c.spans = append(c.spans, l.open)
}

func (c *Checker) deliver() {
	if len(c.spans) > 0 {
		c.tracker.merge(c.spans)
		c.spans = c.spans[:0]
	}
}

// flush gives all to the tracker, and returns the rest.
func (c *Checker) flush() unnamed {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.busy {
		c.complete(l)
		l.busy = false
	}
	c.busy = c.busy[:0]
	c.deliver()
	return c.n
}

// idMask leaves 31 of the 32 bits of a checksum, so that an ID's Sum is never negative.
const idMask = 1<<31 - 1

// castagnoli is the polynomial that processors have instructions for.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// BodySum returns the part of a message's checksum that is about its body.
func BodySum(body []byte) uint32 { return crc32.Checksum(body, castagnoli()) }

// Sum returns the checksum of a message with that ID and body; it ignores id.Sum. The upper 31 bits are a CRC-32C of
// the ID, so that a damaged ID does not pass for another message's; the lower 32 bits are a CRC-32C of the body.
func Sum(id driver.ID, body uint32) int64 {
	s := newSummer()
	return s.sum(&id, body)
}

// summer computes checksums without allocating. It is for one goroutine.
type summer struct {
	table *crc32.Table
	buf   [24]byte
	// Of the ID computed last, as most messages differ from the one before only in their number:
	run, producer int64
	prefix        uint32
}

func newSummer() *summer {
	s := &summer{table: castagnoli()}
	s.prepare(0, 0)
	return s
}

func (s *summer) prepare(run, producer int64) {
	binary.LittleEndian.PutUint64(s.buf[0:], uint64(run))
	binary.LittleEndian.PutUint64(s.buf[8:], uint64(producer))
	s.run, s.producer, s.prefix = run, producer, crc32.Update(0, s.table, s.buf[:16])
}

// id returns the checksum of run, producer and number.
func (s *summer) id(id *driver.ID) int64 {
	if id.Run != s.run || id.Producer != s.producer {
		s.prepare(id.Run, id.Producer)
	}
	binary.LittleEndian.PutUint64(s.buf[16:], uint64(id.Number))
	return int64(crc32.Update(s.prefix, s.table, s.buf[16:]) & idMask)
}

func (s *summer) sum(id *driver.ID, body uint32) int64 { return s.id(id)<<32 | int64(body) }

// maxTally bounds the count of a number: copies and resends of one message beyond it look alike.
const maxTally = 8

// tally counts the additions of each number. The set at i holds the numbers added more than i times.
type tally []*roaring64.Bitmap

func (t *tally) add(n uint64) {
	for _, set := range *t {
		if set.CheckedAdd(n) {
			return
		}
	}
	if len(*t) < maxTally {
		*t = append(*t, roaring64.BitmapOf(n))
	}
}

// remove takes the last add of a number back.
func (t tally) remove(n uint64) {
	for _, set := range slices.Backward(t) {
		if set.CheckedRemove(n) {
			return
		}
	}
}

// of returns the number of additions of a number.
func (t tally) of(n uint64) (times uint64) {
	for _, set := range t {
		if !set.Contains(n) {
			break
		}
		times++
	}
	return times
}

// plus returns the tally of the numbers of both.
func (t tally) plus(o tally) (sum tally) {
	for _, set := range t {
		sum = append(sum, set.Clone())
	}
	for _, set := range o {
		for it := set.Iterator(); it.HasNext(); {
			sum.add(it.Next())
		}
	}
	return sum
}

// extra counts the copies of each message beyond its first.
func (s *stream) extra() tally { return append(tally{s.doubled}, s.More...) }

// explain counts the copies in a stream that came because their messages were sent again: per message no more than its
// resends. It includes copies that an outage explains, too. Without doubled, it counts all.
func (s *stream) explain(resent tally, doubled *roaring64.Bitmap) (twice, counted uint64) {
	if len(resent) == 0 || s.doubled.IsEmpty() {
		return 0, 0
	}
	copies := s.extra()
	for it := roaring64.And(cmp.Or(doubled, s.doubled), resent[0]).Iterator(); it.HasNext(); {
		n := it.Next()
		came, after := copies.of(n), s.Outaged.of(n)
		explained := min(came, resent.of(n))
		twice += explained
		counted += after - min(after, came-explained)
	}
	return twice, counted
}

// unexplained returns the messages with a copy that neither an outage nor a resend explains.
func (s *stream) unexplained(resent tally) *roaring64.Bitmap {
	if len(resent) == 0 && len(s.Outaged) == 0 {
		return s.doubled
	}
	copies, list := s.extra(), roaring64.New()
	for it := s.doubled.Iterator(); it.HasNext(); {
		if n := it.Next(); copies.of(n) > s.Outaged.of(n)+resent.of(n) {
			list.Add(n)
		}
	}
	return list
}
