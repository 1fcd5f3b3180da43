package stats

import (
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// ConsumerRecorder counts and times the messages of one consumer. The phase argument of its methods is the phase to
// which the message belongs: Warmup or Measure.
type ConsumerRecorder struct {
	// Written only by the receiving goroutine; atomic because the collector reads them.
	// nanoseconds spent on simulated work, and held back by a rate; a span in progress not included
	worked, paced atomic.Int64
	working       atomic.Int64 // start of the work in progress, nanoseconds from the start of the run plus 1; 0 if none

	ledgers
	// transacted: messages are sent in transactions, so that a message may have been sent long before the broker got it.
	transacted bool
	from       []result.Arrival // by shard, since the last collection; nil without shards
	received   bool             // a message came since Begin
	first      time.Duration    // the time of the first message since Begin, from the start of the run
	last       time.Duration
}

// SetTransacted records that the messages are sent in transactions. Call it before the first message.
func (r *ConsumerRecorder) SetTransacted() { r.transacted = true }

// Begin resets the first and the last message at the start of a step.
func (r *ConsumerRecorder) Begin() {
	r.mu.Lock()
	r.received = false
	r.mu.Unlock()
}

// FirstAndLast returns when the first and the last message since Begin were delivered, from the start of the run; false
// if there was none.
func (r *ConsumerRecorder) FirstAndLast() (first, last time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first, r.last, r.received
}

// NewConsumerRecorder returns an empty recorder.
func NewConsumerRecorder() *ConsumerRecorder { return new(ConsumerRecorder) }

// Work records that the consumer begins to work on a message; now is the time since the start of the run.
func (r *ConsumerRecorder) Work(now time.Duration) { r.working.Store(int64(now) + 1) }

// Worked records that work on a message is over. paced is the part of it that only served to keep a rate.
func (r *ConsumerRecorder) Worked(now, paced time.Duration) {
	took := max(0, int64(now)+1-r.working.Load())
	held := min(max(0, int64(paced)), took)
	r.paced.Add(held)
	r.worked.Add(took - held)
	r.working.Store(0)
	r.Ready(now)
}

// Ready records that the consumer can receive from now on, after it was opened or has worked on a message; now is the
// time since the start of the run.
func (r *ConsumerRecorder) Ready(now time.Duration) {
	r.mu.Lock()
	r.quiet.recordReady(now)
	r.mu.Unlock()
}

// takeGaps returns the gaps since the last call, and the one in progress. With owed, a message waits at the broker.
func (r *ConsumerRecorder) takeGaps(now time.Duration, owed, last bool) workerGaps {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := never
	if owed && r.working.Load() == 0 { // else nothing can come now
		since = now
	}
	return r.quiet.takeGaps(since, last)
}

// workedUntil returns the consumer's times of work and of waits by a rate. A span in progress counts as work.
func (r *ConsumerRecorder) workedUntil(now time.Duration) (worked, paced time.Duration) {
	since := r.working.Load()
	worked, paced = time.Duration(r.worked.Load()), time.Duration(r.paced.Load())
	if since > 0 {
		worked += max(0, now+1-time.Duration(since))
	}
	return worked, paced
}

// Receipt is a message as its consumer saw it.
type Receipt struct {
	Due         Phase // the phase of the message
	Redelivered bool  // the broker marked it as delivered before
	Rejected    bool  // the consumer rejects it
	// it may have come before, and been given back, or was deferred: its wait is unknown
	Again   bool
	Stamped bool // it has a send time: Transfer is known
	// from the send to the delivery; a negative value, which clocks of two machines can cause, is counted and enters no
	// distribution
	Transfer time.Duration
	Paused   bool          // perfmq was paused meanwhile
	Size     int           // bytes of its body
	At       time.Duration // of its delivery, from the start of the run
	Delay    time.Duration // the requested delay of the delivery after the send; 0 for none
	// number of the shard that sent it, from 1; 0 for this process. Only with [ConsumerRecorder.SetShards]
	Shard int
}

// Received counts a message.
func (r *ConsumerRecorder) Received(m Receipt) {
	r.mu.Lock()
	if !r.received {
		r.received, r.first = true, m.At
	}
	r.last = m.At
	p := &r.part[m.Due]
	p.n[result.Received]++
	p.n[result.ReceivedBytes] += uint64(m.Size) //nolint:gosec // not negative
	since := m.At                               // it is not known to have waited
	if m.Stamped && !m.Again && !r.transacted {
		since = min(m.At, since-m.Transfer+m.Delay) // while the broker delays it, there is nothing to wait for
	}
	r.quiet.recordSign(since, m.At)
	if m.Redelivered {
		p.n[result.Redelivered]++
	}
	if m.Rejected {
		p.n[result.ConsumerRejected]++
	}
	if m.Stamped {
		if m.Shard > 0 {
			arrive(&r.from[m.Shard-1], 1, result.Difference(m.Transfer.Microseconds()))
		}
		if m.Delay > 0 {
			p.n[result.Delayed]++
			if by := m.Transfer - m.Delay; by <= -delayUnit {
				p.n[result.Early]++
			} else {
				p.record(result.Lateness, max(0, by))
			}
		}
		if m.Transfer < -stampAhead {
			p.n[result.NegativeTransfers]++
		} else {
			p.record(result.Transfer, max(0, m.Transfer))
		}
		if m.Paused {
			p.n[result.Paused]++
		}
	} else {
		p.n[result.Unstamped]++
	}
	r.mu.Unlock()
}

// stampAhead bounds the lead of a message's time over the clock: a producer stamps its first message after the warm-up,
// and other messages of that microsecond, a microsecond later than the clock.
const stampAhead = time.Microsecond

// delayUnit is the unit in which protocols and brokers count delays: a message that comes a part of it early is on
// time.
const delayUnit = time.Millisecond

// Ages records how old a message, counted by [ConsumerRecorder.Received], is at its delivery: since it was born and
// since it was stored. All times are in microseconds since the Unix epoch; 0 means unknown. Negative ages are counted
// and enter no distribution.
func (r *ConsumerRecorder) Ages(phase Phase, now, born, stored int64) {
	r.mu.Lock()
	p := &r.part[phase]
	p.age(result.B2C, now, born)
	p.age(result.S2C, now, stored)
	r.mu.Unlock()
}

func (p *ledger) age(kind result.Kind, now, since int64) {
	if since == 0 {
		return
	}
	age := min(now-since, 2*MaxLatency.Microseconds()) // a larger value would overflow a Duration
	if age < 0 {
		p.n[result.NegativeAges]++
		return
	}
	p.record(kind, time.Duration(age)*time.Microsecond)
}

// Foreign counts a message from another run or tool, delivered at that time since the start of the run.
func (r *ConsumerRecorder) Foreign(at time.Duration) { r.notReceived(Measure, result.Foreign, at) }

// Released counts a message that the consumer gives back so that it comes again, delivered at that time since the start
// of the run. It does not count as received.
func (r *ConsumerRecorder) Released(phase Phase, at time.Duration) {
	r.notReceived(phase, result.ConsumerReleased, at)
}

func (r *ConsumerRecorder) notReceived(phase Phase, as result.Counter, at time.Duration) {
	r.mu.Lock()
	r.part[phase].n[as]++
	r.quiet.recordSign(at, at)
	r.mu.Unlock()
}

// Total returns the number of messages received, foreign ones not counted.
func (r *ConsumerRecorder) Total() uint64 { return r.Count(result.Received) }

// Arrived returns the number of deliveries, including foreign messages and messages given back.
func (r *ConsumerRecorder) Arrived() uint64 {
	return r.Count(result.Received, result.Foreign, result.ConsumerReleased)
}

// HostCounts returns the messages so far.
func (r *ConsumerRecorder) HostCounts() Counters { return Counters{result.Received: r.Total()} }

// SetShards lets the recorder keep the messages of that many shards apart. Call it before the first message.
func (r *ConsumerRecorder) SetShards(shards int) {
	r.from = make([]result.Arrival, shards)
}

// arrive adds messages of another shard, with the transfer time of the fastest by the clocks of both processes: below
// zero if the clocks differ by more than that.
func arrive(a *result.Arrival, messages uint64, fastest result.Difference) {
	if messages > 0 && (a.Messages == 0 || fastest < a.Fastest) {
		a.Fastest = fastest
	}
	a.Messages += messages
}

// arrivals returns the messages that came from other shards since the last call.
func (c *Collector) arrivals() (list []result.Arrival) {
	var sum []result.Arrival
	for _, r := range c.consumers {
		r.mu.Lock()
		if sum == nil {
			sum = make([]result.Arrival, len(r.from))
		}
		for i, a := range r.from {
			arrive(&sum[i], a.Messages, a.Fastest)
			r.from[i] = result.Arrival{}
		}
		r.mu.Unlock()
	}
	for i, a := range sum {
		if a.Shard = i + 1; a.Messages > 0 {
			list = append(list, a)
		}
	}
	return list
}
