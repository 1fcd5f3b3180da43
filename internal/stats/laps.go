package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// What laps has beside the bounds.
const (
	lapEnded   = numBounds + iota // the load of the step was over for it
	lapSilence                    // it waited for answers, and none came for long
	lapReader                     // the reader of its connection waited
	numLaps
)

// laps are the waits of one worker in an interval, by their bound, and the work of a consumer.
type laps struct {
	took       [numLaps]time.Duration
	known      bool // there was an earlier look at it, too
	ownKnown   bool // the waits of its own goroutine are known
	readerIs   bool // the waits of the reader are known
	connection bool // its reader never waited
}

// waits returns the waits of a producer, except waits for due times.
func (l *laps) waits() (waits boundTimes) {
	copy(waits[boundSlot:], l.took[boundSlot:boundSend+1])
	return waits
}

// forAnswers returns a producer's wait for answers.
func (l *laps) forAnswers() time.Duration { return l.took[boundSlot] + l.took[boundAnswer] }

// longSilence returns the part of forAnswers in which the broker answered nothing for long.
func (l *laps) longSilence() time.Duration { return min(l.took[lapSilence], l.forAnswers()) }

// mostlySilent reports whether that was most of it: the broker stalled, and more messages in flight would also have
// waited.
func (l *laps) mostlySilent() bool { return float64(l.longSilence()) > mostly*float64(l.forAnswers()) }

// producer returns the bound of a producer that was active for that long, judged by its own waits.
func (l *laps) producer(active time.Duration) bound {
	if float64(l.took[boundNone]) >= onTime*float64(active) {
		return boundNone
	}
	waits := l.waits()
	switch {
	case float64(waits.total()) < busyShare*float64(active):
		return boundWorker
	case l.connection:
		return boundConnection
	default:
		return waits.top()
	}
}

func (l *laps) inputWait() time.Duration {
	if l.ownKnown {
		return l.took[boundInput]
	}
	return l.took[lapReader]
}

// consumer returns the bound of a consumer, if it is known.
func (l *laps) consumer(length time.Duration) (b bound, known bool) {
	share := func(d time.Duration) float64 { return float64(d) / float64(length) }
	busy := l.took[boundWork] + l.took[boundPace]
	job := boundWork
	if l.took[boundPace] > l.took[boundWork] {
		job = boundPace
	}
	known = l.ownKnown || l.readerIs
	switch {
	case share(busy) >= working:
		return job, true
	case !known:
		return 0, false
	case share(l.inputWait()) >= busyShare:
		return boundInput, true
	case share(busy) > share(length-l.inputWait()-busy):
		return job, true
	case l.connection && l.ownKnown:
		return boundConnection, true
	default:
		return boundWorker, true
	}
}

// lapsOf records the waits of worker i so far, and returns the waits since the last call.
func (m *workerMeter) lapsOf(waits *driver.Waits, c *Collector, i int, now time.Time) laps {
	so := laps{known: true, readerIs: waits.Reader.Known, took: [numLaps]time.Duration{
		boundCredit: waits.Credit.Time, boundSocket: waits.Socket.Time, boundAnswer: waits.Answer.Time,
		boundInput: waits.Input.Time, lapReader: waits.Reader.Time,
	}}
	if elapsed := now.Sub(c.start); i < len(c.producers) {
		wait := c.producers[i].waitedUntil(elapsed)
		so.took[boundNone], so.took[boundSlot] = wait[WaitDue], wait[WaitSlot]
		so.took[boundSend], so.took[lapEnded] = wait[WaitSend], wait[WaitEnded]
		so.took[lapSilence], so.ownKnown = c.producers[i].silenceUntil(elapsed, c.minSilence()), true
	} else {
		so.took[boundWork], so.took[boundPace] = c.consumers[i-len(c.producers)].workedUntil(elapsed)
		so.ownKnown = waits.Input.Known
	}
	if c.workers[i].Unanswered { // only the network is waited for
		so.took[boundSocket] += so.took[boundSlot]
		so.took[boundSlot], so.took[lapSilence] = 0, 0
	}
	l := so
	for b, last := range m.so.took {
		l.took[b] = max(0, l.took[b]-last) // a Send or a silence in progress may end without having been one
	}
	m.so = so
	return l
}

// marker finds the moments at which counts pass marks.
type marker struct {
	step    string
	of      string         // "completed" or "received"
	counter result.Counter // the same
	marks   []uint64       // marks not passed yet, in ascending order
	start   time.Time
	base    uint64  // as of the start
	rate    float64 // of the last full second; before the first one, of the longest interval
	longest time.Duration
	list    []result.Mark
}

// SetMarks lets the collector find the moments at which the step that begins there passes the marks, which are in
// ascending order: numbers of messages completed, or received. Call it after the last Collect of the step before.
func (c *Collector) SetMarks(step string, received bool, marks []uint64, start time.Time) {
	m := &c.marker
	m.step, m.marks, m.start, m.rate, m.longest = step, marks, start, 0, 0
	if m.of, m.counter = "completed", result.Completed; received {
		m.of, m.counter = "received", result.Received
	}
	m.base = c.total[m.counter]
}

// MarksPassed returns the marks that were passed.
func (c *Collector) MarksPassed() []result.Mark { return c.marker.list }

// add takes an interval.
func (m *marker) add(s *Snapshot) {
	if len(m.marks) == 0 {
		return
	}
	delta, length := s.Get(m.counter), s.To.Sub(s.From)
	rate := float64(delta) / length.Seconds()
	if s.Phase != result.Drain && length >= min(FullSecond, m.longest) {
		m.rate, m.longest = rate, length
	} else if m.rate > 0 {
		rate = m.rate
	}
	total := s.Total.Get(m.counter) - m.base
	for len(m.marks) > 0 && m.marks[0] <= total && delta > 0 && length > 0 {
		share := float64(delta-(total-m.marks[0])) / float64(delta)
		elapsed := s.From.Sub(m.start) + time.Duration(share*float64(length))
		mark := result.Mark{
			Step: m.step, Of: m.of, Messages: m.marks[0], Elapsed: elapsed.Microseconds(), Momentary: rate,
		}
		if elapsed > 0 {
			mark.Average = float64(mark.Messages) / elapsed.Seconds()
		}
		m.list = append(m.list, mark)
		m.marks = m.marks[1:]
	}
}
