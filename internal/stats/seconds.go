package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// stretch is a second of the measurement, maybe with shorter intervals.
type stretch struct {
	messages uint64
	length   time.Duration
	to       time.Time
	elapsed  time.Duration // at its end, from the start of the load
}

// join adds the second behind it.
func (s *stretch) join(next *stretch) {
	s.messages, s.length, s.to, s.elapsed = s.messages+next.messages, s.length+next.length, next.to, next.elapsed
}

// cut shortens the second to the time from one moment to another.
func (s *stretch) cut(from, to time.Duration) {
	begin, end := max(s.elapsed-s.length, from), min(s.elapsed, to)
	s.length = min(max(0, end-begin), s.length)
}

// rates are the lowest and the highest rate of the seconds of a load. An interval shorter than [FullSecond] counts
// with the second before it or, without one, with the second after it. So all messages and all of the time are in some
// second, and the average rate lies between the two.
type rates struct {
	lowest, highest Lowest
	open            stretch // the latest one, which a shorter interval may join
}

// add adds an interval.
func (s *rates) add(next stretch) {
	if s.open != (stretch{}) && min(next.length, s.open.length) < FullSecond {
		s.open.join(&next)
		return
	}
	s.count()
	s.open = next
}

// count counts the latest second.
func (s *rates) count() {
	if s.open.length >= FullSecond {
		s.lowest.add(&s.open, 1)
		s.highest.add(&s.open, -1)
	}
}

// both returns the lowest and the highest rate.
func (s rates) both() (lowest, highest Lowest) {
	s.count()
	return s.lowest, s.highest
}

// follow adds the seconds behind these.
func (s *rates) follow(later *rates) {
	if later.open.length == 0 {
		return
	}
	if min(s.open.length, later.open.length) < FullSecond {
		s.open.join(&later.open) // a part of a second: it may count with any
	} else {
		s.count()
		s.open = later.open
	}
	s.lowest.Include(&later.lowest, 1)
	s.highest.Include(&later.highest, -1)
}

// reading are the seconds in which a backlog is read. The first and the last one count from the first message, and to
// the last one: they are added when these are known.
type reading struct {
	first, next stretch // with the first message, and the one after it
	rest        rates   // behind next
	last        stretch // the latest with a message, behind rest; not the first one
	idle        stretch // all behind last
}

func (r *reading) add(next stretch) {
	switch {
	case r.first.length == 0 && next.messages > 0:
		r.first = next
	case r.first.length == 0:
	case next.messages == 0:
		r.idle.join(&next)
	default:
		r.pass(r.last)
		r.pass(r.idle)
		r.last, r.idle = next, stretch{}
	}
}

// pass adds a second between the first and the last one.
func (r *reading) pass(s stretch) {
	switch {
	case s.length == 0:
	case r.next.length == 0:
		r.next = s
	default:
		r.rest.add(s)
	}
}

// between returns the seconds from the first message to the last one.
func (r *reading) between(first, last time.Duration) (all rates) {
	begin, end := r.first, r.last
	begin.cut(first, last)
	end.cut(first, last)
	all.add(begin)
	if r.next.length > 0 {
		all.add(r.next)
	}
	all.follow(&r.rest)
	if end.messages > 0 {
		all.add(end)
	}
	return all
}

// Extremes are the lowest and highest rates of the seconds of a measurement.
type Extremes struct {
	completed, received rates
	receiving           rates // received, from the first second at whose start something had been received
	reading             reading
}

// add adds an interval; receiving tells that something had been received before it.
func (r *Extremes) add(s *Snapshot, receiving bool) {
	interval := stretch{s.Delta[result.Completed], s.To.Sub(s.From), s.To, s.Elapsed}
	r.completed.add(interval)
	interval.messages = s.Delta[result.Received]
	r.received.add(interval)
	if receiving {
		r.receiving.add(interval)
	}
	r.reading.add(interval)
}

// AddRow adds an interval of a result.
func (r *Extremes) AddRow(row *result.Row, receiving bool) {
	s := Snapshot{To: time.UnixMicro(row.Time), Elapsed: time.Duration(row.Elapsed) * time.Microsecond}
	s.From = s.To.Add(-time.Duration(row.Length) * time.Microsecond)
	counts := row.Values()
	copy(s.Delta[:], counts[:])
	r.add(&s, receiving)
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
	low.Received, high.Received = r.reading.between(first, last).both()
}
