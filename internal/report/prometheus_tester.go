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
	saturated uint64
}

func (f *testerFigures) add(s *stats.Snapshot) {
	f.sum.Add(&s.Health)
	f.memory, f.saturated = s.Health.Memory, s.Health.Saturated
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

// collectStalls emits the stalls of the whole run, of a side.
func (c *collector) collectStalls(side string, emit emitter) {
	var whole stats.PartStalls
	for _, p := range c.stalls {
		if p.Whole && p.Side == side {
			whole = p
		}
	}
	for _, phase := range []stats.Phase{stats.Measure, stats.Warmup} {
		emit.counter("stalls_total", whole.Count[phase], side, phase.String())
		emit.seconds("stall_seconds_total", whole.Length[phase], side, phase.String())
	}
}

// collectParts emits the stalls of groups and brokers, if there are several. Parts beyond namedParts are left out.
func (c *collector) collectParts(emit emitter) {
	named := 0
	for i := range c.stalls {
		p := &c.stalls[i]
		if p.Whole || p.Group != "" && len(c.run.Groups) < 2 || named == namedParts {
			continue
		}
		named++
		for _, phase := range []stats.Phase{stats.Measure, stats.Warmup} {
			labels := []string{safetext.Line(p.Group), safetext.Line(p.Broker), p.Side, phase.String()}
			emit.counter("group_stalls_total", p.Count[phase], labels...)
			emit.seconds("group_stall_seconds_total", p.Length[phase], labels...)
		}
	}
}
