package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// MaxTraceEvents is the largest number of events in the trace of a run, about 150 MB; further ones are counted.
const MaxTraceEvents = 1_000_000

// Trace is the extent of trace.jsonl.
type Trace struct {
	// Sample is the sampled share of the messages, such as 1/1000.
	Sample string `json:"sample"`
	// Events is the number of lines. Dropped is the number of events beyond the limits of a worker and of the run.
	Events  uint64 `json:"events"`
	Dropped uint64 `json:"dropped,omitempty"`
}

// The events in the life of a message. A producer's message may also end as rejected, released, modified, failed or
// unconfirmed, in place of completed.
const (
	TraceDue         = "due"         // by the rate; not in a closed loop
	TraceSent        = "sent"        // for the first time
	TraceResent      = "resent"      // once more, as its end was in doubt
	TraceCompleted   = "completed"   // confirmed by the broker
	TraceReceived    = "received"    // by a consumer
	TraceRedelivered = "redelivered" // received, and marked by the broker as delivered before
	TraceSettled     = "settled"     // the consumer has accepted, rejected or released it
)

// TraceEvent is a line of trace.jsonl.
type TraceEvent struct {
	// ID is the run of the sending process, the producer and the number of the message: 6130672371284362087-0-9999.
	ID string `json:"id"`
	// Event is one of due, sent, resent, completed (or rejected, released, modified, failed, unconfirmed), received,
	// redelivered and settled.
	Event string `json:"event"`
	// Time is its moment, in microseconds since the Unix epoch.
	Time int64 `json:"time"`
	// Worker is the producer or consumer, Host the host of its broker; missing if unknown.
	Worker string `json:"worker"`
	Host   string `json:"host,omitempty"`
	// Shard is the number of the process that noted it, in merged results.
	Shard int `json:"shard,omitempty"`
	// Outcome is accepted, rejected or released; of settled only.
	Outcome string `json:"outcome,omitempty"`
	// Sent is the time of sending that the message carried; of received and redelivered only, and not in merged
	// results.
	Sent int64 `json:"sent,omitempty"`
}

// Traced is a message with the moments of its life, in microseconds since the Unix epoch; 0 if unknown.
type Traced struct {
	ID                                  string
	Due, Sent, Ended, Received, Settled int64
	End                                 string // completed, or how else it ended
	Deliveries, Redelivered, Resent     int
	Producer, Consumer                  string
}

// Begin returns when the message was due, or was sent in a closed loop.
func (t *Traced) Begin() int64 { return cmp.Or(t.Due, t.Sent) }

// Took returns the time to its end or its receipt, whichever was later; 0 if it had neither.
func (t *Traced) Took() int64 { return max(0, max(t.Ended, t.Received)-t.Begin()) }

// Trace appends events to trace.jsonl.
func (w *Writer) Trace(events []TraceEvent) (err error) {
	if len(events) == 0 {
		return nil
	}
	if w.trace == nil {
		if w.trace, err = create(filepath.Join(w.dir, TraceFile)); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	for i := range events {
		line, err := Encode(&events[i], "")
		if err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		b.Write(line)
	}
	return w.trace.append(b.Bytes())
}

// MergeTrace appends the trace of a shard, whose clock was so many microseconds ahead of the first one's.
func (w *Writer) MergeTrace(dir string, shard int, ahead int64) error {
	var list []TraceEvent
	err := readTrace(dir, func(e *TraceEvent) error {
		e.Time, e.Shard, e.Sent = e.Time-ahead, shard, 0 // the other clock is unknown here
		if list = append(list, *e); len(list) < 1000 {
			return nil
		}
		full := list
		list = list[:0]
		return w.Trace(full)
	})
	return errors.Join(err, w.Trace(list))
}

// readTrace calls visit for each event of a result; for none if it has no trace.
func readTrace(dir string, visit func(*TraceEvent) error) error {
	err := lines(filepath.Join(dir, TraceFile), func(line []byte) error {
		var e TraceEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.ID == "" || e.Time < 0 || e.Time > maxCounter || e.Sent < 0 || e.Sent > maxCounter {
			return errors.New("it is no event of a message")
		}
		return visit(&e)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Slowest returns the n slowest messages of the traces of results, the slowest first. Their clocks are taken to agree.
func Slowest(n int, dirs ...string) ([]Traced, error) {
	known := map[string]*Traced{}
	for _, dir := range dirs {
		err := readTrace(dir, func(e *TraceEvent) error {
			t := known[e.ID]
			if t == nil {
				t = &Traced{ID: e.ID}
				known[e.ID] = t
			}
			t.add(e)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var list []Traced
	for _, t := range known {
		if t.Begin() > 0 && t.Took() > 0 {
			list = append(list, *t)
		}
	}
	slices.SortFunc(list, func(a, b Traced) int {
		return cmp.Or(cmp.Compare(b.Took(), a.Took()), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(n, len(list))], nil
}

// add adds an event; its order among the others does not matter.
func (t *Traced) add(e *TraceEvent) {
	worker := e.Worker
	if e.Shard > 0 {
		worker = fmt.Sprintf("%s (shard %d)", worker, e.Shard)
	}
	switch e.Event {
	case TraceDue:
		t.Due = e.Time
	case TraceSent:
		t.Sent, t.Producer = e.Time, worker
	case TraceResent:
		t.Resent++
	case TraceReceived, TraceRedelivered:
		t.Deliveries++
		if e.Event == TraceRedelivered {
			t.Redelivered++
		}
		if t.Received == 0 || e.Time < t.Received {
			t.Received, t.Consumer = e.Time, worker
		}
		if t.Sent == 0 {
			t.Sent = e.Sent
		}
	case TraceSettled:
		t.Settled = max(t.Settled, e.Time)
	default:
		t.Ended, t.End = e.Time, e.Event
	}
}
