package load

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Sample chooses one of so many messages at random, by their numbers alone: all processes choose the same. The zero
// value chooses none.
type Sample uint64

// String returns the text that [ParseSample] reads.
func (s Sample) String() string { return fmt.Sprintf("1/%d", uint64(s)) }

// ParseSample reads a share such as 1/1000.
func ParseSample(text string) (Sample, error) {
	number, ok := strings.CutPrefix(strings.ReplaceAll(text, " ", ""), "1/")
	n, err := quantity.Whole(number, 1, 1_000_000_000)
	if !ok || err != nil {
		return 0, errors.New("must be like 1/1000")
	}
	return Sample(n), nil
}

// has reports whether a message is chosen.
func (s Sample) has(producer, number int64) bool {
	h := uint64(producer)*0x9e3779b97f4a7c15 + uint64(number) + 1 // murmur3's finalizer spreads neighbours
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	part, _ := bits.Mul64(h^h>>33, uint64(s)) // of s parts of all hashes
	return part == 0
}

// maxTraced is the number of events that a worker keeps until they are taken, once a second.
const maxTraced = 8192

// Trace keeps events in the lives of the sampled messages of a worker. Nil traces nothing.
type Trace struct {
	Sample Sample
	Worker string        // its name
	Host   func() string // of its broker, at present
	// Origin is the identity of a producer; Body returns the body of a variant of its messages.
	Origin driver.ID
	Body   func(variant int) []byte

	mu      sync.Mutex
	events  []result.TraceEvent
	dropped uint64
}

// Take returns the events since the last call, and the number that had no room.
func (t *Trace) Take() (events []result.TraceEvent, dropped uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	events, dropped = t.events, t.dropped
	t.events, t.dropped = nil, 0
	return events, dropped
}

func (t *Trace) add(id driver.ID, e result.TraceEvent) {
	e.ID = fmt.Sprintf("%d-%d-%d", id.Run, id.Producer, id.Number)
	e.Worker, e.Host = t.Worker, t.Host()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) == maxTraced {
		t.dropped++
		return
	}
	t.events = append(t.events, e)
}

// identify returns the ID of a message of an unverified run: the sampled ones have their number.
func (t *Trace) identify(number int64, m *driver.Message) driver.ID {
	id := t.Origin
	if t.Sample.has(id.Producer, number) {
		id.Number = number
		id.Sum = verify.Sum(id, verify.BodySum(m.BodyOr(t.Body(m.Variant))))
	}
	return id
}

// trace notes an event of the message in a place, if it is sampled.
func (p *Producer) trace(place *place, event string, at time.Duration) {
	t := p.cfg.Trace
	if !t.Sample.has(t.Origin.Producer, place.number) {
		return
	}
	id := t.Origin
	id.Number = place.number
	if event == result.TraceSent && !p.load.Schedule.IsZero() {
		t.add(id, result.TraceEvent{Event: result.TraceDue, Time: p.clock.Epoch(place.intended)})
	}
	t.add(id, result.TraceEvent{Event: event, Time: p.clock.Epoch(at)})
}

// traceEnd notes the end of a message.
func (p *Producer) traceEnd(place *place, o *driver.Outcome, now time.Duration) {
	event := o.State.String()
	switch o.State {
	case driver.Accepted:
		event = result.TraceCompleted
	case driver.Unknown:
		event = "unconfirmed"
	}
	p.trace(place, event, now)
}

// traces reports whether a delivery is of a sampled message.
func (c *Consumer) traces(id *driver.ID) bool {
	return id.Run > 0 && id.Number != driver.Unnumbered && (!c.cfg.OwnOnly || id.Run == c.cfg.Run) &&
		c.cfg.Trace.Sample.has(id.Producer, id.Number)
}

// trace notes the receipt of a message and its end at the consumer.
func (c *Consumer) trace(d *driver.Delivery, received time.Duration, verdict driver.Verdict) {
	e := result.TraceEvent{Event: result.TraceReceived, Time: c.clock.Epoch(received)}
	if d.Redelivered {
		e.Event = result.TraceRedelivered
	}
	if d.HasTime && d.Time > 0 && d.Time < e.Time+stats.MaxLatency.Microseconds() {
		e.Sent = d.Time
	}
	c.cfg.Trace.add(d.ID, e)
	outcome := map[driver.Verdict]string{
		driver.Accept: "accepted", driver.Reject: "rejected", driver.Release: "released",
	}
	c.cfg.Trace.add(d.ID, result.TraceEvent{
		Event: result.TraceSettled, Time: c.clock.Epoch(c.clock.Now()), Outcome: outcome[verdict],
	})
}
