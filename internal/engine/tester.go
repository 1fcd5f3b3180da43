package engine

import (
	"fmt"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// aboutTester adds warnings if the tester itself, or its machine, affected the results.
func (r *run) aboutTester(s *stats.Summary, add func(string, ...any)) {
	h := &s.Health
	switch l := &s.Limit; {
	case l.Kind == stats.LimitMachine:
		add("the tester's machine was the bottleneck: %s; %s", l.Text, l.Hint)
	case l.OfTester():
		add("the tester was the bottleneck: %s; %s", l.Text, l.Hint)
	case h.CPUShare() > stats.MaxCPUShare:
		add("perfmq used %.2f of the %d cores that it may use: latencies include CPU scheduling delay",
			h.CPUShare()*float64(h.Cores), h.Cores)
	}
	if h.Crowded() {
		add("the machine was %.0f%% busy, %.0f%% with others than the tester, such as a broker on the same machine: "+
			"latencies include "+
			"CPU scheduling delay", 100*h.MachineShare(), 100*h.OthersShare())
	}
	if h.Pauses > 0 {
		add("the tester itself stood still %s, the longest for %s until %s (stopped, suspended, or without a processor): "+
			"the latencies of %d sends and receipts include that",
			times(h.Pauses), h.PauseMax.Round(time.Millisecond), h.PauseAt.Format(time.TimeOnly), s.Total[result.Paused])
	}
	if n := h.LateOwn(); h.Late(n) {
		add("the tester sent %d of %d messages late through its own fault", n, h.Sent)
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
