package stats

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// ProducerRecorder counts and times the messages of one producer.
type ProducerRecorder struct {
	// Written by the sending goroutine alone; atomic because the collector reads them.
	sent, handed, blocked, late atomic.Uint64

	rated bool // never changes

	_ [64]byte // keep the completions, which run on other processors, off that cache line

	mu     sync.Mutex
	ended  endings
	delay  *Latency // nil without a rate
	ack    *Latency
	resp   *Latency // nil without a rate
	reason [driver.NumClasses]error
}

// endings are the counters that completions write, under the recorder's lock.
type endings struct {
	states     [driver.NumStates]uint64
	failures   [driver.NumStates][driver.NumClasses]uint64
	outOfRange uint64
	unsent     uint64
	withheld   uint64 // of the accepted ones
}

func (e *endings) total() (n uint64) {
	for _, s := range e.states {
		n += s
	}
	return n
}

// NewProducerRecorder returns an empty recorder. With rated, it keeps send delay and response time too.
func NewProducerRecorder(rated bool) *ProducerRecorder {
	r := &ProducerRecorder{rated: rated, ack: NewLatency()}
	if rated {
		r.delay, r.resp = NewLatency(), NewLatency()
	}
	return r
}

// Sent counts a message that is about to be handed to the driver. Call it before the hand-over, or the message might be
// received before it was sent; and [ProducerRecorder.Handed] or [ProducerRecorder.NotSent] after it.
func (r *ProducerRecorder) Sent() { r.sent.Add(1) }

// Handed says that the driver took the message of the last Sent, which left that long after its intended time. Until
// then snapshots leave the message out, as it may yet turn out not to have been sent.
func (r *ProducerRecorder) Handed(delay time.Duration) {
	r.handed.Add(1)
	if !r.rated {
		return
	}
	r.mu.Lock()
	if !r.delay.record(delay) {
		r.ended.outOfRange++
	}
	r.mu.Unlock()
}

// NotSent takes back one Sent: the driver says that the message did not leave.
func (r *ProducerRecorder) NotSent() { r.sent.Add(^uint64(0)) }

// Blocked counts a wait for a free slot.
func (r *ProducerRecorder) Blocked() { r.blocked.Add(1) }

// Late counts a send that left late through the tester's own fault.
func (r *ProducerRecorder) Late() { r.late.Add(1) }

// Done counts the end of a message. Its latencies, from the actual and from the intended send, are recorded if it was
// accepted. Safe for concurrent use.
func (r *ProducerRecorder) Done(o driver.Outcome, ack, response time.Duration) {
	r.mu.Lock()
	r.ended.states[o.State]++
	if o.State == driver.Accepted {
		if o.Withheld {
			r.ended.withheld++
		}
		if !r.ack.record(ack) {
			r.ended.outOfRange++
		}
		if r.rated && !r.resp.record(response) {
			r.ended.outOfRange++
		}
	} else {
		r.fail(o)
	}
	r.mu.Unlock()
}

// Unsent counts the end of a message that the driver could not send, as failed for that reason.
func (r *ProducerRecorder) Unsent(class driver.Class, err error) {
	r.mu.Lock()
	r.ended.states[driver.Failed]++
	r.ended.unsent++
	r.fail(driver.Outcome{State: driver.Failed, Class: class, Err: err})
	r.mu.Unlock()
}

// fail notes why a message was not accepted. The caller holds the lock.
func (r *ProducerRecorder) fail(o driver.Outcome) {
	r.ended.failures[o.State][o.Class]++
	if r.reason[o.Class] == nil {
		r.reason[o.Class] = o.Err
	}
}

// InFlight returns the number of messages handed over and not ended.
func (r *ProducerRecorder) InFlight() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent.Load() - r.ended.total()
}

// Completed returns the number of accepted messages.
func (r *ProducerRecorder) Completed() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended.states[driver.Accepted]
}

// Ended returns the number of messages that have ended, in whatever way.
func (r *ProducerRecorder) Ended() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended.total()
}

// Withheld returns the number of accepted messages that, by plan, will not be delivered.
func (r *ProducerRecorder) Withheld() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended.withheld
}

// FirstError returns the first error of the given class that a message ended with; nil if there was none.
func (r *ProducerRecorder) FirstError(c driver.Class) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason[c]
}

// ConsumerRecorder counts and times the messages of one consumer.
type ConsumerRecorder struct {
	mu       sync.Mutex
	n        received
	transfer *Latency
	b2c, s2c *Latency // nil until the protocol tells such a time
}

type received struct {
	total, redelivered, unstamped, foreign, negative, negativeAges, outOfRange uint64
}

// NewConsumerRecorder returns an empty recorder.
func NewConsumerRecorder() *ConsumerRecorder { return &ConsumerRecorder{transfer: NewLatency()} }

// Received counts a message whose time of sending is known. A negative transfer time, which clocks of two machines can
// cause, is recorded as zero and counted.
func (r *ConsumerRecorder) Received(transfer time.Duration, redelivered bool) {
	r.mu.Lock()
	r.n.total++
	if redelivered {
		r.n.redelivered++
	}
	if transfer < 0 {
		r.n.negative++
		transfer = 0
	}
	if !r.transfer.record(transfer) {
		r.n.outOfRange++
	}
	r.mu.Unlock()
}

// Unstamped counts a message that does not say when it was sent.
func (r *ConsumerRecorder) Unstamped(redelivered bool) {
	r.mu.Lock()
	r.n.total++
	r.n.unstamped++
	if redelivered {
		r.n.redelivered++
	}
	r.mu.Unlock()
}

// Ages records how old a message, counted by [ConsumerRecorder.Received] or [ConsumerRecorder.Unstamped], is at its
// delivery: since it was born and since it was stored. All times are in microseconds since the Unix epoch; 0 means that
// the moment is not known. Negative ages are recorded as zero and counted.
func (r *ConsumerRecorder) Ages(now, born, stored int64) {
	r.mu.Lock()
	r.age(&r.b2c, now, born)
	r.age(&r.s2c, now, stored)
	r.mu.Unlock()
}

func (r *ConsumerRecorder) age(l **Latency, now, since int64) {
	if since == 0 {
		return
	}
	if *l == nil {
		*l = NewLatency()
	}
	age := min(now-since, 2*MaxLatency.Microseconds()) // more would not fit into a Duration
	if age < 0 {
		r.n.negativeAges++
		age = 0
	}
	if !(*l).record(time.Duration(age) * time.Microsecond) {
		r.n.outOfRange++
	}
}

// Foreign counts a message that another run or tool sent.
func (r *ConsumerRecorder) Foreign() {
	r.mu.Lock()
	r.n.foreign++
	r.mu.Unlock()
}

// Redelivered returns how many of the messages received the broker marked as delivered before.
func (r *ConsumerRecorder) Redelivered() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n.redelivered
}

// Total returns the number of messages received, foreign ones not counted.
func (r *ConsumerRecorder) Total() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n.total
}
