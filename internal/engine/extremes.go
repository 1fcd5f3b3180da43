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
func (r *run) lowest(sums []stats.StepSummary, groups []stats.StepSummary) stats.Peaks {
	for i := range groups {
		var list []stats.Peaks
		for k := range sums {
			there := func(u *use) bool { return u.plan.Name == groups[i].Name }
			at := slices.IndexFunc(sums[k].Groups, func(g stats.StepSummary) bool { return g.Name == groups[i].Name })
			if at >= 0 && slices.ContainsFunc(r.steps[k].uses, there) {
				list = append(list, sums[k].Groups[at].Minimum)
			}
		}
		groups[i].Minimum = lowestOf(list)
	}
	var list []stats.Peaks
	for i := range sums {
		list = append(list, sums[i].Minimum)
	}
	return lowestOf(list)
}

// lowestOf returns the lowest rates over steps, each role only where it takes part.
func lowestOf(steps []stats.Peaks) (m stats.Peaks) {
	for i := range steps {
		for _, pair := range [][2]*stats.Lowest{
			{&m.Completed, &steps[i].Completed}, {&m.Received, &steps[i].Received},
		} {
			if to, from := pair[0], pair[1]; from.Known() && (!to.Known() || from.PerSecond < to.PerSecond) {
				*to = *from
			}
		}
	}
	return m
}
