package report

import (
	"time"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
)

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

func (f *testerFigures) collect(emit emitter) {
	h := &f.sum
	emit.seconds("tester_cpu_seconds_total", h.CPU)
	emit.gauge("tester_cores", float64(h.Cores))
	emit.counter("tester_gc_pauses_total", h.GCPauses)
	emit.gauge("tester_gc_pause_max_seconds", h.GCPauseMax.Seconds())
	if f.memory > 0 {
		emit.gauge("tester_memory_bytes", float64(f.memory))
	}
	if h.DelayKnown {
		emit.seconds("tester_processor_wait_seconds_total", h.Delay)
	}
	emit.counter("tester_pauses_total", h.Pauses)
	emit.gauge("tester_pause_max_seconds", h.PauseMax.Seconds())
	emit.seconds("tester_clock_step_seconds_total", h.ClockForward, "forward")
	emit.seconds("tester_clock_step_seconds_total", h.ClockBackward, "backward")
	emit.gauge("tester_workers_saturated", float64(f.saturated))
	emit.seconds("machine_crowded_seconds_total", f.crowded)
	if h.MachineAll > 0 {
		emit.seconds("machine_cpu_busy_seconds_total", h.Machine)
		emit.seconds("machine_cpu_seconds_total", h.MachineAll)
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

func (f *stallFigures) collect(side stats.Side, emit emitter) {
	for warmup, phase := range []stats.Phase{stats.Measure, stats.Warmup} {
		of := &f[side][warmup]
		emit.counter("stalls_total", of.count, side.String(), phase.String())
		emit.seconds("stall_seconds_total", of.length, side.String(), phase.String())
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
			emit.counter("group_stalls_total", sum.Count, labels...)
			emit.seconds("group_stall_seconds_total", sum.Length, labels...)
		}
	}
}
