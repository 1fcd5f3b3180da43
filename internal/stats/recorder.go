package stats

import (
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// parts is the number of phases that messages belong to: Warmup and Measure.
const parts = 2

// ProducerRecorder counts and times the messages of one producer. The phase argument of its methods is the phase in
// which the message was due: Warmup or Measure.
type ProducerRecorder struct {
	// Written only by the sending goroutine; atomic because the collector reads them.
	sent, handed  [parts]atomic.Uint64
	resent        [parts]atomic.Uint64
	blocked, late atomic.Uint64
	// when Run handed its last message over, nanoseconds since the start of the run
	lastSend atomic.Int64
	stray    atomic.Uint64 // written by completions
	// nanoseconds for which the producer waited, the wait in progress not included
	waited  [numWaitKinds]atomic.Int64
	waiting atomic.Int64 // start and kind of the wait in progress, see waitSince; 0 if none

	requests bool        // the messages are requests; never changes
	rated    bool        // written under mu, while nothing is being sent
	blind    atomic.Bool // the driver does not report its waits
	pulse    *Pulse      // never changes

	_ [64]byte // keep the completions, which run on other processors, off that cache line

	// The message that was being handed over when the collector first looked, and since when; 0 for none. Of the
	// collector's goroutine.
	seen      uint64
	seenSince time.Duration

	failures
	// transaction is the number of messages of a transaction; 0 without. Messages end with their transaction, and the
	// broker owes no answer before it is asked to commit.
	transaction uint64
	// silence is the sum of the times without an answer that were at least leastSilence long.
	silence, leastSilence time.Duration

	newest time.Duration // send time of the latest-sent message that was accepted
	// overdue are messages that had no answer in time, or lost their connection without a reported outage.
	overdue struct {
		all    uint64
		last   uint64        // part of all: no message that was sent later had been accepted when they ended
		newest time.Duration // when the newest of last was sent
	}
}

// overdueSince counts an overdue message, sent at the given time. The caller holds the lock.
func (r *ProducerRecorder) overdueSince(sent time.Duration) {
	o := &r.overdue
	if r.newest > o.newest {
		o.last = 0
	}
	o.all++
	if sent >= r.newest {
		o.last++
		o.newest = max(o.newest, sent)
	}
}

// NewProducerRecorder returns an empty recorder. With rated, it also records send delay and response time. pulse
// reports perfmq's pauses; it may be nil.
func NewProducerRecorder(rated bool, pulse *Pulse) *ProducerRecorder {
	return &ProducerRecorder{rated: rated, pulse: pulse, leastSilence: firstSilence}
}

// Begun counts a message that is about to be handed to the driver. Call it before the hand-over, because the message
// might be received before the driver returns; call [ProducerRecorder.Handed] or [ProducerRecorder.TakenBack] after it.
func (r *ProducerRecorder) Begun(phase Phase) { r.sent[phase].Add(1) }

// Handed records that the driver took the message of the last Begun, the given delay after its intended time. Until
// then snapshots leave the message out, as it may turn out not to have been sent.
func (r *ProducerRecorder) Handed(phase Phase, delay time.Duration) {
	if r.handed[phase].Add(1); r.rated {
		r.Record(phase, result.Delay, delay)
	}
}

// Resent counts a message that was handed to the driver once more, as its outcome was unknown.
func (r *ProducerRecorder) Resent(phase Phase) { r.resent[phase].Add(1) }

// AllResent returns the number of resends.
func (r *ProducerRecorder) AllResent() uint64 { return ofBoth(&r.resent) }

// ofBoth returns the sum over both phases.
func ofBoth(n *[parts]atomic.Uint64) uint64 { return n[Warmup].Load() + n[Measure].Load() }

// TakenBack undoes one Begun: the driver reported that the message did not leave.
func (r *ProducerRecorder) TakenBack(phase Phase) { r.sent[phase].Add(^uint64(0)) }

// GivenUp records that a message that was due, and was to leave from a moment until now, will not be sent: times since
// the start of the run.
func (r *ProducerRecorder) GivenUp(intended, actual, now time.Duration) {
	r.mu.Lock()
	r.quiet.recordNoAnswer(r.awaitedSince(intended, actual), now)
	r.mu.Unlock()
}

// sends are the numbers of a producer's messages at one moment. As the end of a message is counted before its place is
// free again, no more than --max-pending are ever in flight.
type sends struct {
	ended  uint64
	handed uint64 // taken by the driver
	begun  uint64 // handed, and messages that the driver is taking
	stored uint64 // accepted, without messages that will not be delivered
}

// known returns the number of messages that are known to have left; with last, of all that were begun.
func (s *sends) known(last bool) uint64 {
	if last {
		return s.begun
	}
	return max(s.handed, s.ended)
}

// Stopped sets when the last message of a load was handed over, since the start of the run.
func (r *ProducerRecorder) Stopped(last time.Duration) { r.lastSend.Store(int64(last)) }

// LastSend returns the time of the last call of [ProducerRecorder.Stopped].
func (r *ProducerRecorder) LastSend() time.Duration { return time.Duration(r.lastSend.Load()) }

// Sends returns the number of messages due in a phase that have been, or are being, handed to the driver.
func (r *ProducerRecorder) Sends(phase Phase) uint64 { return r.sent[phase].Load() }

// Blocked counts a wait for a free slot.
func (r *ProducerRecorder) Blocked() { r.blocked.Add(1) }

// Late counts a send that left late although neither the broker nor max-pending held it up.
func (r *ProducerRecorder) Late() { r.late.Add(1) }

// End is a message that ends: when it was due and sent, since the start of the run, and the size of its body in bytes.
type End struct {
	Due              Phase // in which it was due
	Size             uint32
	Intended, Actual time.Duration
	Outage           bool // an outage left it without an answer, and counts it
}

// Done counts the end of a message. Its latencies are recorded if it was accepted. Safe for concurrent use.
func (r *ProducerRecorder) Done(e End, o driver.Outcome, now time.Duration) {
	r.DoneAll([]End{e}, o, now)
}

// DoneAll counts messages that ended alike at the same moment. Safe for concurrent use.
func (r *ProducerRecorder) DoneAll(ends []End, o driver.Outcome, now time.Duration) {
	r.mu.Lock()
	for i := range ends {
		r.done(&ends[i], &o, now)
	}
	r.mu.Unlock()
}

// awaitedSince returns when the wait for the broker began: when the message was due, but for a request, which may wait
// for the replies to others, when it left.
func (r *ProducerRecorder) awaitedSince(due, left time.Duration) time.Duration {
	if r.requests {
		return left
	}
	return due
}

// done counts the end of a message. The caller holds the lock.
func (r *ProducerRecorder) done(e *End, o *driver.Outcome, now time.Duration) {
	p := &r.part[e.Due]
	p.n[counterOf[o.State]]++
	since := r.awaitedSince(e.Intended, e.Actual)
	switch {
	case r.transaction > 0: // see TransactionEnded
	case o.State == driver.Unknown, o.State == driver.Failed && o.Class == driver.ClassConnect: // no answer
		r.quiet.recordNoAnswer(since, now)
	default:
		r.silence += r.countedSilence(max(r.quiet.sign, e.Actual), now)
		r.quiet.recordSign(since, now)
	}
	paused := r.rated && r.pulse.Delayed(e.Intended, e.Actual) // affects delay and response
	if o.State != driver.Accepted {
		if paused {
			p.n[result.Paused]++
		}
		if o.State == driver.Unknown && !e.Outage && Lost(o.Class) {
			r.overdueSince(e.Actual)
		}
		r.fail(p, o.State, o.Class, o.Err)
		return
	}
	r.newest = max(r.newest, e.Actual)
	if o.Withheld {
		p.withheld++
	}
	p.n[result.CompletedBytes] += uint64(e.Size)
	from := e.Actual
	if r.rated {
		from = e.Intended
	}
	if paused || r.pulse.Spans(from, now) {
		p.n[result.Paused]++
	}
	p.record(result.Ack, now-e.Actual)
	if r.rated {
		p.record(result.Response, now-e.Intended)
	}
}

// SetTransaction sets the number of messages of a transaction in the next step; 0 for none. Call it while no message is
// being sent.
func (r *ProducerRecorder) SetTransaction(messages int) {
	r.mu.Lock()
	r.transaction = uint64(max(0, messages)) //nolint:gosec // not negative
	r.mu.Unlock()
}

// TransactionEnded records the end of a transaction and the time of its request to commit. A confirmed one counts as an
// answer of the broker.
func (r *ProducerRecorder) TransactionEnded(asked, now time.Duration, confirmed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !confirmed {
		r.quiet.recordNoAnswer(asked, now)
		return
	}
	r.silence += r.countedSilence(max(r.quiet.sign, asked), now)
	r.quiet.recordSign(asked, now)
}

// SetRequests records that the messages are requests. Call it before the first one.
func (r *ProducerRecorder) SetRequests() { r.requests = true }

// Replied records a reply in time to a request: when that was due, and the time now. Safe for concurrent use.
func (r *ProducerRecorder) Replied(due Phase, intended, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.part[due]
	p.n[result.Replies]++
	if r.pulse.Spans(intended, now) {
		p.n[result.Paused]++
	}
	p.record(result.RoundTrip, now-intended)
	r.quiet.recordSign(now, now)
}

// Stray counts an answer to no message in flight: it came too late, or twice.
func (r *ProducerRecorder) Stray() { r.stray.Add(1) }

// Strays returns the number of answers to no message in flight.
func (r *ProducerRecorder) Strays() uint64 { return r.stray.Load() }

// Unsent counts the end of a message that the driver could not send, as failed with that class and error.
func (r *ProducerRecorder) Unsent(phase Phase, class driver.Class, err error) {
	r.mu.Lock()
	p := &r.part[phase]
	p.n[result.Failed]++
	p.n[result.Unsent]++
	r.fail(p, driver.Failed, class, err)
	r.mu.Unlock()
}

// Lost reports whether that class means no answer: none came in time, or the connection was lost.
func Lost(class driver.Class) bool {
	return class == driver.ClassTimeout || class == driver.ClassConnectionLost || class == driver.ClassClosedByBroker
}

// Overcome returns the number of messages without an answer, outside of outages, after which a later-sent message was
// accepted. The number may be too low: a message does not count while a newer one in last is not overcome.
func (r *ProducerRecorder) Overcome() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest > r.overdue.newest {
		return r.overdue.all
	}
	return r.overdue.all - r.overdue.last
}

