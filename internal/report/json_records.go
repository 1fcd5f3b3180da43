package report

import (
	"math"
	"strconv"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// latencyKeys returns latencies under the keys of `artemis perf`, each behind a prefix.
func latencyKeys(prefix string, l *result.Latencies) *object {
	o := new(object)
	for _, k := range printed() {
		o.addIf(l[k.Kind] != nil, camelCase(prefix+k.Label), distribution(l[k.Kind]))
	}
	return o
}

// distribution returns a latency with null for each value if there are none.
func distribution(l *result.Latency) *object {
	o := new(object)
	if l == nil {
		return o
	}
	number := func(key string, value any) {
		if l.Count == 0 {
			value = nil
		}
		o.add(key, value)
	}
	number("mean", strconv.FormatFloat(l.Mean(), 'f', 2, 64))
	for _, p := range []float64{50, 90, 99, 99.9, 99.99} {
		number(strconv.FormatFloat(p, 'f', -1, 64), l.Percentile(p))
	}
	number("max", l.Max)
	o.add("count", l.Count)
	number("meanMicroseconds", math.Round(100*l.Mean())/100) // the mean as a number
	return o
}

// totals returns the numbers of messages of the sides that exist, with the waits, which belong to no message.
func (has sides) totals(c *stats.Counters, waits bool) *object {
	o := new(object)
	o.addIf(has.sends, "sent", c[result.Sent])
	o.addIf(has.sends && waits, "blocked", c[result.Blocked]).addIf(has.sends && waits, "noLeave", c[result.NoLeave])
	o.addIf(has.sends, "completed", c[result.Completed]).addIf(has.receives, "received", c[result.Received])
	return o.addIf(has.sends && waits, "socketWaits", c[result.SocketWaits])
}

// ownCounts are the counters that only perfmq has, of an interval or of the run. Rare ones are left out if they are 0.
func ownCounts(c *stats.Counters) *object {
	o := new(object).add("failures", failuresByClass(c))
	for _, k := range result.CounterTable() {
		o.addIf(k.Key != "" && (c[k.Counter] > 0 || k.Counter <= result.OutOfRange), k.Key, c[k.Counter])
	}
	return o
}

// extreme returns the lowest or highest rate of a full measured second; nil if there were fewer than three of them.
func extreme(l *stats.Lowest) *object {
	return new(object).add("perSecond", uint64(math.Round(l.PerSecond))).add("time", l.To.UnixMilli()).
		add("elapsedSeconds", l.Elapsed.Seconds())
}

// health returns perfmq's own use of the machine. The peak of the memory is in the summary only.
func health(h *stats.Health) *object {
	o := new(object).add("cpuSeconds", h.CPU.Seconds()).add("cpuShare", cpuShare(h)).add("cores", h.Cores)
	o.add("lateSends", h.LateSends).add("lateSendsCrowded", h.LateCrowded).add("lateSendsPaused", h.LatePaused)
	o.add("gcPauses", h.GCPauses).add("gcPauseMaxMicroseconds", microseconds(h.GCPauseMax))
	o.add("clockStepMicroseconds", microseconds(h.ClockForward-h.ClockBackward))
	o.add("clockForwardMicroseconds", microseconds(h.ClockForward))
	o.add("clockBackwardMicroseconds", microseconds(h.ClockBackward))
	o.add("pauses", h.Pauses).add("pauseMaxMicroseconds", microseconds(h.PauseMax))
	return o.addIf(h.MemoryPeak > 0, "memoryPeakBytes", h.MemoryPeak)
}
