package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// laps are the waits of one worker in an interval, and, for a consumer, how long it worked.
type laps struct {
	known      bool // there was an earlier look at it, too
	wait       [numWaitKinds]time.Duration
	credit     time.Duration
	socket     time.Duration
	answer     time.Duration
	silence    time.Duration // without any answer for long
	input      time.Duration // of a consumer that waits in its own goroutine
	reader     time.Duration
	worked     time.Duration
	paced      time.Duration
	ownKnown   bool // the waits of its own goroutine are known
	readerIs   bool // the waits of the reader are known
	connection bool // its reader or writer never waited
}

// addTo adds the waits of a producer, except waits for due times.
func (l *laps) addTo(sums *[numBounds]time.Duration) {
	sums[boundSlot] += l.wait[WaitSlot]
	sums[boundSend] += l.wait[WaitSend]
	sums[boundCredit] += l.credit
	sums[boundSocket] += l.socket
	sums[boundAnswer] += l.answer
}

// forAnswers returns how long a producer has waited for answers.
func (l *laps) forAnswers() time.Duration { return l.wait[WaitSlot] + l.answer }

// longSilence returns the part of forAnswers in which the broker answered nothing for long.
func (l *laps) longSilence() time.Duration { return min(l.silence, l.forAnswers()) }

// mostlySilent tells whether that was most of it: the broker stood still, and more messages in flight would also have
// waited.
func (l *laps) mostlySilent() bool { return float64(l.longSilence()) > mostly*float64(l.forAnswers()) }

// producer returns the bound of a producer that was active for that long, judged by its own waits.
func (l *laps) producer(active time.Duration) bound {
	if float64(l.wait[WaitDue]) >= onTime*float64(active) {
		return boundNone
	}
	var sum time.Duration
	top, longest := boundSlot, time.Duration(0)
	for _, w := range []struct {
		b    bound
		took time.Duration
	}{
		{boundSlot, l.wait[WaitSlot]},
		{boundCredit, l.credit},
		{boundSocket, l.socket},
		{boundAnswer, l.answer},
		{boundSend, l.wait[WaitSend]},
	} {
		sum += w.took
		if w.took > longest {
			top, longest = w.b, w.took
		}
	}
	switch {
	case float64(sum) < busyShare*float64(active):
		return boundWorker
	case l.connection:
		return boundConnection
	default:
		return top
	}
}

func (l *laps) inputWait() time.Duration {
	if l.ownKnown {
		return l.input
	}
	return l.reader
}

// consumer returns the bound of a consumer, if it is known.
func (l *laps) consumer(length time.Duration) (b bound, known bool) {
	share := func(d time.Duration) float64 { return float64(d) / float64(length) }
	job := boundWork
	if l.paced > l.worked {
		job = boundPace
	}
	known = l.ownKnown || l.readerIs
	switch {
	case share(l.worked+l.paced) >= working:
		return job, true
	case !known:
		return 0, false
	case share(l.inputWait()) >= busyShare:
		return boundInput, true
	case share(l.worked+l.paced) > share(length-l.inputWait()-l.worked-l.paced):
		return job, true
	case l.connection && l.ownKnown:
		return boundConnection, true
	default:
		return boundWorker, true
	}
}

// lapsOf records the waits of worker i so far, and returns the waits since the last call.
func (at *workerMeter) lapsOf(waits *driver.Waits, c *Collector, i int, now time.Time) laps {
	so := laps{
		known:  true,
		credit: waits.Credit.Time, socket: waits.Socket.Time, answer: waits.Answer.Time,
		input: waits.Input.Time, reader: waits.Reader.Time, readerIs: waits.Reader.Known,
	}
	if elapsed := now.Sub(c.start); i < len(c.producers) {
		so.wait, so.ownKnown = c.producers[i].waitedUntil(elapsed), true
		so.silence = c.producers[i].silenceUntil(elapsed, c.limits.minSilence())
	} else {
		so.worked, so.paced = c.consumers[i-len(c.producers)].workedUntil(elapsed)
		so.ownKnown = waits.Input.Known
	}
	if c.worker(i).Unanswered { // only the network is waited for
		so.socket += so.wait[WaitSlot]
		so.wait[WaitSlot], so.silence = 0, 0
	}
	l, last := so, &at.so
	for kind := range l.wait {
		l.wait[kind] = max(0, l.wait[kind]-last.wait[kind]) // a Send in progress may end unsent
	}
	l.credit -= last.credit
	l.socket -= last.socket
	l.answer -= last.answer
	l.silence = max(0, l.silence-last.silence) // a silence in progress may end without an answer
	l.input -= last.input
	l.reader -= last.reader
	l.worked -= last.worked
	l.paced -= last.paced
	at.so = so
	return l
}
