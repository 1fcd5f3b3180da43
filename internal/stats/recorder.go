package stats

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// parts is the number of phases that messages belong to: Warmup and Measure.
const parts = 2

// ProducerRecorder counts and times the messages of one producer. The phase that its methods ask for is that in which
// the message was due: Warmup or Measure.
type ProducerRecorder struct {
	// Written by the sending goroutine alone; atomic because the collector reads them.
	sent, handed  [parts]atomic.Uint64
	resent        [parts]atomic.Uint64
	blocked, late atomic.Uint64
	// when Run handed its last message over, nanoseconds since the start of the run
	lastSend atomic.Int64
	stray    atomic.Uint64 // written by completions
	// nanoseconds for which the producer waited, the wait in progress not included
	waited  [numWaitKinds]atomic.Int64
	waiting atomic.Int64 // start and kind of the wait in progress, see waitSince; 0 if it does not

	rated bool   // written under mu, while nothing is being sent
	pulse *Pulse // never changes

	_ [64]byte // keep the completions, which run on other processors, off that cache line

	mu     sync.Mutex
	quiet  quiet
	part   [parts]sendings
	reason [driver.NumClasses]error
}

// sendings are the counts that completions write for the messages of one phase, under the recorder's lock.
type sendings struct {
	states     [driver.NumStates]uint64
	failures   [driver.NumStates][driver.NumClasses]uint64
	outOfRange uint64
	unsent     uint64
	withheld   uint64 // of the accepted ones
	paused     uint64
	payload    uint64 // bytes of the bodies of the accepted ones

	delay, ack, resp Latency // since the last collection
	commits          commits
}

// commits are the transactions of one phase, that in which they were to be committed.
type commits struct {
	confirmed, unconfirmed uint64

	latency *Latency // of the confirmed ones, since the last collection; nil until there is one
}

func (c *commits) add(took time.Duration, confirmed bool) (inRange bool) {
	if !confirmed {
		c.unconfirmed++
		return true
	}
	c.confirmed++
	if c.latency == nil {
		c.latency = NewLatency()
	}
	return c.latency.record(took)
}

func (s *sendings) total() (n uint64) {
	for _, x := range s.states {
		n += x
	}
	return n
}

// NewProducerRecorder returns an empty recorder. With rated, it keeps send delay and response time too. pulse tells of
// the tester's pauses; it may be nil.
func NewProducerRecorder(rated bool, pulse *Pulse) *ProducerRecorder {
	return &ProducerRecorder{rated: rated, pulse: pulse}
}

// Sent counts a message that is about to be handed to the driver. Call it before the hand-over, or the message might be
// received before it was sent; and [ProducerRecorder.Handed] or [ProducerRecorder.NotSent] after it.
func (r *ProducerRecorder) Sent(due Phase) { r.sent[due].Add(1) }

// Handed says that the driver took the message of the last Sent, which left that long after its intended time. Until
// then snapshots leave the message out, as it may yet turn out not to have been sent.
func (r *ProducerRecorder) Handed(due Phase, delay time.Duration) {
	r.handed[due].Add(1)
	if !r.rated {
		return
	}
	r.mu.Lock()
	if p := &r.part[due]; !p.delay.record(delay) {
		p.outOfRange++
	}
	r.mu.Unlock()
}

// Resent counts a message that was handed to the driver once more, as its end was not known.
func (r *ProducerRecorder) Resent(due Phase) { r.resent[due].Add(1) }

// AllResent returns how many messages were handed over once more.
func (r *ProducerRecorder) AllResent() (n uint64) {
	for part := range parts {
		n += r.resent[part].Load()
	}
	return n
}

// NotSent takes back one Sent: the driver says that the message did not leave.
func (r *ProducerRecorder) NotSent(due Phase) { r.sent[due].Add(^uint64(0)) }

// InVain says that a message that was due, and could not be sent until now, will not be: times since the start of the
// run.
func (r *ProducerRecorder) InVain(intended, now time.Duration) {
	r.mu.Lock()
	r.quiet.ended(intended, now)
	r.mu.Unlock()
}

