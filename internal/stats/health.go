package stats

import (
	"runtime"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// healthMeter reads the process's own use of the machine, interval by interval.
type healthMeter struct {
	last   time.Time
	used   func() result.Tester         // processor time since the last call
	pulse  *Pulse                       // nil without a pulse
	waited func() (time.Duration, bool) // [processDelay]
	delay  time.Duration                // as of the last interval
	owed   time.Duration                // how long sends made late by a pause may take to leave
}

func newHealthMeter(now time.Time) *healthMeter {
	m := &healthMeter{last: now, used: cpuLaps(), waited: processDelay}
	m.delay, _ = m.waited()
	return m
}

// interval returns the health since the last call.
func (m *healthMeter) interval(now time.Time, delta *Counters) result.Tester {
	var h result.Tester
	if !m.blind() {
		h = m.machine()
	}
	wall := now.Sub(m.last)
	h.Wall, h.Cores = wall.Microseconds(), runtime.GOMAXPROCS(0)
	h.ClockForward, h.ClockBackward = m.clockSteps(now)
	paused, _ := m.pulse.look(true)
	h.Pauses, h.PauseMax, h.PauseAt = paused.Pauses, paused.PauseMax, paused.PauseAt
	if h.Pauses > 0 || m.owed > 0 || h.Crowded() {
		h.LateExcused = delta[result.LateSends]
	}
	if m.owed = max(0, m.owed-wall); h.Pauses > 0 {
		m.owed = time.Duration(h.PauseMax) * time.Microsecond
	}
	m.last = now
	return h
}

// blind tells that the use of the machine is not measured.
func (m *healthMeter) blind() bool { return m.pulse != nil && m.pulse.blind }

// machine returns the use of the machine since the last interval.
func (m *healthMeter) machine() result.Tester {
	h := m.used()
	h.Memory = processMemory()
	delay, known := m.waited()
	h.Delay, h.DelayKnown = max(0, delay-m.delay).Microseconds(), known // the figures of ended threads are lost
	m.delay = delay
	return h
}

// maxClockStep is the largest step of the wall clock in a second that does not count: the clock of a machine is always
// adjusted a little. A larger one shifts the transfer times between two machines.
const maxClockStep = time.Millisecond

// clockSteps returns the steps of the wall clock since the last interval, in microseconds.
func (m *healthMeter) clockSteps(now time.Time) (forward, backward int64) {
	// Without their monotonic readings, times differ by the reading of the wall clock.
	within := now.Sub(m.last)
	return clockStep(now.Round(0).Sub(m.last.Round(0))-within, within)
}

// clockStep returns a step of the wall clock in a time; 0 if it is too small to count.
func clockStep(step, within time.Duration) (forward, backward int64) {
	if max(step, -step) <= max(maxClockStep, time.Duration(within.Seconds()*float64(maxClockStep))) {
		return 0, 0
	}
	return max(0, step).Microseconds(), max(0, -step).Microseconds()
}

// cpuLaps returns a function that returns the processor time of this process and of the machine since its last call.
func cpuLaps() func() result.Tester {
	var last [3]time.Duration
	lap := func() result.Tester {
		busy, all := machineCPU()
		now := [3]time.Duration{processCPU(), busy, all}
		h := result.Tester{
			CPU: (now[0] - last[0]).Microseconds(), MachineBusy: (now[1] - last[1]).Microseconds(),
			MachineAll: (now[2] - last[2]).Microseconds(),
		}
		last = now
		return h
	}
	lap()
	return lap
}
