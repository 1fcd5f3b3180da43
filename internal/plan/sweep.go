package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Rename gives all destinations of the plan other names. Both parts of ADDRESS::QUEUE change.
func (p *Plan) Rename(name func(string) string) {
	for _, g := range p.uses() {
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

// uses returns the groups of all steps. A group of several steps has a [Group] for each.
func (p *Plan) uses() (list []*Group) {
	for _, s := range p.Steps {
		list = append(list, s.Groups...)
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

// Scale shortens durations and counts by a factor from 0 to 1, to 2 s and 100 messages, or connections, at least, if
// they were more.
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
	for _, g := range p.uses() {
		g.Count = max(uint64(float64(g.Count)*factor), min(g.Count, leastCount))
		g.Connections = max(uint64(float64(g.Connections)*factor), min(g.Connections, leastCount))
		g.Hold = shorter(g.Hold)
		g.RampWorkers = time.Duration(float64(g.RampWorkers) * factor) // it stays shorter than the duration
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

// Relative is a rate that is a share of a rate reached by an earlier step.
type Relative struct {
	Percent float64 // above 0, at most 1000
	Step    string  // name of the earlier step
	Metric  string  // a rate among the metrics of thresholds, such as completed.avg or group.senders.completed.avg
}

// maxPercent bounds a relative rate.
const maxPercent = 1000

// ParseRelative reads "80% of allout.completed.avg". It returns nil without an error if text is no relative rate.
func ParseRelative(text string) (*Relative, error) {
	share, of, ok := strings.Cut(text, "%")
	if !ok {
		return nil, nil //nolint:nilnil // it is another kind of rate
	}
	percent, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
	name, isOf := strings.CutPrefix(strings.TrimSpace(of), "of ")
	valid := err == nil && percent > 0 && percent <= maxPercent && isOf
	name = strings.TrimSpace(name)
	var rates []string
	for _, m := range threshold.Metrics() {
		if m.Unit != threshold.PerSecond {
			continue
		}
		rates = append(rates, m.Name)
		step, is := strings.CutSuffix(name, "."+m.Name) // names of steps and groups may have dots
		r := &Relative{Percent: percent, Step: step, Metric: m.Name}
		if i := strings.Index(step, "."+threshold.GroupPrefix); i > 0 { // of one group of the step
			r.Step, r.Metric = step[:i], name[i+1:]
		}
		if _, known := threshold.Find(r.Metric); valid && is && step != "" && known {
			return r, nil
		}
	}
	return nil, fmt.Errorf("the rate %q must be like 80%% of STEP.RATE, up to %d%%, where RATE is one of %s",
		text, maxPercent, strings.Join(rates, ", "))
}

// String returns the rate in the form that [ParseRelative] reads.
func (r *Relative) String() string {
	return strconv.FormatFloat(r.Percent, 'f', -1, 64) + "% of " + r.Step + "." + r.Metric
}

// Of returns the rate that is this share of perSecond, the rate reached in messages per second.
func (r *Relative) Of(perSecond float64) (load.Rate, error) {
	rate, err := load.ParseRate(strconv.FormatFloat(perSecond*r.Percent/100, 'f', 6, 64))
	if err != nil {
		return 0, fmt.Errorf("%s is %g messages per second", r, perSecond*r.Percent/100)
	}
	return rate, nil
}

// relative refuses a rate that is a share of a figure which the earlier step does not have.
func (v *validator) relative(r *Relative, earlier []Step) {
	i := slices.IndexFunc(earlier, func(s Step) bool { return s.Name == r.Step })
	measured := false
	if i >= 0 {
		m, _ := threshold.Find(r.Metric) // ParseRelative knows it
		has, found := v.figuresOf(earlier[i:i+1], m.Group)
		measured = found && m.Needs&^(has&^threshold.Verification) == 0
	}
	v.refuse(!measured, "name a step before it, and a rate that it has", "rate %q: no earlier step measures it", r)
}
