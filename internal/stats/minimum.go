package stats

import "time"

const (
	// fullSecond is the length from which an interval counts as a full second. On a busy machine the sampler wakes up to
	// some tenths late, and the interval after a late cut is shorter by that; leaving it out might hide a stall.
	fullSecond = 700 * time.Millisecond
	// enoughSeconds is how many full seconds there must be for the lowest rate to mean anything.
	enoughSeconds = 3
)

// Minimum holds the lowest rates over the full seconds of the measurement: warm-up, drain and the shorter intervals at
// the ends of phases are left out. A stall of the broker shows as 0, and so does a load of less than a message per
// second or a consumer that had to wait for its first message.
//
// An interval that took longer, because the tester was stopped or its reporters were a minute behind, counts with the
// rate over its real length.
type Minimum struct {
	// Seconds is how many intervals were looked at.
	Seconds             int
	Completed, Received Lowest
}

// Lowest is a rate and when it was that low.
type Lowest struct {
	PerSecond float64       // messages per second
	To        time.Time     // when that second ended, wall clock
	Elapsed   time.Duration // the same from the start of the load
}

// Known tells whether there were enough full seconds, which is three, for the minimum to be worth telling.
func (m *Minimum) Known() bool { return m.Seconds >= enoughSeconds }

func (m *Minimum) add(s *Snapshot) {
	length := s.To.Sub(s.From)
	if length < fullSecond {
		return
	}
	note := func(l *Lowest, delta uint64) {
		if rate := float64(delta) / length.Seconds(); m.Seconds == 0 || rate < l.PerSecond {
			*l = Lowest{PerSecond: rate, To: s.To, Elapsed: s.Elapsed}
		}
	}
	note(&m.Completed, s.Delta.Completed)
	note(&m.Received, s.Delta.Received)
	m.Seconds++
}