// InFlight returns the number of messages handed over and not ended.
func (r *ProducerRecorder) InFlight() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ofBoth(&r.sent) - r.ended()
}

// Completed returns the number of accepted messages.
func (r *ProducerRecorder) Completed() uint64 { return r.Count(result.Completed) }

// Ended returns the number of messages that have ended, with any outcome.
func (r *ProducerRecorder) Ended() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended()
}

// ended is Ended for a caller that holds the lock.
func (r *ProducerRecorder) ended() uint64 {
	return result.Ended(r.part[Warmup].n[:]) + result.Ended(r.part[Measure].n[:])
}

// Withheld returns the number of accepted messages that, by plan, will not be delivered.
func (r *ProducerRecorder) Withheld() uint64 {
	return r.sum(func(p *ledger) uint64 { return p.withheld })
}

// Taken returns the messages sent, completed and unconfirmed so far, without one that the driver has not taken yet.
func (r *ProducerRecorder) Taken() (n Counters) {
	n[result.Completed] = r.Completed()
	n[result.Unconfirmed] = r.Count(result.Unconfirmed)
	n[result.Sent] = ofBoth(&r.handed)
	return n
}

// WaitKind is the reason of a wait that the producer measures itself. The waits of its driver are in [driver.Waits].
type WaitKind uint8

