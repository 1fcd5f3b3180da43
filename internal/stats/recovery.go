package stats

import (
	"slices"
	"time"
)

// Rates are messages per second.
type Rates struct{ Completed, Received float64 }

const (
	// recoveredShare is how much of the rates before an outage the load must reach again, and recoveredFor for how long.
	recoveredShare = 0.9
	recoveredFor   = 3
	// beforeOutage is how many seconds the rates before an outage are taken from.
	beforeOutage = 10
)

// recovery finds out when the rates are back after outages. Outages holds its lock.
type recovery struct {
	step    string
	before  []Rates   // of the last full seconds in which something came
	base    Rates     // when the first of pending began
	pending []*outage // the load has not recovered from them
	known   int       // how many outages it has seen
	good    int       // full seconds at the rates of base, up to now
	since   time.Time // when these began
}

// Interval takes a snapshot of the load, and tells it how things stand.
func (s *Outages) Interval(snap *Snapshot) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	snap.Outages = s.progress(snap.To)
	r := &s.recovery
	length := snap.To.Sub(snap.From)
	if snap.Step != r.step { // another load has other rates
		*r = recovery{step: snap.Step, known: len(s.list)}
	}
	if snap.Phase == Drain || length < FullSecond {
		return
	}
	rates := Rates{
		Completed: float64(snap.Delta.Completed) / length.Seconds(),
		Received:  float64(snap.Delta.Received) / length.Seconds(),
	}
	if len(s.list) > r.known {
		if len(r.pending) == 0 {
			r.base = medians(r.before)
		}
		for _, o := range s.list[r.known:] {
			o.Before = r.base
			r.pending = append(r.pending, o)
		}
		r.known = len(s.list)
	}
	if len(r.pending) == 0 || r.base == (Rates{}) {
		if r.pending = nil; snap.Delta.Completed+snap.Delta.Received > 0 {
			r.before = append(r.before[max(0, len(r.before)-beforeOutage+1):], rates)
		}
		return
	}
	r.look(snap, rates, length)
}

// look sees whether the rates of a full second are those of before.
func (r *recovery) look(snap *Snapshot, rates Rates, length time.Duration) {
	for _, o := range r.pending {
		if o.Length() > 0 {
			o.Watched += length
		}
	}
	if rates.Completed < recoveredShare*r.base.Completed || rates.Received < recoveredShare*r.base.Received {
		r.good = 0
		return
	}
	if r.good++; r.good == 1 {
		r.since = snap.From
	}
	if r.good < recoveredFor {
		return
	}
	r.pending = slices.DeleteFunc(r.pending, func(o *outage) bool {
		if o.Length() == 0 { // one that has just begun
			return false
		}
		o.Recovered = max(o.Length(), r.since.Sub(o.Start)) // one within the three seconds left the rates as they were
		return true
	})
	r.before, r.good = nil, 0
}

// medians returns those of each rate.
func medians(list []Rates) Rates {
	if len(list) == 0 {
		return Rates{}
	}
	var completed, received []float64
	for _, r := range list {
		completed, received = append(completed, r.Completed), append(received, r.Received)
	}
	slices.Sort(completed)
	slices.Sort(received)
	middle := func(of []float64) float64 { return (of[(len(of)-1)/2] + of[len(of)/2]) / 2 }
	return Rates{middle(completed), middle(received)}
}
