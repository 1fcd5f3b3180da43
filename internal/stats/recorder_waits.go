package stats

import "time"

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
			owed = min(since, now)
		}
	}
	return r.quiet.takeGaps(owed, last)
}
