package stats

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"

	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// beatInterval is the time between two beats.
	beatInterval = 20 * time.Millisecond
	// PauseLimit is the time without any activity of this process that counts as a pause. Beats come some milliseconds
	// late on a busy machine; a stopped process, or a suspended virtual machine, pauses for longer.
	PauseLimit = 200 * time.Millisecond
)

// Pulse beats during a run, to notice when perfmq was paused (SIGSTOP, a suspended virtual machine, no
// processor for a long time): messages in flight then took longer through no fault of the broker. It is safe for
// concurrent use; a nil Pulse never pauses.
type Pulse struct {
	clock   Clock
	blind   bool         // the use of the machine is not measured
	beat    atomic.Int64 // the last one, since the start of the run
	paused  atomic.Int64 // operations begun before this were in flight in the last pause; math.MinInt64 before the first
	resumed atomic.Int64 // when that pause ended; math.MinInt64 before the first

	mu     sync.Mutex
	pauses result.Tester // since the last take: only these
	stops  []gap         // the last maxStops pauses

	quit, done chan struct{}
}

// Clock tells the time since the start of a run.
type Clock interface {
	Now() time.Duration
	Start() time.Time
}

// NewPulse returns a pulse of the run with that clock. It does not beat yet.
func NewPulse(clock Clock) *Pulse {
	p := &Pulse{clock: clock, quit: make(chan struct{}), done: make(chan struct{})}
	p.paused.Store(math.MinInt64)
	p.resumed.Store(math.MinInt64)
	return p
}

// IgnoreMachine leaves out the use of the machine, which passes in real time while a test has a fake clock. Call it
// before Start and [Collector.SetPulse].
func (p *Pulse) IgnoreMachine() { p.blind = true }

// Start lets it beat until Stop. Call it once, after the clock has begun.
func (p *Pulse) Start() {
	p.beat.Store(int64(p.clock.Now()))
	go p.run()
}

// Stop ends the beats. Call it once, after Start.
func (p *Pulse) Stop() {
	close(p.quit)
	<-p.done
}

func (p *Pulse) run() {
	defer close(p.done)
	tick := time.Tick(beatInterval)
	for {
		select {
		case <-tick:
			p.tick(p.clock.Now())
		case <-p.quit:
			return
		}
	}
}

// tick is one beat.
func (p *Pulse) tick(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recordBeat(now)
}

// recordBeat records a beat, and the pause before it if there was one. p.mu is held.
func (p *Pulse) recordBeat(now time.Duration) {
	last := time.Duration(p.beat.Load())
	if length := now - last; length >= PauseLimit {
		p.pauses.Pauses++
		if len(p.stops) == maxStops {
			p.stops = p.stops[1:]
		}
		p.stops = append(p.stops, gap{from: last, to: now})
		if us := length.Microseconds(); us > p.pauses.PauseMax {
			p.pauses.PauseMax, p.pauses.PauseAt = us, p.clock.Start().Add(now).UnixMicro()
		}
		p.resumed.Store(int64(now))
		p.paused.Store(int64(begun(last, now))) // before the beat: see Spans
	}
	p.beat.Store(int64(now))
}

// Spans reports whether an operation between the two times, since the start of the run, took longer because perfmq
// was paused in between; the end is now. It may be called right after a pause, before the next beat.
func (p *Pulse) Spans(from, to time.Duration) bool {
	if p == nil {
		return false
	}
	beat := time.Duration(p.beat.Load())
	if to-beat >= PauseLimit && from < begun(beat, to) {
		return true
	}
	return int64(from) < p.paused.Load()
}

// Delayed reports whether an operation began after its due time because perfmq was paused in between, including
// one that began just at the end of the pause. Unlike for Spans, perfmq need not have run at the due time.
func (p *Pulse) Delayed(due, began time.Duration) bool {
	if p == nil {
		return false
	}
	before, resumed := time.Duration(p.paused.Load()), time.Duration(p.resumed.Load())
	return due < resumed && began >= resumed || due < before && began >= before
}

