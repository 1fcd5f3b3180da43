package verify

import (
	"hash/crc32"
	"sync"

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
	if !numbered {
		c.n.foreign++
		return Foreign
	}
	if !legible {
		c.n.illegible++
		c.n.last = now
		return Illegible
	}
	l := c.lane(Stream{id.Run, id.Producer})
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
