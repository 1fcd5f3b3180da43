package engine

import (
	"slices"

	"github.com/perfmq/perfmq/internal/stats"
)

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
