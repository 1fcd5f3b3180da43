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
	// rates are messages completed, and received, per second
	before  [][2]float64 // the last full seconds with messages
	base    [2]float64   // when the first of pending began
	pending []*outage    // outages without recovery so far
	known   int          // number of outages seen
	good    int          // full seconds at the rates of base, up to now
	since   time.Time    // start of the good seconds
}

// catchingUp is the least ratio of a second's rate to the planned rate that shows that overdue messages are being sent.
const catchingUp = 1.1

// AddInterval adds a snapshot of the load, and sets the state of its outages.
func (s *Outages) AddInterval(snap *Snapshot) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	snap.Outage = s.progress(snap.To)
	snap.Disconnected, snap.Outages = snap.Outage.Down, uint64(snap.Outage.Count) //nolint:gosec // a number of outages
	r := &s.recovery
	length := snap.To.Sub(snap.From)
	if snap.Step != r.step { // another load has other rates
		*r = recovery{planned: r.planned, step: snap.Step, known: len(s.list)}
	}
	if snap.Phase == result.Drain || length < FullSecond {
		return
	}
	rates := [2]float64{
		float64(snap.Get(result.Completed)) / length.Seconds(),
		float64(snap.Get(result.Received)) / length.Seconds(),
	}
	if len(s.list) > r.known {
		if len(r.pending) == 0 {
			r.base = medians(r.before)
		}
		r.pending = append(r.pending, s.list[r.known:]...)
		r.known = len(s.list)
	}
	through := !slices.ContainsFunc(r.pending, func(o *outage) bool { return o.Length == 0 })
	switch {
	case len(r.pending) > 0 && r.base != [2]float64{}:
		r.checkRecovery(snap, rates, through)
	case through: // else there is nothing to compare yet
		r.pending = nil
		r.keepRates(rates)
	}
}

// keepRates keeps the rates of a second without outages, unless overdue messages were sent in it.
func (r *recovery) keepRates(rates [2]float64) {
	if rates != [2]float64{} && (r.planned == 0 || rates[0] <= catchingUp*r.planned) {
		r.before = append(r.before[max(0, len(r.before)-beforeOutage+1):], rates)
	}
}

// checkRecovery checks whether the rates of a full second are back at the rates before the outage. through: messages
// have come through after all outages.
func (r *recovery) checkRecovery(snap *Snapshot, rates [2]float64, through bool) {
	if through {
		for _, o := range r.pending {
			o.Watched += snap.To.Sub(snap.From).Microseconds()
		}
	}
	if rates[0] < recoveredShare*r.base[0] || rates[1] < recoveredShare*r.base[1] {
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

// medians returns the median of each rate.
func medians(list [][2]float64) (base [2]float64) {
	for side := range base {
		var sorted []float64
		for _, rates := range list {
			sorted = append(sorted, rates[side])
		}
		slices.Sort(sorted)
		if n := len(sorted); n > 0 {
			base[side] = (sorted[(n-1)/2] + sorted[n/2]) / 2
		}
	}
	return base
}
