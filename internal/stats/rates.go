package stats

import (
	"cmp"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// FullSecond is the length from which an interval counts as a full second. On a busy machine the sampler wakes up to
// some tenths late, and the interval after a late cut is shorter by that; leaving it out might hide a stall.
const FullSecond = 700 * time.Millisecond

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

// extremes are the lowest and the highest rate of the seconds of a load. An interval shorter than [FullSecond] counts
// with the second before it or, without one, with the second after it. So all messages and all of the time are in some
// second, and the average rate lies between the two.
type extremes struct {
	lowest, highest result.Extreme
	open            stretch // the latest one, which a shorter interval may join
}

const fullSecond = int64(FullSecond / time.Microsecond)

// add adds an interval.
func (r *extremes) add(next stretch) {
	if r.open != (stretch{}) && min(next.length, r.open.length) < fullSecond {
		r.open.join(&next)
		return
	}
	r.count()
	r.open = next
}

// count counts the latest second.
func (r *extremes) count() {
	if s := &r.open; s.length >= fullSecond {
		second := result.Extreme{
			Seconds: 1, PerSecond: 1e6 * float64(s.messages) / float64(s.length), Time: s.time, Elapsed: s.elapsed,
		}
		r.lowest.Include(&second, 1)
		r.highest.Include(&second, -1)
	}
}

// both returns the lowest and the highest rate.
func (r extremes) both() (lowest, highest result.Extreme) {
	r.count()
	return r.lowest, r.highest
}

// Rates are the rates of the measured part of a load.
type Rates struct {
	Average          Average
	Minimum, Maximum Peaks
	Offered          Offered

	// Live is the largest number of open connections of groups of connections at the end of an interval; nil without.
	Live *uint64

	got                 uint64 // messages received so far
	completed, received extremes
	receiving           extremes // received, from the first second at whose start something had been received
	// Of a backlog: the seconds from its first message to the latest second with a message, which counts up to the last
	// message, and all seconds behind that.
	reading    extremes
	last, idle stretch
}

// Add adds an interval of that length, with the time of the first message received in it; 0 if that is unknown.
func (r *Rates) Add(row *result.Row, length, first time.Duration) {
	n := row.Values()
	if row.Phase == result.Measure {
		r.add(n[result.Completed], n[result.Received], stretch{0, row.Length, row.Time, row.Elapsed}, first)
		r.Average.Add(length, n[:])
	}
	r.got += n[result.Received]
	if row.Phase == result.Measure && (row.Live > 0 || row.Connections != nil) {
		r.Live = new(max(row.Live, *cmp.Or(r.Live, new(uint64))))
	}
}

func (r *Rates) add(completed, received uint64, interval stretch, first time.Duration) {
	interval.messages = completed
	r.completed.add(interval)
	interval.messages = received
	r.received.add(interval)
	if r.got > 0 {
		r.receiving.add(interval)
	}
	r.Minimum.Completed, r.Maximum.Completed = r.completed.both()
	r.Minimum.Received, _ = r.receiving.both()
	_, r.Maximum.Received = r.received.both()
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

// ReadBacklog sets the rates of a backlog, from its first to its last message.
func (r *Rates) ReadBacklog(first, last time.Duration) {
	r.Average.Read, r.Average.Since, r.Average.Span = true, first, last-first
	all, end := r.reading, r.last
	end.cut(first, last)
	all.add(end)
	r.Minimum.Received, r.Maximum.Received = all.both()
}

// FiguresOf returns the rates and extremes of the roles.
func (r *Rates) FiguresOf(sends, receives bool) *result.Figures {
	a, o := &r.Average, &r.Offered
	average := func(known bool, n uint64) *float64 {
		if !known || a.Span <= 0 {
			return nil
		}
		return new(a.PerSecond(n))
	}
	f := &result.Figures{
		Span: a.Span.Microseconds(), Sent: average(sends, a.Sent), Completed: average(sends, a.Completed),
		Received: average(receives, a.Received), CompletedBytes: average(sends, a.CompletedBytes),
		ReceivedBytes: average(receives, a.ReceivedBytes), MaximumLive: r.Live,
	}
	if a.Read {
		f.Since = new(a.Since.Microseconds())
	}
	if o.Known() {
		f.Due, f.Unsent = new(o.Due), new(o.Unsent())
		if o.Span > 0 {
			f.Offered = new(o.Rate)
		}
	}
	low, high := r.Minimum, r.Maximum
	low.Only(sends, receives)
	high.Only(sends, receives)
	f.MinimumCompleted, f.MaximumCompleted = low.Completed.IfKnown(), high.Completed.IfKnown()
	f.MinimumReceived, f.MaximumReceived = low.Received.IfKnown(), high.Received.IfKnown()
	return f
}

// Peaks are the lowest, or the highest, rates over the seconds of the measurement, an interval that took longer by its
// real length. The lowest rate of receiving begins with the first full second after the first message; the rates of a
// backlog are of the time from its first to its last message.
type Peaks struct {
	Completed, Received result.Extreme
}

// Only removes the rates of a side that does not take part: without producers, a rate of 0 is not their lowest.
func (p *Peaks) Only(sends, receives bool) {
	if !sends {
		p.Completed = result.Extreme{}
	}
	if !receives {
		p.Received = result.Extreme{}
	}
}

// Include considers the rates of other seconds that are Known.
func (p *Peaks) Include(o *Peaks, sign float64) {
	if o.Completed.Known() {
		p.Completed.Include(&o.Completed, sign)
	}
	if o.Received.Known() {
		p.Received.Include(&o.Received, sign)
	}
}

// Average holds the counts within the measurement, whenever the messages were due. It leaves out messages completed or
// received in the drain, so that a broker that only queues does not appear to keep up.
type Average struct {
	Span                          time.Duration
	Read                          bool          // the rates are those of a backlog, from its first to its last message
	Since                         time.Duration // the first message, if Read, from the start of the load
	Sent, Completed, Received     uint64
	CompletedBytes, ReceivedBytes uint64 // payload
}

// PerSecond returns a rate of n messages, or bytes, in the measurement.
func (a *Average) PerSecond(n uint64) float64 {
	if a.Span <= 0 {
		return 0
	}
	return float64(n) / a.Span.Seconds()
}

// Add adds the counts of an interval, by their [result.Counter].
func (a *Average) Add(span time.Duration, n []uint64) {
	a.Span += span
	a.Sent += n[result.Sent]
	a.Completed += n[result.Completed]
	a.Received += n[result.Received]
	a.CompletedBytes += n[result.CompletedBytes]
	a.ReceivedBytes += n[result.ReceivedBytes]
}

// Offered holds the messages that the rates demanded in the measured part of a load, and the messages sent. It is about
// the groups with a rate.
type Offered struct {
	Due uint64 // messages that were due
	// messages that were sent; if a count ended a load late, Due also has the messages due until the last one left
	Sent uint64
	Span time.Duration // in which they were due; of several steps, the sum
	// Rate is the average of the rates in Span, in messages per second. Due is a whole number of messages, the first of
	// them due at once: at a low rate, it says little about the rate.
	Rate float64
}

// Known reports whether there was a rate.
func (o *Offered) Known() bool { return o.Due > 0 || o.Rate > 0 }

// over returns the average of the rates in a longer span.
func (o *Offered) over(span time.Duration) float64 {
	if o.Span == span { // exactly
		return o.Rate
	}
	return o.Rate * float64(o.Span) / float64(span)
}

// Missed returns the share of the rate that was missed, from 0 to 1.
func (o *Offered) Missed() float64 {
	if o.Due == 0 {
		return 0
	}
	return float64(o.Unsent()) / float64(o.Due)
}

// Unsent returns the number of due messages that were not sent.
func (o *Offered) Unsent() uint64 { return max(o.Due, o.Sent) - o.Sent }

// Add adds the messages of another group at the same time.
func (o *Offered) Add(other Offered) {
	span := max(o.Span, other.Span)
	o.Due += other.Due
	o.Sent += other.Sent
	o.Rate = o.over(span) + other.over(span)
	o.Span = span
}
