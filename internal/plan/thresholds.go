package plan

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// figuresOf returns the figures that a group has in any of the steps, and whether there is such a group.
// Without a name, it returns the figures of the steps.
func (v *validator) figuresOf(steps []Step, group string) (has result.Role, found bool) {
	whole := group == ""
	found, has = whole, threshold.Verification.If(whole && v.verify)
	for i := range steps {
		for _, g := range steps[i].Groups {
			if whole || g.Name == group {
				found = true
				has |= g.figures()
			}
		}
	}
	return has, found
}

// elsewhere returns the figures that parts of the run will have because of other parts: figures of delayed messages
// from other steps, groups or processes, and figures of the whole run.
func (p *Plan) elsewhere() (has result.Role) {
	sends := false
	for _, g := range p.uses() {
		sends = sends || g.Role.Produces()
		has |= threshold.Delay.If(g.Delay > 0)
	}
	return has | threshold.Delay.If(!sends) | threshold.Stalls.If(p.StallThreshold > 0)
}

// figures returns the figures that the group will have.
func (g *Group) figures() result.Role {
	sends, receives := g.Role.Produces(), g.Role.Consumes()
	return threshold.Producers.If(sends) | threshold.Consumers.If(receives) | threshold.Rate.If(sends && g.Rated()) |
		threshold.Transactions.If(sends && g.CommitInterval > 0 || receives && g.TransactionSize > 0) |
		threshold.Reconnection.If(g.Reconnect)
}

// Rated reports whether the messages of the group have intended times.
func (g *Group) Rated() bool { return !g.Rate.IsZero() || g.Rate.Relative != nil }

// Roles returns which sides all groups of the plan have together.
func (p *Plan) Roles() Role {
	switch {
	case !p.any(func(g *Group) bool { return g.Role.Consumes() }):
		return Producer
	case !p.any(func(g *Group) bool { return g.Role.Produces() }):
		return Consumer
	default:
		return Client
	}
}

func (p *Plan) any(is func(*Group) bool) bool { return slices.ContainsFunc(p.uses(), is) }

// thresholds refuses thresholds on figures that the steps will not have: all steps of the run, or the named one.
// elsewhere are the figures by others.
func (v *validator) thresholds(list []threshold.Threshold, elsewhere result.Role, step string, steps []Step) {
	v.group, v.demandOf = nil, step
	defer func() { v.demand = nil }()
	for i := range list {
		t := &list[i]
		v.demand = t
		v.refuse(t.Abort && !t.CanAbort(), "leave abort out",
			"threshold %q cannot end the run early", t.String())
		has, found := v.figuresOf(steps, t.Metric.Group)
		switch lacks := t.Lacks(has | elsewhere); {
		case !found:
			v.refuse(true, "", "--threshold %q: there is no group %s", t.String(), t.Metric.Group)
		case lacks != 0:
			v.lacking(t, lacks)
		default:
			v.refuse(t.OfTarget && !hasTarget(t.Metric.Group, steps),
				"make it a threshold of a step or group: group.NAME.completed.avg",
				"--threshold %q: there is no one target", t.String())
		}
	}
}

// hasTarget reports whether there is a rate for a share: in one step, of all its producers or of a group's.
func hasTarget(group string, steps []Step) bool {
	if len(steps) != 1 {
		return false
	}
	for _, g := range steps[0].Groups {
		if (group == "" || g.Name == group) && g.Role.Produces() && !g.Rated() {
			return false
		}
	}
	return true
}

// lacking refuses a threshold for which the run lacks something.
func (v *validator) lacking(t *threshold.Threshold, lacks result.Role) {
	var hints []string
	for _, need := range []struct {
		needs result.Role
		hint  string
	}{
		{threshold.Verification, "add --verify"},
		{threshold.Rate, "add --rate"},
		{threshold.Transactions, "add --commit-interval or --tx"},
		{threshold.Reconnection, "add --reconnect"},
		{threshold.Delay, "add --delivery-delay"},
		{threshold.Stalls, "raise --stall-threshold"},
		{threshold.Producers, "add producers"},
		{threshold.Consumers, "add consumers"},
	} {
		if lacks&need.needs != 0 {
			hints = append(hints, need.hint)
		}
	}
	v.refuse(true, strings.Join(hints, "; "), "--threshold %q: this run does not measure it", t.String())
}
