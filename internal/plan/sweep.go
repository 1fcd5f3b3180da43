package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Rename gives all destinations of the plan other names. Both parts of ADDRESS::QUEUE change.
func (p *Plan) Rename(name func(string) string) {
	for _, g := range p.distinct() {
		list := make([]driver.Destination, len(g.Destinations))
		for i, d := range g.Destinations {
			address, queue, both := strings.Cut(d.Name, "::")
			d.Name = name(address)
			if both {
				d.Name += "::" + name(queue)
			}
			list[i] = d
		}
		g.Destinations = list
	}
}

// Produces reports whether the step has producers.
func (s *Step) Produces() bool {
	return slices.ContainsFunc(s.Groups, func(g *Group) bool { return g.Role.Produces() })
}

// uses returns the groups of all steps, each as often as a step has it.
func (p *Plan) uses() (list []*Group) {
	for _, s := range p.Steps {
		list = append(list, s.Groups...)
	}
	return list
}

// distinct returns the groups of all steps, each once.
func (p *Plan) distinct() (list []*Group) {
	seen := map[*Group]bool{}
	for _, g := range p.uses() {
		if !seen[g] {
			seen[g] = true
			list = append(list, g)
		}
	}
	return list
}

// Length returns the length of the load; 0 if it is unknown.
func (p *Plan) Length() (sum time.Duration) {
	for _, s := range p.Steps {
		if s.Duration <= 0 {
			return 0
		}
		sum += s.Duration
	}
	return sum
}
