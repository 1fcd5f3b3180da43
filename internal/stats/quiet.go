package stats

import (
	"math"
	"time"
)

// quiet finds, for one worker, the times in which nothing came: no answer of the broker to a producer, no message to a
// consumer. Times are since the start of the run. Callers hold the lock of the recorder.
type quiet struct {
	limit time.Duration // shortest recorded time; 0 for none
	sign  time.Duration // time of the last answer or message; 0 for never
	last  time.Duration // the same, or the time at which the worker was ready for one
	// waiting and until are the begin and the end of a wait that ended without an answer or message; never if there was
	// no such wait.
	waiting, until time.Duration
	owed           time.Duration // since when it has waited for what has not come, as of the last collection; or never
	gaps           []gap         // since the last collection
}

// gap is a time in which nothing came to a worker, although it had something to wait for since waiting.
type gap struct{ from, to, waiting time.Duration }

const (
	never   = time.Duration(math.MaxInt64)
	maxGaps = 1024 // of one worker in one interval
)

// recordSign records an answer or a message that the worker had awaited since the given time.
func (q *quiet) recordSign(since, now time.Duration) {
	if q.limit > 0 && now-q.last >= q.limit {
		q.addGap(now, min(since, q.waiting))
	}
	q.sign, q.last, q.waiting, q.until, q.owed = now, max(q.last, now), never, 0, never
}

// recordNoAnswer records that the answer or message that the worker had awaited since then will not come.
func (q *quiet) recordNoAnswer(since, now time.Duration) {
	q.waiting, q.until = min(q.waiting, since), max(q.until, now)
}

// recordReady records that nothing could come before now, as the worker was busy or closed.
func (q *quiet) recordReady(now time.Duration) {
	q.endWait()
	q.last = max(q.last, now)
}

// endWait ends a wait that no answer or message has ended.
func (q *quiet) endWait() {
	if q.limit > 0 && q.until-q.last >= q.limit {
		q.addGap(q.until, q.waiting)
	}
	q.last, q.waiting, q.until = max(q.last, q.until), never, 0
}

func (q *quiet) addGap(to, waiting time.Duration) {
	if len(q.gaps) < maxGaps {
		q.gaps = append(q.gaps, gap{q.last, to, max(q.last, waiting)})
	}
}

// takeGaps returns the gaps since the last call, and the gap in progress. owed is the begin of the worker's present
// wait; never without one. With last, no more will come.
func (q *quiet) takeGaps(owed time.Duration, last bool) workerGaps {
	if last {
		q.endWait()
	}
	closed := q.gaps
	q.gaps = nil
	if q.owed = min(q.owed, owed); owed == never {
		q.owed = never
	}
	return workerGaps{closed, gap{q.last, never, max(q.last, q.owed)}}
}

// endOwed records that the awaited answer or message may not come any more.
func (q *quiet) endOwed(now time.Duration) {
	if q.owed < never {
		q.recordNoAnswer(q.owed, now)
	}
}

const (
	// leastSilence is the shortest time without an answer that counts. Before the first answers, while their usual latency
	// is unknown, it is firstSilence.
	leastSilence = 200 * time.Millisecond
	firstSilence = time.Second
)

// countedSilence returns the length of a time in which the broker answered nothing to the producer although a message
// waited throughout, or 0 if it is not long enough to count. The limit for stalls does not matter. Pauses of perfmq do
// not count. The caller holds the lock.
func (r *ProducerRecorder) countedSilence(since, now time.Duration) time.Duration {
	if now-since < r.leastSilence {
		return 0
	}
	if d := now - since - r.pulse.stoodStill(since, now); d >= r.leastSilence {
		return d
	}
	return 0
}
