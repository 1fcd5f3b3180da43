package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// FullSecond is the length from which an interval counts as a full second. On a busy machine the sampler wakes up to
	// some tenths late, and the interval after a late cut is shorter by that; leaving it out might hide a stall.
	FullSecond = 700 * time.Millisecond
	// EnoughSeconds is the number of full seconds that a lowest rate needs to be significant.
	EnoughSeconds = 3
)

// Peaks are the lowest, or the highest, rates over the seconds of the measurement: warm-up and drain are left out. A
// stall of the broker shows as a lowest rate of 0, and so does a load of less than a message per second. The lowest
// rate of receiving begins with the first full second after the first message, the highest is of all seconds; the rates
// of a backlog are of the time from its first to its last message.
//
// An interval that took longer, because perfmq was stopped or its reporters were a minute behind, counts with the rate
// over its real length.
type Peaks struct {
	Completed, Received Lowest
}

// Lowest is the lowest rate, or the highest one, and its time.
type Lowest struct {
	Seconds   int           // the number of seconds considered
	PerSecond float64       // messages per second
	To        time.Time     // when that second ended, wall clock
	Elapsed   time.Duration // the same from the start of the load
}

// Known reports whether there were enough seconds (three) for the rate to be significant.
func (l *Lowest) Known() bool { return l.Seconds >= EnoughSeconds }

// add considers a second, and keeps the lower rate, or with sign -1 the higher one.
func (l *Lowest) add(s *stretch, sign float64) {
	l.Include(&Lowest{1, float64(s.messages) / s.length.Seconds(), s.to, s.elapsed}, sign)
}

// Extreme returns the rate as results have it; nil if it is not Known.
func (l *Lowest) Extreme() *result.Extreme {
	if !l.Known() {
		return nil
	}
	return &result.Extreme{PerSecond: l.PerSecond, Time: l.To.UnixMicro(), Elapsed: l.Elapsed.Microseconds()}
}

// Include considers the rates of other seconds.
func (l *Lowest) Include(o *Lowest, sign float64) {
	seconds := l.Seconds + o.Seconds
	if l.Seconds == 0 || o.Seconds > 0 && sign*o.PerSecond < sign*l.PerSecond {
		*l = *o
	}
	l.Seconds = seconds
}

// Only removes the rates of a side that does not take part: without producers, a rate of 0 is not their lowest.
func (p *Peaks) Only(sends, receives bool) {
	if !sends {
		p.Completed = Lowest{}
	}
	if !receives {
		p.Received = Lowest{}
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

	completed, received line
}

// line is a least-squares line through points: the sums of their times in seconds, values and products.
type line struct{ n, t, v, tt, tv float64 }

func (l *line) add(t, v float64) {
	l.n++
	l.t += t
	l.v += v
	l.tt += t * t
	l.tv += t * v
}

// slope returns the growth of the value per second; 0 if unknown.
func (l *line) slope() float64 {
	d := l.n*l.tt - l.t*l.t
	if l.n < EnoughSeconds || d <= 0 {
		return 0
	}
	return (l.n*l.tv - l.t*l.v) / d
}

// Growth returns the steady growth of the backlog in messages per second, if each completed message is delivered that
// many times.
func (a *Average) Growth(deliveries float64) float64 {
	return deliveries*a.completed.slope() - a.received.slope()
}

// PerSecond returns a rate of n messages, or bytes, in the measurement.
func (a *Average) PerSecond(n uint64) float64 {
	if a.Span <= 0 {
		return 0
	}
	return float64(n) / a.Span.Seconds()
}

func (a *Average) add(s *Snapshot) {
	a.Span += s.To.Sub(s.From)
	a.Sent += s.Delta[result.Sent]
	a.Completed += s.Delta[result.Completed]
	a.Received += s.Delta[result.Received]
	a.CompletedBytes += s.Delta[result.CompletedBytes]
	a.ReceivedBytes += s.Delta[result.ReceivedBytes]
	seconds := a.Span.Seconds()
	a.completed.add(seconds, float64(a.Completed))
	a.received.add(seconds, float64(a.Received))
}
