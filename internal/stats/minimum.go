package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// FullSecond is the length from which an interval counts as a full second. On a busy machine the sampler wakes up to
// some tenths late, and the interval after a late cut is shorter by that; leaving it out might hide a stall.
const FullSecond = 700 * time.Millisecond

// Peaks are the lowest, or the highest, rates over the seconds of the measurement: warm-up and drain are left out. A
// stall of the broker shows as a lowest rate of 0, and so does a load of less than a message per second. The lowest
// rate of receiving begins with the first full second after the first message, the highest is of all seconds; the rates
// of a backlog are of the time from its first to its last message.
//
// An interval that took longer, because perfmq was stopped or its reporters were a minute behind, counts with the rate
// over its real length.
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
	if l.n < result.EnoughSeconds || d <= 0 {
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

// Add adds the counts of an interval, by their [result.Counter].
func (a *Average) Add(span time.Duration, n []uint64) {
	a.Span += span
	a.Sent += n[result.Sent]
	a.Completed += n[result.Completed]
	a.Received += n[result.Received]
	a.CompletedBytes += n[result.CompletedBytes]
	a.ReceivedBytes += n[result.ReceivedBytes]
	seconds := a.Span.Seconds()
	a.completed.add(seconds, float64(a.Completed))
	a.received.add(seconds, float64(a.Received))
}
