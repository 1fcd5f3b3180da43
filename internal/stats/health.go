package stats

import (
	"math"
	"runtime"
	"runtime/metrics"
	"time"
)

const gcPauses = "/sched/pauses/total/gc:seconds" // a histogram, see package runtime/metrics

// healthMeter reads the process's own use of the machine.
type healthMeter struct {
	start, last                            time.Time
	startCPU, lastCPU                      time.Duration
	startBusy, startAll, lastBusy, lastAll time.Duration // of the machine
	startGC, lastGC                        []uint64
	sample                                 [1]metrics.Sample
	bounds                                 []float64
}

func newHealthMeter(now time.Time) *healthMeter {
	m := &healthMeter{start: now, last: now, startCPU: processCPU()}
	m.lastCPU = m.startCPU
	m.startBusy, m.startAll = machineCPU()
	m.lastBusy, m.lastAll = m.startBusy, m.startAll
	m.sample[0].Name = gcPauses
	m.startGC = m.readGC()
	m.lastGC = m.startGC
	return m
}

// readGC returns a copy of the counts of the pause histogram, and remembers its bounds.
func (m *healthMeter) readGC() []uint64 {
	metrics.Read(m.sample[:])
	if m.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil
	}
	h := m.sample[0].Value.Float64Histogram()
	m.bounds = h.Buckets
	return append([]uint64(nil), h.Counts...)
}

func (m *healthMeter) interval(now time.Time, delta Counters) Health {
	cpu, gc := processCPU(), m.readGC()
	h := m.health(m.last, now, m.lastCPU, cpu, m.lastGC, gc)
	h.LateSends, h.Sent = delta.LateSends, delta.Sent
	busy, all := machineCPU()
	h.Machine, h.MachineAll = busy-m.lastBusy, all-m.lastAll
	m.lastBusy, m.lastAll = busy, all
	m.last, m.lastCPU, m.lastGC = now, cpu, gc
	return h
}

// whole returns the health from the start to the last interval's end.
func (m *healthMeter) whole(now time.Time, total Counters) Health {
	h := m.health(m.start, now, m.startCPU, m.lastCPU, m.startGC, m.lastGC)
	h.LateSends, h.Sent = total.LateSends, total.Sent
	h.Machine, h.MachineAll = m.lastBusy-m.startBusy, m.lastAll-m.startAll
	return h
}

func (m *healthMeter) health(from, to time.Time, cpu0, cpu1 time.Duration, gc0, gc1 []uint64) Health {
	h := Health{CPU: cpu1 - cpu0, Wall: to.Sub(from), Cores: runtime.GOMAXPROCS(0)}
	for i := range gc1 {
		if n := gc1[i] - gc0[i]; n > 0 {
			h.GCPauses += n
			upper := m.bounds[i+1]
			if math.IsInf(upper, 1) {
				upper = m.bounds[i]
			}
			h.GCPauseMax = time.Duration(upper * float64(time.Second))
		}
	}
	// Without their monotonic readings, times differ by what the wall clock says.
	h.ClockStep = to.Round(0).Sub(m.start.Round(0)) - to.Sub(m.start)
	return h
}

// CPUShare returns the processor time used as a share of what the process may use: 1 is all of it.
func (h Health) CPUShare() float64 {
	if h.Wall <= 0 || h.Cores == 0 {
		return 0
	}
	return h.CPU.Seconds() / (h.Wall.Seconds() * float64(h.Cores))
}

// MachineShare returns how much of the machine's processor time was used, by this process and all others: 1 is all of it.
// It is 0 where the system does not tell.
func (h Health) MachineShare() float64 {
	if h.MachineAll <= 0 {
		return 0
	}
	return h.Machine.Seconds() / h.MachineAll.Seconds()
}

// OthersShare returns the part of the machine's processor time that others than this process used.
func (h Health) OthersShare() float64 {
	if h.MachineAll <= 0 {
		return 0
	}
	return max(0, h.Machine-h.CPU).Seconds() / h.MachineAll.Seconds()
}

// Crowded tells whether others kept the machine's processors so busy that the tester had to wait for one. Its latencies
// include that.
func (h Health) Crowded() bool {
	return h.MachineShare() > MaxCPUShare && h.OthersShare() > MaxOthersShare
}

// Limits above which the tester counts as unfit.
const (
	// MaxCPUShare is the share of its processors that the tester may use, and of the machine's that all may use.
	MaxCPUShare = 0.9
	// MaxOthersShare is the share of a busy machine that others may use.
	MaxOthersShare = 0.1
	// MaxLateShare is the share of sends that may leave late through the tester's own fault.
	MaxLateShare = 0.01
	// MinLate is how many late sends are worth a warning at all.
	MinLate = 20
	// MaxGCPause is the longest stop for garbage collection that is not worth a warning.
	MaxGCPause = 10 * time.Millisecond
	// MaxClockStep is how far the wall clock may be set during a run without a warning: it shifts the transfer times
	// between two machines.
	MaxClockStep = time.Millisecond
)

// Bottleneck tells whether the tester, rather than the broker, may have limited the load.
func (h Health) Bottleneck() bool {
	return h.CPUShare() > MaxCPUShare || h.Late()
}

// Late tells whether so many sends left late through the tester's own fault that it may have limited the load: more
// than MaxLateShare of them and at least MinLate, since a few say nothing.
func (h Health) Late() bool {
	return h.LateSends >= MinLate && float64(h.LateSends) > MaxLateShare*float64(h.Sent)
}
