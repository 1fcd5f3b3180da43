package result

import (
	"slices"
)

// startsOf returns when the loads of results began, by the clock of the first one as far as the offsets are known.
func startsOf(results []*Result, clocks []*Clock) []int64 {
	starts := make([]int64, len(results))
	for i, r := range results {
		starts[i] = r.Start
		if clocks[i] != nil {
			starts[i] -= int64(clocks[i].Start.Ahead)
		}
	}
	return starts
}

// onTimeLine returns the result with its times converted to the merged result: moments by the reference clock, which
// its own clock is ahead of, and times since the earliest start of a load, which was before its own start by earlier.
// Its rows do not change, and its part keeps the times of its own clock.
func (r *Result) onTimeLine(ahead, earlier int64) *Result {
	c := *r
	c.Parts = []Part{{RunID: r.RunID, Host: r.Host, Start: r.Start, End: r.End, Shard: r.Shard}}
	move := func(moment *int64) { *moment = max(0, *moment-ahead) }
	move(&c.End)
	c.Steps, c.Stalls, c.Outages = slices.Clone(r.Steps), slices.Clone(r.Stalls), slices.Clone(r.Outages)
	for i := range c.Steps {
		move(&c.Steps[i].Start)
		move(&c.Steps[i].End)
	}
	for i := range c.Stalls {
		move(&c.Stalls[i].Time)
		c.Stalls[i].Elapsed += earlier
	}
	for i := range c.Outages {
		move(&c.Outages[i].Time)
		c.Outages[i].Elapsed += earlier
	}
	c.BrokerSide = slices.Clone(r.BrokerSide)
	for i := range c.BrokerSide {
		events := slices.Clone(c.BrokerSide[i].Events)
		for k := range events {
			move(&events[k].Time)
		}
		c.BrokerSide[i].Events = events
	}
	return &c
}

// mergeOfHost joins the lists that each host has, with the host's name; and with its shard where several processes of
// one host, or of hosts with the same name, may have noticed the same event.
func (r *Result) mergeOfHost(part *Result) {
	host := part.Host.Name
	r.Workers = ofHost(r.Workers, part.Workers, host, func(w *Worker) *string { return &w.Host })
	r.Commands = ofHost(r.Commands, part.Commands, host, func(c *Command) *string { return &c.Host })
	r.Stalls = ofHost(r.Stalls, part.Stalls, part.name(), func(s *Stall) *string { return &s.Host })
	r.Marks = ofHost(r.Marks, part.Marks, host, func(m *Mark) *string { return &m.Host })
	r.Outages = ofHost(r.Outages, part.Outages, part.name(), func(o *Outage) *string { return &o.Host })
	r.BrokerHosts = mergeBrokerHosts(r.BrokerHosts, part.BrokerHosts)
	r.BrokerSide = ofHost(r.BrokerSide, part.BrokerSide, part.name(), func(s *BrokerSide) *string { return &s.Host })
}

// ofHost appends items with the name of their host.
func ofHost[T any](to, from []T, host string, hostOf func(*T) *string) []T {
	for _, item := range from {
		*hostOf(&item) = host
		to = append(to, item)
	}
	return to
}
