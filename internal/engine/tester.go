package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

// mostlySaturated is the share of its full seconds in which a worker must never have waited for a warning: single seconds
// happen, such as the first, in which queues fill.
const mostlySaturated = 0.2

// namedWorkers is how many saturated workers a warning names.
const namedWorkers = 3

// aboutTester says when the tester itself, or its machine, took part in the results.
func (r *run) aboutTester(s *stats.Summary, add func(string, ...any)) {
	h := &s.Health
	if h.CPUShare() > stats.MaxCPUShare {
		add("the tester was the bottleneck: it used %.0f%% of the %d processors it may use", 100*h.CPUShare(), h.Cores)
	}
	switch text, crowded := saturated(s.Saturation); {
	case text == "":
	case crowded:
		add("the tester, or its machine, of whose processors others used %.0f%%, was the bottleneck: %s", 100*h.OthersShare(), text)
	default:
		add("the tester was the bottleneck: %s; more producers, consumers or connections may bring more", text)
	}
	if h.Crowded() {
		add("the machine was %.0f%% busy, %.0f%% with others than the tester, such as a broker on the same machine: latencies include "+
			"waits for a processor", 100*h.MachineShare(), 100*h.OthersShare())
	}
	if h.Pauses > 0 {
		add("the tester itself stood still %s, the longest for %s until %s (stopped, suspended, or without a processor): %d latencies include that",
			times(h.Pauses), h.PauseMax.Round(time.Millisecond), h.PauseAt.Format(time.TimeOnly), s.Total.Paused)
	}
	if n := h.LateOwn(); h.Late(n) {
		add("the tester was the bottleneck: it sent %d of %d messages late through its own fault", n, h.Sent)
	}
	if n := h.LateCrowded; h.Late(n) {
		add("%d of %d messages were sent late because others kept the machine's processors busy", n, h.Sent)
	}
	if n := h.LatePaused; h.Late(n) {
		add("%d of %d messages were sent late because the tester stood still", n, h.Sent)
	}
	if h.GCPauseOwn > stats.MaxGCPause {
		add("the tester stopped for %s while collecting garbage: latencies of that moment are its own",
			h.GCPauseOwn.Round(100*time.Microsecond))
	}
	for _, step := range []struct {
		by   time.Duration
		what string
	}{{h.ClockForward, "forward"}, {h.ClockBackward, "backward"}} {
		if step.by > 0 {
			add("the wall clock was set %s by %s during the run: transfer times between two machines are off by that",
				step.what, step.by.Round(100*time.Microsecond))
		}
	}
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// saturated names the workers that never waited for a good part of the load; it is empty if there are none. crowded tells
// that they may have waited for a processor that others had.
func saturated(list []stats.Saturation) (text string, crowded bool) {
	list = slices.DeleteFunc(slices.Clone(list), func(s stats.Saturation) bool {
		return float64(s.Seconds) < mostlySaturated*float64(s.Of)
	})
	if len(list) == 0 {
		return "", false
	}
	slices.SortStableFunc(list, func(a, b stats.Saturation) int { return b.Seconds - a.Seconds })
	var parts []string
	for _, s := range list[:min(len(list), namedWorkers)] {
		crowded = crowded || 2*s.Crowded > s.Seconds
		who := s.Worker
		if 2*s.Connection > s.Seconds {
			who = "the connection of " + who
		}
		parts = append(parts, fmt.Sprintf("%s never waited in %d of %d seconds", who, s.Seconds, s.Of))
	}
	text = strings.Join(parts, ", ")
	if more := len(list) - len(parts); more > 0 {
		text += fmt.Sprintf(", nor did %d more workers", more)
	}
	return text, crowded
}
