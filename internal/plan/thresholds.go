package plan

import (
	"strings"

	"github.com/perfmq/perfmq/internal/threshold"
)

// Has tells which figures the run will have.
func (p *Plan) Has() threshold.Needs {
	var has threshold.Needs
	for needs, yes := range map[threshold.Needs]bool{
		threshold.Producers:    p.Role.Produces(),
		threshold.Consumers:    p.Role.Consumes(),
		threshold.Rate:         p.Role.Produces() && !p.Rate.IsZero(),
		threshold.Verification: p.Verify,
		threshold.Transactions: p.Role.Produces() && p.CommitInterval > 0 || p.Role.Consumes() && p.Transacted,
	} {
		if yes {
			has |= needs
		}
	}
	return has
}

// thresholds refuses those on figures that the run will not have.
func (v *validator) thresholds() {
	for _, t := range v.plan.Thresholds {
		lacks := t.Lacks(v.plan.Has())
		var hints []string
		for _, need := range []struct {
			needs threshold.Needs
			hint  string
		}{
			{threshold.Verification, "add --verify"},
			{threshold.Rate, "add --rate N"},
			{threshold.Transactions, "add --commit-interval N or --tx"},
			{threshold.Producers, "use the client or producer command"},
			{threshold.Consumers, "use the client or consumer command"},
		} {
			if lacks&need.needs != 0 {
				hints = append(hints, need.hint)
			}
		}
		v.refuse(lacks != 0, strings.Join(hints, "; "), "--threshold %q: this run measures nothing of that", t.String())
	}
}
