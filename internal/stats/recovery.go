package stats

import (
	"slices"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// The load must reach recoveredShare of the rates before an outage again, for recoveredFor.
	recoveredShare = 0.9
	recoveredFor   = 3
	// beforeOutage is the number of seconds that determine the rates before an outage.
	beforeOutage = 10
)

// recovery detects when the rates are back after outages. Callers hold the lock of Outages.
type recovery struct {
	planned float64 // planned messages per second, if constant; 0 if unknown
	step    string
	before  []result.Rates // the last full seconds with messages
	base    result.Rates   // when the first of pending began
	pending []*outage      // outages without recovery so far
	known   int            // number of outages seen
	good    int            // full seconds at the rates of base, up to now
	since   time.Time      // start of the good seconds
}

// catchingUp is the least ratio of a second's rate to the planned rate that shows that overdue messages are being sent.
const catchingUp = 1.1

// AddInterval adds a snapshot of the load, and sets its Outages.
func (s *Outages) AddInterval(snap *Snapshot) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.fold()
	snap.Outages = s.progress(snap.To)
	r := &s.recovery
	length := snap.To.Sub(snap.From)
	if snap.Step != r.step { // another load has other rates
		*r = recovery{planned: r.planned, step: snap.Step, known: len(s.list)}
	}
	if snap.Phase == Drain || length < FullSecond {
		return
	}
	rates := result.Rates{
		Completed: float64(snap.Delta[result.Completed]) / length.Seconds(),
		Received:  float64(snap.Delta[result.Received]) / length.Seconds(),
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
	switch {
	case len(r.pending) > 0 && r.base != (result.Rates{}):
		r.checkRecovery(snap, rates, length)
	case slices.ContainsFunc(r.pending, func(o *outage) bool { return o.Length == 0 }): // nothing to compare yet
	default:
		r.pending = nil
		r.keepRates(rates)
	}
}

// keepRates keeps the rates of a second without outages, unless overdue messages were sent in it.
func (r *recovery) keepRates(rates result.Rates) {
	if rates != (result.Rates{}) && (r.planned == 0 || rates.Completed <= catchingUp*r.planned) {
		r.before = append(r.before[max(0, len(r.before)-beforeOutage+1):], rates)
	}
}

// checkRecovery checks whether the rates of a full second are back at the rates before the outage.
func (r *recovery) checkRecovery(snap *Snapshot, rates result.Rates, length time.Duration) {
	if !slices.ContainsFunc(r.pending, func(o *outage) bool { return o.Length == 0 }) {
		for _, o := range r.pending {
			o.Watched += length.Microseconds()
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
		if o.Length == 0 { // it has just begun
			return false
		}
		// An outage that began within the three seconds did not change the rates.
		o.Recovered = max(o.Confirmed, o.Received, o.after(r.since))
		return true
	})
	r.good = 0
}

// medians returns the median of each rate, and whether the seconds were consecutive.
func medians(list []result.Rates) (base result.Rates) {
	if len(list) == 0 {
		return base
	}
	var completed, received []float64
	for _, r := range list {
		completed, received = append(completed, r.Completed), append(received, r.Received)
	}
	slices.Sort(completed)
	slices.Sort(received)
	middle := func(sorted []float64) float64 { return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2 }
	return result.Rates{Completed: middle(completed), Received: middle(received)}
}
