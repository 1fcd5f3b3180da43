package engine

import (
	"slices"

	"github.com/perfmq/perfmq/internal/stats"
)

// only removes the extremes of the sides that a step does not have: nothing that is sent in a step without producers is
// no lowest rate of sending.
func (has sides) only(sum *stats.StepSummary) {
	if !has.sends {
		sum.Minimum.Completed, sum.Maximum.Completed = stats.Lowest{}, stats.Lowest{}
	}
	if !has.receives {
		sum.Minimum.Received, sum.Maximum.Received = stats.Lowest{}, stats.Lowest{}
	}
}

// lowest returns the lowest rates over the steps so far, the first ones of the plan, and sets those of the groups: each
// over the steps in which it takes part.
func (r *run) lowest(sums []stats.StepSummary, groups []stats.StepSummary) (all stats.Peaks) {
	for i := range groups {
		groups[i].Minimum = stats.Peaks{}
	}
	for k := range sums {
		lower(&all, &sums[k].Minimum)
		for i := range sums[k].Groups {
			of := &sums[k].Groups[i]
			at := slices.IndexFunc(groups, func(g stats.StepSummary) bool { return g.Name == of.Name })
			if at >= 0 && slices.ContainsFunc(r.steps[k].uses, func(u *use) bool { return u.plan.Name == of.Name }) {
				lower(&groups[at].Minimum, &of.Minimum)
			}
		}
	}
	return all
}

// lower replaces rates by lower ones of another step, each role only where it takes part.
func lower(to, from *stats.Peaks) {
	if from.Completed.Known() && (!to.Completed.Known() || from.Completed.PerSecond < to.Completed.PerSecond) {
		to.Completed = from.Completed
	}
	if from.Received.Known() && (!to.Received.Known() || from.Received.PerSecond < to.Received.PerSecond) {
		to.Received = from.Received
	}
}