// known returns how many messages are known to have left, of which so many have ended; with last, all that were begun.
func (r *ProducerRecorder) known(ended uint64, last bool) (n uint64) {
	for part := range parts {
		if last {
			n += r.sent[part].Load()
		} else {
			n += r.handed[part].Load()
		}
	}
	if last {
		return n
	}
	return max(n, ended)
}

// Stopped says when the last message of a load was handed over, since the start of the run.
func (r *ProducerRecorder) Stopped(last time.Duration) { r.lastSend.Store(int64(last)) }

// LastSend returns the time of the last call of [ProducerRecorder.Stopped].
func (r *ProducerRecorder) LastSend() time.Duration { return time.Duration(r.lastSend.Load()) }

// Sends returns how many of the messages that were due in a phase have been handed to the driver, or are being so.
func (r *ProducerRecorder) Sends(due Phase) uint64 { return r.sent[due].Load() }

// Blocked counts a wait for a free slot.
func (r *ProducerRecorder) Blocked() { r.blocked.Add(1) }

// Late counts a send that left late although neither the broker nor max-pending held it up.
func (r *ProducerRecorder) Late() { r.late.Add(1) }

// WaitKind is the reason of a wait that the producer itself knows. The waits of its driver are in [driver.Waits].
type WaitKind uint8

// The kinds of waits.
const (
	WaitDue   WaitKind = iota // until the next message is due
	WaitSlot                  // max-pending messages are in flight: for one of them to end
	WaitEnded                 // for nothing: the load of the step is over for this producer
	WaitSend                  // in a Send that took long, of a driver that does not report its waits
	numWaitKinds
)

// waitSince packs when a wait began and its kind into a number above 0.
func waitSince(kind WaitKind, now time.Duration) int64 {
	return (int64(now)+1)*int64(numWaitKinds) + int64(kind)
}

func unpackWait(since int64) (WaitKind, time.Duration) {
	return WaitKind(since % int64(numWaitKinds)), time.Duration(since/int64(numWaitKinds) - 1)
}

// Wait says that the producer begins to wait; now is the time since the start of the run. One that never waits is at
// the limit of the tester. A wait that goes on already goes on.
func (r *ProducerRecorder) Wait(kind WaitKind, now time.Duration) {
	r.waiting.CompareAndSwap(0, waitSince(kind, now))
}

// Waited says that the wait is over.
func (r *ProducerRecorder) Waited(now time.Duration) {
	kind, since := unpackWait(r.waiting.Load())
	r.waited[kind].Add(int64(max(0, now-since)))
	r.waiting.Store(0)
}

// Resume ends the wait, if there is one, from the end of the last step's load to the beginning of the next one's.
func (r *ProducerRecorder) Resume(now time.Duration) {
	if r.waiting.Load() > 0 {
		r.Waited(now)
	}
	r.mu.Lock()
	r.quiet.ready(now)
	r.mu.Unlock()
}

// SetRated tells whether the messages of the next step have intended times. No message is being sent.
func (r *ProducerRecorder) SetRated(rated bool) {
	r.mu.Lock()
	r.rated = rated
	r.mu.Unlock()
}

// HeldUp adds a wait in Send that is over.
func (r *ProducerRecorder) HeldUp(d time.Duration) { r.waited[WaitSend].Add(int64(d)) }

// waitedUntil returns for how long the producer has waited, by kind.
func (r *ProducerRecorder) waitedUntil(now time.Duration) (waited [numWaitKinds]time.Duration) {
	waiting := r.waiting.Load()
	for kind := range waited {
		waited[kind] = time.Duration(r.waited[kind].Load())
	}
	if waiting > 0 {
		kind, since := unpackWait(waiting)
		waited[kind] += max(0, now-since)
	}
	return waited
}

// End is a message that ends: when it was due and sent, since the start of the run, and how many bytes its body has.
type End struct {
	Due              Phase
	Size             uint32
	Intended, Actual time.Duration
}

