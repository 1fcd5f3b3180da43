package engine

import (
	"math"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
)

// metrics returns the metrics of a run or a step. The metrics of its groups follow, under their names.
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
	first = math.MaxInt64
	for _, c := range r.step.consumers {
		if from, to, ok := c.rec.FirstAndLast(); ok {
			first, last = min(first, from), max(last, to)
		}
	}
	return first, last, last-first >= shortest
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

// lowest returns the lowest rates over the steps so far, the first ones of the plan, and sets the groups' lowest rates,
// each over its own steps.
func (r *run) lowest(sums, groups []stats.Summary) (all stats.Peaks) {
	for i := range groups {
		groups[i].Minimum = stats.Peaks{}
	}
	for k := range sums {
		all.Include(&sums[k].Minimum, 1)
		for i := range sums[k].Groups {
			group := &sums[k].Groups[i]
			n := slices.IndexFunc(groups, func(g stats.Summary) bool { return g.Name == group.Name })
			if n >= 0 && slices.ContainsFunc(r.steps[k].uses, func(u *use) bool { return u.plan.Name == group.Name }) {
				groups[n].Minimum.Include(&group.Minimum, 1)
			}
		}
	}
	return all
}
