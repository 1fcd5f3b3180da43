package result

import (
	"cmp"
	"slices"
)

// mergeRows aligns the rows of results by their starts, as one clock measures them.
func mergeRows(results []*Result, starts []int64) []Row {
	type position struct {
		second      int64 // from the earliest start
		step, phase string
	}
	merged := map[position]*Row{} // rows of the same position become one
	first := slices.Min(starts)
	for i, r := range results {
		ahead := starts[i] - first
		apart := r.Start - starts[i] // of the clocks
		offset := (ahead + second/2) / second
		own := map[position]*Row{} // rows of one result follow each other, rows of several results are side by side
		for i := range r.Rows {
			row := r.Rows[i].clone()
			place := position{offset + max(0, row.Elapsed-(row.Length+1)/2)/second, row.Step, row.Phase}
			row.Elapsed += offset * second
			row.Time += offset*second - ahead - apart
			row.Arrivals = nil // they only served to compare the clocks
			if own[place] == nil {
				own[place] = row
			} else {
				own[place].follow(row)
			}
		}
		for index, row := range own {
			if merged[index] == nil {
				merged[index] = row
			} else {
				merged[index].beside(row)
			}
		}
	}
	rows := make([]Row, 0, len(merged))
	for _, row := range merged {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Elapsed, b.Elapsed), cmp.Compare(a.Length, b.Length))
	})
	return rows
}

// clone returns a copy that shares nothing that add changes.
func (r *Row) clone() *Row {
	c := *r
	c.Counts, c.Latencies, c.Leftover, c.Groups = Counts{}, Latencies{}, nil, nil
	c.Tester = Tester{Cores: r.Tester.Cores, Memory: r.Tester.Memory, MemoryPeak: r.Tester.MemoryPeak}
	c.add(r)
	if r.Verified != nil {
		c.Verified = new(*r.Verified)
	}
	c.BrokerSide = r.BrokerSide.clone()
	return &c
}

// Join returns the row and the one after it as one. Neither changes.
func (r *Row) Join(next *Row) *Row {
	joined := r.clone()
	joined.follow(next)
	return joined
}

// follow adds the row after r.
func (r *Row) follow(next *Row) {
	r.Length += next.Elapsed - r.Elapsed
	r.Time, r.Elapsed, r.InFlight, r.Workers = next.Time, next.Elapsed, next.InFlight, next.Workers
	r.Disconnected, r.Outages, r.Backlog, r.Verified = next.Disconnected, next.Outages, next.Backlog, next.Verified
	r.BrokerSide = next.BrokerSide
	r.Tester.Cores, r.Tester.Memory = next.Tester.Cores, next.Tester.Memory
	r.add(next)
}

// beside adds a row of the same second of another result.
func (r *Row) beside(other *Row) {
	from := min(r.Elapsed-r.Length, other.Elapsed-other.Length)
	r.Elapsed, r.Time = max(r.Elapsed, other.Elapsed), max(r.Time, other.Time)
	r.Length = r.Elapsed - from
	r.InFlight += other.InFlight
	r.Workers += other.Workers
	r.Disconnected += other.Disconnected
	// hosts see the same outages
	r.Outages = max(r.Outages, other.Outages)
	if r.Backlog == nil || other.Backlog != nil && *other.Backlog > *r.Backlog { // of the same broker
		r.Backlog = other.Backlog
	}
	if r.BrokerSide == nil { // from the first host that watched a broker
		r.BrokerSide = other.BrokerSide
	}
	r.Tester.Cores += other.Tester.Cores
	r.Tester.Memory += other.Tester.Memory
	if other.Verified != nil {
		if r.Verified == nil {
			r.Verified = &Progress{}
		}
		r.Verified.Add(other.Verified)
	}
	r.add(other)
}

// add adds counts, latencies and the use of the machine.
func (r *Row) add(other *Row) {
	r.Add(&other.Counts)
	r.Latencies.add(&other.Latencies)
	r.Leftover = addLatencies(r.Leftover, other.Leftover)
	r.Tester.add(&other.Tester)
	for i := range other.Groups {
		r.AddGroup(&other.Groups[i])
	}
}

// AddGroup adds the figures of a group to those of its name.
func (r *Row) AddGroup(from *RowGroup) {
	to := named(&r.Groups, from.Name, func(g *RowGroup) *string { return &g.Name })
	to.Add(&from.Counts)
	to.Latencies = addLatencies(to.Latencies, from.Latencies)
}

func addLatencies(to, from *Latencies) *Latencies {
	if from == nil {
		return to
	}
	if to == nil {
		to = &Latencies{}
	}
	to.add(from)
	return to
}

// named returns the item of a name, and appends it if it is missing.
func named[T any](list *[]T, name string, nameOf func(*T) *string) *T {
	for i := range *list {
		if item := &(*list)[i]; *nameOf(item) == name {
			return item
		}
	}
	*list = append(*list, *new(T))
	item := &(*list)[len(*list)-1]
	*nameOf(item) = name
	return item
}

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