// Done counts the end of a message. Its latencies are recorded if it was accepted. Safe for concurrent use.
func (r *ProducerRecorder) Done(e End, o driver.Outcome, now time.Duration) {
	r.mu.Lock()
	r.done(&e, &o, now)
	r.mu.Unlock()
}

// DoneAll counts messages that ended alike at the same moment. Safe for concurrent use.
func (r *ProducerRecorder) DoneAll(ends []End, o driver.Outcome, now time.Duration) {
	r.mu.Lock()
	for i := range ends {
		r.done(&ends[i], &o, now)
	}
	r.mu.Unlock()
}

// done counts the end of a message. The caller holds the lock.
func (r *ProducerRecorder) done(e *End, o *driver.Outcome, now time.Duration) {
	p := &r.part[e.Due]
	p.states[o.State]++
	if o.State == driver.Unknown || o.State == driver.Failed && o.Class == driver.ClassConnect { // that is no answer
		r.quiet.ended(e.Intended, now)
	} else {
		r.quiet.came(e.Intended, now)
	}
	if o.State != driver.Accepted {
		r.fail(p, o)
		return
	}
	if o.Withheld {
		p.withheld++
	}
	p.payload += uint64(e.Size)
	if r.pulse.Spans(e.Actual, now) {
		p.paused++
	}
	if !p.ack.record(now - e.Actual) {
		p.outOfRange++
	}
	if r.rated && !p.resp.record(now-e.Intended) {
		p.outOfRange++
	}
}

// Committed counts a transaction of the producer's that has ended. took is the time from asking the broker to commit to
// its answer. Safe for concurrent use.
func (r *ProducerRecorder) Committed(due Phase, took time.Duration, confirmed bool) {
	r.mu.Lock()
	if p := &r.part[due]; !p.commits.add(took, confirmed) {
		p.outOfRange++
	}
	r.mu.Unlock()
}

// Stray counts an answer to no message in flight: one that came too late, or twice.
func (r *ProducerRecorder) Stray() { r.stray.Add(1) }

// Unsent counts the end of a message that the driver could not send, as failed for that reason.
func (r *ProducerRecorder) Unsent(due Phase, class driver.Class, err error) {
	r.mu.Lock()
	p := &r.part[due]
	p.states[driver.Failed]++
	p.unsent++
	r.fail(p, &driver.Outcome{State: driver.Failed, Class: class, Err: err})
	r.mu.Unlock()
}

// fail notes why a message was not accepted. The caller holds the lock.
func (r *ProducerRecorder) fail(p *sendings, o *driver.Outcome) {
	p.failures[o.State][o.Class]++
	if r.reason[o.Class] == nil {
		r.reason[o.Class] = o.Err
	}
}

// InFlight returns the number of messages handed over and not ended.
func (r *ProducerRecorder) InFlight() (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.part {
		n += r.sent[i].Load() - r.part[i].total()
	}
	return n
}

// Completed returns the number of accepted messages.
func (r *ProducerRecorder) Completed() uint64 {
	return r.count(func(s *sendings) uint64 { return s.states[driver.Accepted] })
}

// Ended returns the number of messages that have ended, in whatever way.
func (r *ProducerRecorder) Ended() uint64 { return r.count((*sendings).total) }

// Answered returns the number of messages that the broker has taken or refused: messages that have ended, except those
// with an unknown outcome or without a connection to a broker.
func (r *ProducerRecorder) Answered() uint64 {
	return r.count(func(s *sendings) uint64 {
		return s.total() - s.states[driver.Unknown] - s.failures[driver.Failed][driver.ClassConnect]
	})
}

// Withheld returns the number of accepted messages that, by plan, will not be delivered.
func (r *ProducerRecorder) Withheld() uint64 {
	return r.count(func(s *sendings) uint64 { return s.withheld })
}

func (r *ProducerRecorder) count(of func(*sendings) uint64) (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.part {
		n += of(&r.part[i])
	}
	return n
}

