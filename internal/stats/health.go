package stats

import (
	"runtime"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// healthMeter reads the process's own use of the machine, interval by interval.
type healthMeter struct {
	last   time.Time
	used   func() Health                // processor time since the last call
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
func (m *healthMeter) interval(now time.Time, delta *Counters) Health {
	var h Health
	if !m.blind() {
		h = m.machine()
	}
	h.Wall, h.Cores = now.Sub(m.last), runtime.GOMAXPROCS(0)
	h.LateSends, h.Sent = delta[result.LateSends], delta[result.Sent]
	h.ClockForward, h.ClockBackward = m.clockSteps(now)
	paused := m.pulse.takePauses()
	h.Pauses, h.PauseMax, h.PauseAt = paused.Pauses, paused.PauseMax, paused.PauseAt
	h.WasCrowded = h.Crowded()
	switch {
	case h.Pauses > 0 || m.owed > 0:
		h.LatePaused = h.LateSends
	case h.WasCrowded:
		h.LateCrowded = h.LateSends
	}
	if m.owed = max(0, m.owed-h.Wall); h.Pauses > 0 {
		m.owed = h.PauseMax
	}
	m.last = now
	return h
}

// blind tells that the use of the machine is not measured.
func (m *healthMeter) blind() bool { return m.pulse != nil && m.pulse.blind }

// machine returns the use of the machine since the last interval.
func (m *healthMeter) machine() Health {
	h := m.used()
	h.Memory = processMemory()
	delay, known := m.waited()
	h.Delay, h.DelayKnown = max(0, delay-m.delay), known // the figures of ended threads are lost
	m.delay = delay
	return h
}

// clockSteps returns the steps of the wall clock since the last interval.
func (m *healthMeter) clockSteps(now time.Time) (forward, backward time.Duration) {
	// Without their monotonic readings, times differ by the reading of the wall clock.
	step := now.Round(0).Sub(m.last.Round(0)) - now.Sub(m.last)
	return max(0, step), max(0, -step)
}

// cpuLaps returns a function that returns the processor time of this process and of the machine since its last call.
func cpuLaps() func() Health {
	var last Health
	lap := func() Health {
		now := Health{CPU: processCPU()}
		now.Machine, now.MachineAll = machineCPU()
		h := Health{CPU: now.CPU - last.CPU, Machine: now.Machine - last.Machine}
		h.MachineAll = now.MachineAll - last.MachineAll
		last = now
		return h
	}
	lap()
	return lap
}

// Add adds the next interval. It keeps crowding, maxima and clock steps of single intervals: the whole is judged by
// them.
func (h *Health) Add(o *Health) {
	h.CPU += o.CPU
	h.Machine += o.Machine
	h.MachineAll += o.MachineAll
	h.Wall += o.Wall
	h.Delay += o.Delay
	h.DelayKnown = o.DelayKnown
	h.Cores = o.Cores
	h.Memory = max(h.Memory, o.Memory)
	h.WasCrowded = h.WasCrowded || o.WasCrowded
	h.LateSends += o.LateSends
	h.LateCrowded += o.LateCrowded
	h.LatePaused += o.LatePaused
	h.Sent += o.Sent
	h.Saturated += o.Saturated
	if o.PauseMax > h.PauseMax {
		h.PauseMax, h.PauseAt = o.PauseMax, o.PauseAt
	}
	h.Pauses += o.Pauses
	h.addClock(o.ClockForward, o.ClockBackward, o.Wall)
}

// addClock adds a step of the wall clock within a time. The clock of a machine is always adjusted a little: only a step
// counts.
func (h *Health) addClock(forward, backward, within time.Duration) {
	if least := max(MaxClockStep, time.Duration(within.Seconds()*float64(MaxClockStep))); forward > least {
		h.ClockForward += forward
	} else if backward > least {
		h.ClockBackward += backward
	}
}

// CPUShare returns the processor time used as a share of the time that the process may use: 1 is all of it.
func (h Health) CPUShare() float64 {
	if h.Wall <= 0 || h.Cores == 0 {
		return 0
	}
	return h.CPU.Seconds() / (h.Wall.Seconds() * float64(h.Cores))
}

// MachineShare returns the share of the machine's processor time that all processes used: 1 is all of it. It is 0 if
// unknown.
func (h Health) MachineShare() float64 {
	if h.MachineAll <= 0 {
		return 0
	}
	return h.Machine.Seconds() / h.MachineAll.Seconds()
}

// OthersShare returns the share of the machine's processor time that other processes used.
func (h Health) OthersShare() float64 {
	if h.MachineAll <= 0 {
		return 0
	}
	return max(0, h.Machine-h.CPU).Seconds() / h.MachineAll.Seconds()
}

// Crowded reports whether other programs kept the machine's processors so busy that perfmq had to wait for one. The
// measured latencies include that wait.
func (h Health) Crowded() bool {
	return h.MachineShare() > MaxCPUShare && h.OthersShare() > MaxOthersShare
}

// Limits above which perfmq counts as unfit.
const (
	// MaxCPUShare is the share of its processors that perfmq may use, and the share of the machine's processors that
	// all programs may use.
	MaxCPUShare = 0.9
	// MaxOthersShare is the share of a busy machine that other programs may use.
	MaxOthersShare = 0.1
	// MaxLateShare is the share of sends that may leave late through perfmq's own fault.
	MaxLateShare = 0.01
	// MinLate is the smallest number of late sends that is worth a warning.
	MinLate = 20
	// MaxClockStep is the largest step of the wall clock during a run without a warning: it shifts the transfer times
	// between two machines.
	MaxClockStep = time.Millisecond
)

// Late reports whether n late sends may have limited the load: more than MaxLateShare of the messages sent, and at
// least MinLate, since a few are not significant.
func (h Health) Late(n uint64) bool {
	return n >= MinLate && float64(n) > MaxLateShare*float64(h.Sent)
}

// LateOwn is the number of sends that left late through perfmq's own fault: neither the broker nor max-pending held
// them up, no pause stopped perfmq, and no other program kept the machine's processors busy.
func (h Health) LateOwn() uint64 { return h.LateSends - h.LateCrowded - h.LatePaused }
