package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// stretch is a second of the measurement, maybe with shorter intervals. Times are microseconds.
type stretch struct {
	messages              uint64
	length, time, elapsed int64 // the end by the wall clock, and from the start of the load
}

// join adds the second behind it.
func (s *stretch) join(next *stretch) {
	s.messages, s.length, s.time, s.elapsed = s.messages+next.messages, s.length+next.length, next.time, next.elapsed
}

// cut shortens the second to the time from one moment to another.
func (s *stretch) cut(from, to time.Duration) {
	begin, end := max(s.elapsed-s.length, from.Microseconds()), min(s.elapsed, to.Microseconds())
	s.length = min(max(0, end-begin), s.length)
}

// rates are the lowest and the highest rate of the seconds of a load. An interval shorter than [FullSecond] counts
// with the second before it or, without one, with the second after it. So all messages and all of the time are in some
// second, and the average rate lies between the two.
type rates struct {
	lowest, highest result.Extreme
	open            stretch // the latest one, which a shorter interval may join
}

const fullSecond = int64(FullSecond / time.Microsecond)

// add adds an interval.
func (r *rates) add(next stretch) {
	if r.open != (stretch{}) && min(next.length, r.open.length) < fullSecond {
		r.open.join(&next)
		return
	}
	r.count()
	r.open = next
}

// count counts the latest second.
func (r *rates) count() {
	if s := &r.open; s.length >= fullSecond {
		second := result.Extreme{
			Seconds: 1, PerSecond: 1e6 * float64(s.messages) / float64(s.length), Time: s.time, Elapsed: s.elapsed,
		}
		r.lowest.Include(&second, 1)
		r.highest.Include(&second, -1)
	}
}

// both returns the lowest and the highest rate.
func (r rates) both() (lowest, highest result.Extreme) {
	r.count()
	return r.lowest, r.highest
}

// Extremes are the lowest and highest rates of the seconds of a measurement.
type Extremes struct {
	completed, received rates
	receiving           rates // received, from the first second at whose start something had been received
	// Of a backlog: the seconds from its first message to the latest second with a message, which counts up to the last
	// message, and all seconds behind that.
	reading    rates
	last, idle stretch
}

// add adds an interval, with the time of the first message in it; 0 if that is unknown.
func (r *Extremes) add(completed, received uint64, interval stretch, receiving bool, first time.Duration) {
	interval.messages = completed
	r.completed.add(interval)
	interval.messages = received
	r.received.add(interval)
	if receiving {
		r.receiving.add(interval)
	}
	begun := r.last != (stretch{})
	switch {
	case received > 0 && !begun:
		interval.cut(first, never)
		r.last = interval
	case received > 0:
		r.reading.add(r.last)
		if r.idle.length > 0 {
			r.reading.add(r.idle)
		}
		r.last, r.idle = interval, stretch{}
	case begun:
		r.idle.join(&interval)
	}
}

// Both returns the lowest and the highest rates.
func (r *Extremes) Both() (low, high Peaks) {
	low.Completed, high.Completed = r.completed.both()
	low.Received, _ = r.receiving.both()
	_, high.Received = r.received.both()
	return low, high
}

// Read sets the rates of a backlog, from its first to its last message.
func (r *Extremes) Read(first, last time.Duration, average *Average, low, high *Peaks) {
	average.Read, average.Since, average.Span = true, first, last-first
	all, end := r.reading, r.last
	end.cut(first, last)
	all.add(end)
	low.Received, high.Received = all.both()
}
