package plan

import (
	"strings"

	"github.com/perfmq/perfmq/internal/threshold"
)

// Has tells which figures the run will have.
func (p *Plan) Has() (has threshold.Needs) {
	for i := range p.Steps {
		has |= p.Steps[i].Has(p.Verify)
	}
	return has
}

// Has tells which figures the step will have.
func (s *Step) Has(verified bool) (has threshold.Needs) {
	if verified {
		has |= threshold.Verification
	}
	for _, g := range s.Groups {
		for needs, yes := range map[threshold.Needs]bool{
			threshold.Producers:    g.Role.Produces(),
			threshold.Consumers:    g.Role.Consumes(),
			threshold.Rate:         g.Role.Produces() && g.Rated(),
			threshold.Transactions: g.Role.Produces() && g.CommitInterval > 0 || g.Role.Consumes() && g.Transacted,
		} {
			if yes {
				has |= needs
			}
		}
	}
	return has
}

// Rated tells whether the messages of the group have intended times.
func (g *Group) Rated() bool { return !g.Rate.IsZero() || g.Relative != nil }

// Roles returns which sides all groups of the plan have together.
func (p *Plan) Roles() Role {
	has := p.Has()
	switch {
	case has&threshold.Consumers == 0:
		return Producer
	case has&threshold.Producers == 0:
		return Consumer
	default:
		return Client
	}
}

// thresholds refuses those on figures that there will not be.
func (v *validator) thresholds(list []threshold.Threshold, has threshold.Needs) {
	v.group = nil
	for _, t := range list {
		v.refuse(t.Abort && !t.CanAbort(), "leave abort out, or demand an upper limit such as ack.p99 < 50ms",
			"threshold %q cannot end the run early: only its end shows whether it is kept", t.String())
		lacks := t.Lacks(has)
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
