package engine

import (
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
)

// metrics returns the metrics of a run or a step. Those of its groups follow, under the names of their metrics.
func metrics(s *stats.Summary) map[string]float64 {
	all := s.Metrics()
	for i := range s.Groups {
		for name, v := range s.Groups[i].Metrics() {
			all[threshold.GroupPrefix+s.Groups[i].Name+"."+name] = v
		}
	}
	return all
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
func (r *run) setReadRates(s *stats.Summary) {
	if first, last, ok := r.readTime(); ok {
		s.ReadBacklog(first, last)
		for i := range s.Groups {
			s.Groups[i].ReadBacklog(first, last)
		}
	}
}
