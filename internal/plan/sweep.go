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

// The least that [Plan.Scale] leaves.
const (
	leastDuration = 2 * time.Second
	leastCount    = 100
)

// Scale shortens durations and counts by a factor from 0 to 1, to 2 s and 100 messages at least, if they were more.
// Rates, sizes and workers stay.
func (p *Plan) Scale(factor float64) {
	shorter := func(d time.Duration) time.Duration {
		return max(time.Duration(float64(d)*factor), min(d, leastDuration))
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		whole := s.Duration
		s.Duration = shorter(s.Duration)
		if whole > 0 { // in proportion, or nothing might be left to measure
			s.Warmup = time.Duration(float64(s.Warmup) * float64(s.Duration) / float64(whole))
		} else {
			s.Warmup = time.Duration(float64(s.Warmup) * factor)
		}
		s.Marks = scaled(s.Marks, factor)
	}
	for _, g := range p.distinct() {
		g.Count = max(uint64(float64(g.Count)*factor), min(g.Count, leastCount))
		g.Rate.Schedule = g.Rate.Scale(factor)
	}
}

// scaled returns the marks times factor, rounded down, without zeros and repetitions.
func scaled(marks []uint64, factor float64) (list []uint64) {
	for _, m := range marks {
		if m = uint64(float64(m) * factor); m > 0 && (len(list) == 0 || m > list[len(list)-1]) {
			list = append(list, m)
		}
	}
	return list
}
