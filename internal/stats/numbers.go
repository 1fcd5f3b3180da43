package stats

import "time"

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