// The kinds of waits.
const (
	WaitDue   WaitKind = iota // until the next message is due
	WaitSlot                  // for a message in flight to end: max-pending are in flight
	WaitEnded                 // for nothing: the load of the step is over for this producer
	WaitSend                  // in a long Send of a driver that does not report its waits
	numWaitKinds
)

// waitSince packs the start of a wait and its kind into a number above 0.
func waitSince(kind WaitKind, now time.Duration) int64 {
	return (int64(now)+1)*int64(numWaitKinds) + int64(kind)
}

func unpackWait(since int64) (WaitKind, time.Duration) {
	return WaitKind(since % int64(numWaitKinds)), time.Duration(since/int64(numWaitKinds) - 1)
}

// Wait records that the producer begins to wait; now is the time since the start of the run. A producer that never
// waits is at the limit of perfmq. A wait in progress continues.
func (r *ProducerRecorder) Wait(kind WaitKind, now time.Duration) {
	r.waiting.CompareAndSwap(0, waitSince(kind, now))
}

// Waited records that the wait is over.
func (r *ProducerRecorder) Waited(now time.Duration) {
	kind, since := unpackWait(r.waiting.Load())
	r.waited[kind].Add(int64(max(0, now-since)))
	r.waiting.Store(0)
}

// AwaitsDue reports whether the producer waits until its next message is due.
func (r *ProducerRecorder) AwaitsDue() bool {
	since := r.waiting.Load()
	return since > 0 && since%int64(numWaitKinds) == int64(WaitDue)
}