// begun returns the time before which an operation must have begun to have been in flight in a pause between two beats:
// just after the first beat, or, as that beat may have been late, PauseLimit before the second.
func begun(last, next time.Duration) time.Duration { return max(last+beatInterval, next-PauseLimit) }

// maxStops is the number of pauses that a pulse remembers.
const maxStops = 1024

// stopped returns the last maxStops pauses.
func (p *Pulse) stopped() []gap {
	_, stops := p.look(false)
	return stops
}

// stoodStill returns the length of perfmq's pauses in a time that ends about now.
func (p *Pulse) stoodStill(from, to time.Duration) (sum time.Duration) {
	for _, stop := range p.stopped() {
		sum += max(0, min(to, stop.to)-max(from, stop.from))
	}
	return sum
}

// look returns the pauses since the last one with take, and the last maxStops ones. It is a beat itself, as it may run
// before the first beat after a pause.
func (p *Pulse) look(take bool) (pauses result.Tester, stops []gap) {
	if p == nil {
		return pauses, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recordBeat(p.clock.Now())
	if take {
		p.pauses, pauses = pauses, p.pauses
	}
	return pauses, slices.Clone(p.stops)
}

// healthMeter reads the process's own use of the machine, interval by interval.
type healthMeter struct {
	last   time.Time
	used   func() result.Tester         // processor time since the last call
	pulse  *Pulse                       // nil without a pulse
	waited func() (time.Duration, bool) // [processDelay]
	delay  time.Duration                // as of the last interval
	gc     debug.GCStats                // as of the last interval
	owed   time.Duration                // how long sends made late by a pause may take to leave
}

func newHealthMeter(now time.Time) *healthMeter {
	m := &healthMeter{last: now, used: cpuLaps(), waited: processDelay}
	m.delay, _ = m.waited()
	debug.ReadGCStats(&m.gc)
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
	before := m.gc.PauseTotal
	debug.ReadGCStats(&m.gc)
	h.GCPause = (m.gc.PauseTotal - before).Microseconds()
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

// machineCPU returns the processor time that all programs of this machine have used so far, and the time available; 0
// where unknown. The kernel samples at each tick, so it may miss short bursts of work: trust the value only when there
// is little idle time. Time that a hypervisor took away counts as used.
func machineCPU() (busy, all time.Duration) {
	list, err := cpu.Times(false)
	if err != nil || len(list) == 0 {
		return 0, 0
	}
	t := &list[0]
	used := t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	busy = seconds(used)
	return busy, busy + seconds(t.Idle+t.Iowait) // rounded alike: busy never exceeds all
}

// processMemory returns the resident bytes of this process.
func processMemory() uint64 {
	m, err := (&process.Process{Pid: int32(os.Getpid())}).MemoryInfo() //nolint:gosec // process IDs are of 32 bits
	if err != nil {
		return 0
	}
	return m.RSS
}

// peakMemory returns the largest number of resident bytes that this process ever had: VmHWM of /proc/self/status, in
// KiB (proc_pid_status(5)); 0 where the system does not report it.
func peakMemory() uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, line, _ := bytes.Cut(text, []byte("\nVmHWM:"))
	kib, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	n, err := strconv.ParseUint(string(kib), 10, 48)
	if err != nil {
		return 0
	}
	return n << 10
}

// MachineMemory returns the memory of the machine in bytes; 0 where the system does not report it.
func MachineMemory() uint64 {
	m, err := mem.VirtualMemory()
	if err != nil {
		return 0
	}
	return m.Total
}

// processDelay returns the time, added up, for which runnable threads of this process have waited for a processor;
// ended threads do not count. Only Linux reports it.
func processDelay() (sum time.Duration, known bool) {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		return 0, false
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if d, ok := parseDelay(text); ok {
			sum, known = sum+d, true
		}
	}
	return sum, known
}

// parseDelay reads /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst of Linux): nanoseconds spent on a
// processor, nanoseconds spent waiting for one, and the number of time slices. All are zero if the kernel does not
// count.
func parseDelay(text []byte) (d time.Duration, ok bool) {
	fields := bytes.Fields(text)
	if len(fields) < 3 || string(fields[0]) == "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return time.Duration(n), err == nil && n >= 0
}