// FirstError returns the first error of the given class that a message ended with; nil if there was none.
func (r *ProducerRecorder) FirstError(c driver.Class) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason[c]
}

// ConsumerRecorder counts and times the messages of one consumer. The phase that its methods ask for is that to which
// the message belongs: Warmup or Measure.
type ConsumerRecorder struct {
	// Written by the receiving goroutine alone; atomic because the collector reads them.
	// nanoseconds spent on simulated work, and held back by a rate; a span in progress not included
	worked, paced atomic.Int64
	working       atomic.Int64 // since when it does so, nanoseconds from the start of the run plus 1; 0 if it does not

	mu    sync.Mutex
	quiet quiet
	part  [parts]receivings
	from  []Arrival     // by shard, since the last collection; nil without shards
	came  bool          // a message, since Begin
	first time.Duration // the time of the first message since Begin, from the start of the run
	last  time.Duration
}

// Begin begins to look for the first and the last message anew: a step begins.
func (r *ConsumerRecorder) Begin() {
	r.mu.Lock()
	r.came = false
	r.mu.Unlock()
}

// Came returns when the first and the last message since Begin were delivered, from the start of the run; false if none
// was.
func (r *ConsumerRecorder) Came() (first, last time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first, r.last, r.came
}

// receivings are the messages of one phase.
type receivings struct {
	total, redelivered, unstamped, foreign, negative, negativeAges, outOfRange, paused, delayed, early uint64
	released, rejected                                                                                 uint64

	payload uint64 // bytes of the bodies

	transfer Latency  // since the last collection
	b2c, s2c *Latency // the same; nil until the protocol tells such a time
	lateness *Latency // the same; nil until there is one
	commits  commits
}

// NewConsumerRecorder returns an empty recorder.
func NewConsumerRecorder() *ConsumerRecorder { return new(ConsumerRecorder) }

// Work says that the consumer begins to work on a message; now is the time since the start of the run.
func (r *ConsumerRecorder) Work(now time.Duration) { r.working.Store(int64(now) + 1) }

// Worked says that work on a message is over, of which paced was only for a rate to be kept.
func (r *ConsumerRecorder) Worked(now, paced time.Duration) {
	took := max(0, int64(now)+1-r.working.Load())
	held := min(max(0, int64(paced)), took)
	r.paced.Add(held)
	r.worked.Add(took - held)
	r.working.Store(0)
	r.Ready(now)
}

// Ready says that the consumer can receive from now on, after it was opened or has worked on a message; now is since
// the start of the run.
func (r *ConsumerRecorder) Ready(now time.Duration) {
	r.mu.Lock()
	r.quiet.ready(now)
	r.mu.Unlock()
}

// workedUntil returns for how long the consumer has worked, and was held back by a rate. A span in progress counts as
// work.
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
	Due         Phase // to which it belongs
	Redelivered bool  // the broker says that it has delivered it before
	Rejected    bool  // the consumer rejects it
	Again       bool  // it may have come before, and been given back: for how long it has waited is not known
	Stamped     bool  // it says when it was sent: Transfer is known
	// from then to its delivery; below zero, which clocks of two machines can cause, is recorded as zero and counted
	Transfer time.Duration
	Paused   bool          // the tester was paused in between
	Size     int           // bytes of its body
	At       time.Duration // of its delivery, from the start of the run
	Delay    time.Duration // for which the broker was to hold it back after it was sent; 0 for none
	// of another process that has sent it, from 1; 0 if none has. Only with [ConsumerRecorder.Arrivals]
	Shard int
}

