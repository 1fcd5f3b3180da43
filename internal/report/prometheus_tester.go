package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
)

// testerDescriptions describe the metrics of the tester's own health and of its machine.
type testerDescriptions struct {
	cpu, cores, gcPauses, gcPauseMax     *prometheus.Desc
	memory, wait, pauses, pauseMax       *prometheus.Desc
	clock, saturated, machine, machineUp *prometheus.Desc
	crowded                              *prometheus.Desc
}

func describeTester(d *describer) testerDescriptions {
	return testerDescriptions{
		cpu:        d.of("tester_cpu_seconds_total", "Processor time used by this process since the load began."),
		cores:      d.of("tester_cores", "Processors that this process may use at once."),
		gcPauses:   d.of("tester_gc_pauses_total", "Stops of this process for garbage collection since the load began."),
		gcPauseMax: d.of("tester_gc_pause_max_seconds", "The longest of them."),
		memory:     d.of("tester_memory_bytes", "Resident memory of this process."),
		wait: d.of("tester_processor_wait_seconds_total",
			"How long threads of this process, added up, waited for a processor."),
		pauses:   d.of("tester_pauses_total", "Times in which nothing of this process ran."),
		pauseMax: d.of("tester_pause_max_seconds", "The longest of them."),
		clock: d.of("tester_clock_step_seconds_total", "How far the wall clock was set, forward and backward.",
			"direction"),
		saturated: d.of("tester_workers_saturated", "Producers and consumers that never waited in the last second: the "+
			"tester was their limit."),
		machine: d.of("machine_cpu_busy_seconds_total",
			"Processor time used on the whole machine, by all, since the load began."),
		machineUp: d.of("machine_cpu_seconds_total", "Processor time that the machine had since the load began."),
		crowded: d.of("machine_crowded_seconds_total",
			"Time in which other programs kept the processors so busy that latencies include waits for one."),
	}
}

// testerFigures are the tester's figures over all intervals so far.
type testerFigures struct {
	sum       stats.Health
	memory    uint64 // at the end of the last interval
	crowded   time.Duration
	saturated int
}

func (f *testerFigures) add(s *stats.Snapshot) {
	f.sum.Add(&s.Health)
	f.memory, f.saturated = s.Health.Memory, len(s.Saturated)
	if s.Health.WasCrowded {
		f.crowded += s.Health.Wall
	}
}

func (f *testerFigures) collect(d *testerDescriptions, emit emitter) {
	h := &f.sum
	emit.seconds(d.cpu, h.CPU)
	emit.gauge(d.cores, float64(h.Cores))
	emit.counter(d.gcPauses, h.GCPauses)
	emit.gauge(d.gcPauseMax, h.GCPauseMax.Seconds())
	if f.memory > 0 {
		emit.gauge(d.memory, float64(f.memory))
	}
	if h.DelayKnown {
		emit.seconds(d.wait, h.Delay)
	}
	emit.counter(d.pauses, h.Pauses)
	emit.gauge(d.pauseMax, h.PauseMax.Seconds())
	emit.seconds(d.clock, h.ClockForward, "forward")
	emit.seconds(d.clock, h.ClockBackward, "backward")
	emit.gauge(d.saturated, float64(f.saturated))
	emit.seconds(d.crowded, f.crowded)
	if h.MachineAll > 0 {
		emit.seconds(d.machine, h.Machine)
		emit.seconds(d.machineUp, h.MachineAll)
	}
}

// stallFigures are the stalls so far, by side and by phase: 0 measured, 1 warm-up.
type stallFigures [2][2]struct {
	count  uint64
	length time.Duration
}

func (f *stallFigures) add(list []stats.Stall) {
	for i := range list {
		s := &list[i]
		warmup := 0
		if s.Warmup {
			warmup = 1
		}
		if s.Side < stats.BothSides { // snapshots have stalls per side only
			of := &f[s.Side][warmup]
			of.count++
			of.length += s.Length
		}
	}
}

func (f *stallFigures) collect(d *descriptions, side stats.Side, emit emitter) {
	for warmup, phase := range []stats.Phase{stats.Measure, stats.Warmup} {
		of := &f[side][warmup]
		emit.counter(d.stalls, of.count, side.String(), phase.String())
		emit.seconds(d.stallSeconds, of.length, side.String(), phase.String())
	}
}

// collectParts emits the stalls of groups and brokers, if there are several. Parts beyond namedParts are left out.
func (c *collector) collectParts(emit emitter) {
	for i := range c.parts[:min(len(c.parts), namedParts)] {
		p := &c.parts[i]
		if p.Group != "" && len(c.run.Groups) < 2 {
			continue
		}
		for _, sum := range []struct {
			phase stats.Phase
			stats.StallSum
		}{{stats.Measure, p.Measured}, {stats.Warmup, p.Warmup}} {
			labels := []string{safetext.Line(p.Group), safetext.Line(p.Broker), p.Side.String(), sum.phase.String()}
			emit.counter(c.d.partStalls, sum.Count, labels...)
			emit.seconds(c.d.partStallSeconds, sum.Length, labels...)
		}
	}
}