// Resume ends the wait, if there is one, from the end of the last step's load to the beginning of the next step's.
func (r *ProducerRecorder) Resume(now time.Duration) {
	if r.waiting.Load() > 0 {
		r.Waited(now)
	}
	r.mu.Lock()
	r.quiet.recordReady(now)
	r.mu.Unlock()
}

// SetRated sets whether the messages of the next step have intended times. Call it while no message is being sent.
func (r *ProducerRecorder) SetRated(rated bool) {
	r.mu.Lock()
	r.rated = rated
	r.mu.Unlock()
}

// AddSendWait adds a finished wait in Send.
func (r *ProducerRecorder) AddSendWait(d time.Duration) { r.waited[WaitSend].Add(int64(d)) }

// SetBlind marks a driver that does not report its waits: a Send in progress counts as a wait.
func (r *ProducerRecorder) SetBlind() { r.blind.Store(true) }

// inSend returns the time of the present message in the hand-over, counted from the collector's first look at it. Only
// the collector's goroutine calls it.
func (r *ProducerRecorder) inSend(now time.Duration) time.Duration {
	handed := ofBoth(&r.handed) // first: it is the lower count
	sent := ofBoth(&r.sent)
	switch {
	case !r.blind.Load() || sent == handed:
		r.seenSince = 0
	case r.seenSince == 0 || r.seen != sent:
		r.seen, r.seenSince = sent, now
	default:
		return now - r.seenSince
	}
	return 0
}

// waitedUntil returns the producer's waits so far, by kind.
func (r *ProducerRecorder) waitedUntil(now time.Duration) (waited [numWaitKinds]time.Duration) {
	waiting := r.waiting.Load()
	for kind := range waited {
		waited[kind] = time.Duration(r.waited[kind].Load())
	}
	if waiting > 0 {
		kind, since := unpackWait(waiting)
		waited[kind] += max(0, now-since)
	}
	waited[WaitSend] += r.inSend(now)
	return waited
}

// silenceUntil returns the time in which the broker answered nothing while a message was in flight, or waited in Send,
// as for a connection. It adds up times of at least the given length, including the one in progress.
func (r *ProducerRecorder) silenceUntil(now, least time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leastSilence = least
	if r.transaction == 0 && r.owed() {
		return r.silence + r.countedSilence(r.quiet.sign, now)
	}
	return r.silence
}

// owed reports whether the broker owes an answer, or takes no message: one is in flight, or a whole transaction. The
// caller holds the lock.
func (r *ProducerRecorder) owed() bool {
	ended := r.ended() // first: it is the lower count
	return ofBoth(&r.sent) >= ended+max(1, r.transaction)
}

// takeGaps returns the gaps since the last call, and the one in progress.
func (r *ProducerRecorder) takeGaps(now time.Duration, last bool) workerGaps {
	waiting := r.waiting.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	owed := never
	if r.owed() {
		owed = now
		if kind, since := unpackWait(waiting); waiting > 0 && kind == WaitSlot {
			owed = r.awaitedSince(min(since, now), now)
		}
	}
	return r.quiet.takeGaps(owed, last)
}