// Received counts a message.
func (r *ConsumerRecorder) Received(m Receipt) {
	r.mu.Lock()
	if !r.came {
		r.came, r.first = true, m.At
	}
	r.last = m.At
	p := &r.part[m.Due]
	p.total++
	p.payload += uint64(m.Size) //nolint:gosec // not negative
	since := m.At               // it is not known that it waited
	if m.Stamped && !m.Again {
		since = min(m.At, since-m.Transfer+m.Delay) // while the broker holds it back there is nothing to wait for
	}
	r.quiet.came(since, m.At)
	if m.Redelivered {
		p.redelivered++
	}
	if m.Rejected {
		p.rejected++
	}
	if m.Stamped {
		if m.Shard > 0 {
			r.cameFrom(&m)
		}
		if m.Delay > 0 {
			p.late(m.Transfer - m.Delay)
		}
		if m.Transfer < 0 {
			p.negative++
			m.Transfer = 0
		}
		if m.Paused {
			p.paused++
		}
		if !p.transfer.record(m.Transfer) {
			p.outOfRange++
		}
	} else {
		p.unstamped++
	}
	r.mu.Unlock()
}

// late notes how much after its delay a message came.
func (p *receivings) late(by time.Duration) {
	p.delayed++
	if by < 0 {
		p.early++
		return
	}
	if p.lateness == nil {
		p.lateness = NewLatency()
	}
	if !p.lateness.record(by) {
		p.outOfRange++
	}
}

// Ages records how old a message, counted by [ConsumerRecorder.Received], is at its delivery: since it was born and
// since it was stored. All times are in microseconds since the Unix epoch; 0 means that the moment is not known.
// Negative ages are recorded as zero and counted.
func (r *ConsumerRecorder) Ages(due Phase, now, born, stored int64) {
	r.mu.Lock()
	p := &r.part[due]
	p.age(&p.b2c, now, born)
	p.age(&p.s2c, now, stored)
	r.mu.Unlock()
}

func (p *receivings) age(l **Latency, now, since int64) {
	if since == 0 {
		return
	}
	if *l == nil {
		*l = NewLatency()
	}
	age := min(now-since, 2*MaxLatency.Microseconds()) // more would not fit into a Duration
	if age < 0 {
		p.negativeAges++
		age = 0
	}
	if !(*l).record(time.Duration(age) * time.Microsecond) {
		p.outOfRange++
	}
}

// Committed counts a transaction of the consumer's that has ended, as [ProducerRecorder.Committed] does.
func (r *ConsumerRecorder) Committed(due Phase, took time.Duration, confirmed bool) {
	r.mu.Lock()
	if p := &r.part[due]; !p.commits.add(took, confirmed) {
		p.outOfRange++
	}
	r.mu.Unlock()
}

// Foreign counts a message that another run or tool sent, delivered at that time since the start of the run.
func (r *ConsumerRecorder) Foreign(at time.Duration) {
	r.mu.Lock()
	r.part[Measure].foreign++
	r.quiet.came(at, at)
	r.mu.Unlock()
}

// Released counts a message that the consumer gives back, so that it is to come again, delivered at that time since the
// start of the run. It is not received.
func (r *ConsumerRecorder) Released(due Phase, at time.Duration) {
	r.mu.Lock()
	r.part[due].released++
	r.quiet.came(at, at)
	r.mu.Unlock()
}

// GivenBack returns how many messages the consumer has given back.
func (r *ConsumerRecorder) GivenBack() uint64 {
	return r.count(func(p *receivings) uint64 { return p.released })
}

// Rejected returns how many of the messages received the consumer has rejected.
func (r *ConsumerRecorder) Rejected() uint64 {
	return r.count(func(p *receivings) uint64 { return p.rejected })
}

// Redelivered returns how many of the messages received the broker marked as delivered before.
func (r *ConsumerRecorder) Redelivered() uint64 {
	return r.count(func(p *receivings) uint64 { return p.redelivered })
}

// Total returns the number of messages received, foreign ones not counted.
func (r *ConsumerRecorder) Total() uint64 {
	return r.count(func(p *receivings) uint64 { return p.total })
}

// Arrived returns the number of deliveries, including foreign messages and messages given back.
func (r *ConsumerRecorder) Arrived() uint64 {
	return r.count(func(p *receivings) uint64 { return p.total + p.foreign + p.released })
}

func (r *ConsumerRecorder) count(of func(*receivings) uint64) (n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.part {
		n += of(&r.part[i])
	}
	return n
}
