package engine

import (
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// figures returns the values of the metrics of thresholds (see [threshold.Metrics]), in their units, except metrics
// that only a whole run has. Those of groups follow, under the names of their metrics. A metric without a value is
// missing.
func figures(s *stats.StepSummary) map[string]float64 {
	f := map[string]float64{}
	m := &s.Measured
	result.CounterMetrics(f, m[:], s.Total[:], s.Sends, s.Receives)
	if a := &s.Average; a.Span > 0 && s.Sends {
		f["sent.avg"], f["completed.avg"] = a.PerSecond(a.Sent), a.PerSecond(a.Completed)
	}
	if a := &s.Average; a.Span > 0 && s.Receives {
		f["received.avg"] = a.PerSecond(a.Received)
	}
	if s.Stalls.Limit > 0 {
		f["stall.count"], f["stall.max"] = float64(s.Stalls.Count), float64(s.Stalls.Max.Nanoseconds())/1e3
	}
	if s.Offered.Known() {
		f["rate.missed"] = 100 * s.Offered.Missed()
	}
	for name, l := range map[string]*stats.Lowest{
		"completed.min": &s.Minimum.Completed, "received.min": &s.Minimum.Received,
		"completed.max": &s.Maximum.Completed, "received.max": &s.Maximum.Received,
	} {
		if l.Known() {
			f[name] = l.PerSecond
		}
	}
	if h := &s.Health; h.Wall > 0 && h.Cores > 0 {
		f["tester.cpu"] = 100 * h.CPU.Seconds() / (h.Wall.Seconds() * float64(h.Cores))
	}
	s.Latencies.Metrics(f, m.LeftOut)
	for i := range s.Groups {
		for name, v := range figures(&s.Groups[i]) {
			f[threshold.GroupPrefix+s.Groups[i].Name+"."+name] = v
		}
	}
	return f
}

// shortest is the minimum time from the first to the last message of a backlog for a rate.
const shortest = time.Millisecond

// readTime returns when the present step read the first and the last message of a backlog. It is false for a step that
// also sends, has a duration or a warm-up, or received nothing: such a step has rates over its whole time.
func (r *run) readTime() (first, last time.Duration, ok bool) {
	s := r.step.plan
	if s.Produces() || s.Duration > 0 || s.Warmup > 0 {
		return 0, 0, false
	}
	any := false
	for _, c := range r.step.consumers() {
		if from, to, ok := c.rec.FirstAndLast(); ok {
			if !any {
				first, last, any = from, to, true
			}
			first, last = min(first, from), max(last, to)
		}
	}
	return first, last, any && last-first >= shortest
}

// setReadRates sets the rates of the present step, or the run, and its groups if they have read a backlog.
func (r *run) setReadRates(s *stats.StepSummary) {
	if first, last, ok := r.readTime(); ok {
		s.Extremes.Read(first, last, &s.Average, &s.Minimum, &s.Maximum)
		for i := range s.Groups {
			g := &s.Groups[i]
			g.Extremes.Read(first, last, &g.Average, &g.Minimum, &g.Maximum)
		}
	}
}

// figuresOf returns the figures of a whole run.
func (r *run) figuresOf(s *stats.Summary) map[string]float64 {
	f := figures(&s.StepSummary)
	if r.outages != nil {
		outageFigures(f, s, 0)
	}
	count := func(known bool, name string, n uint64) {
		if known {
			f[name] = float64(n)
		}
	}
	count(s.ExpectedKnown, "missing", s.Missing)
	if v := s.Verification; v != nil {
		count(v.Known, "lost", v.Total.Lost)
		count(v.Known, "left", v.Total.Left)
		count(true, "duplicated", v.Total.Duplicates)
		count(true, "out_of_order", v.Total.Disordered)
		count(true, "damaged", v.Total.Damaged)
	}
	return f
}
