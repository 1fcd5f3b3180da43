package plan

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// has tells which figures the step will have.
func (v *validator) has(s *Step) (has result.Role) {
	has = threshold.Verification.If(v.verify)
	for _, g := range s.Groups {
		has |= v.groupHas(g)
	}
	return has
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

// groupHas tells which figures the group will have.
func (v *validator) groupHas(g *Group) result.Role {
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

// thresholds refuses thresholds on figures that the run, or for the thresholds of a step that step, will not have. has
// are the features of that run or step, and elsewhere the features by others.
func (v *validator) thresholds(list []threshold.Threshold, has, elsewhere result.Role, step string, steps []Step) {
	v.group, v.demandOf = nil, step
	defer func() { v.demand = nil }()
	for i := range list {
		t, has := &list[i], has|elsewhere
		v.demand = t
		v.refuse(t.Abort && !t.CanAbort(), "leave abort out",
			"threshold %q cannot end the run early", t.String())
		if group := t.Metric.Group; group != "" {
			of, found := v.figuresOfGroup(group, steps)
			if !found {
				v.refuse(true, "", "--threshold %q: there is no group %s", t.String(), group)
				continue
			}
			has = of | elsewhere
		}
		if lacks := t.Lacks(has); lacks != 0 {
			v.lacking(t, lacks)
			continue
		}
		v.refuse(t.OfTarget && !hasTarget(t.Metric.Group, steps),
			"make it a threshold of a step or group: group.NAME.completed.avg",
			"--threshold %q: there is no one target", t.String())
	}
}

// figuresOfGroup tells which figures a group has in any of the steps, and whether there is such a group.
func (v *validator) figuresOfGroup(name string, steps []Step) (has result.Role, found bool) {
	for i := range steps {
		for _, g := range steps[i].Groups {
			if g.Name == name {
				found = true
				has |= v.groupHas(g)
			}
		}
	}
	return has, found
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
