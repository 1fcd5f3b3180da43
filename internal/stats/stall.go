package stats

import (
	"cmp"
	"slices"
	"time"
)

// Side is the side of the broker that stood still.
type Side uint8

// The sides.
const (
	SendSide    Side = iota // messages were in flight, or due, and none was answered
	ReceiveSide             // messages waited at the broker, and none was received
	BothSides               // both at once
)

// String returns "send", "receive" or "both".
func (s Side) String() string { return [...]string{"send", "receive", "both"}[s] }

// Stall is a time in which the broker did nothing for any worker of a side, although it had something to do. It leaves
// out time at its start or end in which the tester itself stood still.
type Stall struct {
	Side   Side
	Start  time.Duration // from the start of the load
	Length time.Duration
	Warmup bool // it ended in a warm-up
	// Group and Broker are the only ones that stalled, of several; else empty.
	Group, Broker string
	Whole         bool // all workers of the side had nothing

	part    *part
	covered bool // stalls of wider parts say the same
}

// End returns when the stall ended.
func (s *Stall) End() time.Duration { return s.Start + s.Length }

// Stalls holds the stalls of a run or a step.
type Stalls struct {
	Limit time.Duration // shortest; 0 if stalls were not looked for
	List  []Stall       // in the order of their starts, the first ones
	More  uint64        // stalls that are not in the list
	Count uint64        // all stalls that ended after the warm-up
	Max   time.Duration // the longest of these
}

// maxStalls is the number of stalls that a list keeps.
const maxStalls = 1000

func (s *Stalls) add(stall Stall) {
	if !stall.Warmup {
		s.Count++
		s.Max = max(s.Max, stall.Length)
	}
	if len(s.List) < maxStalls {
		s.List = append(s.List, stall)
	} else {
		s.More++
	}
}

// Measured returns the stalls that did not end in a warm-up.
func (s *Stalls) Measured() (list []Stall) {
	for _, stall := range s.List {
		if !stall.Warmup {
			list = append(list, stall)
		}
	}
	return list
}

// regular is how far the times between stalls may differ from their median for the stalls to be periodic.
const regular = 0.05

// Period returns the time from the start of one stall to the start of the next, if there are at least three and it is
// always the same; else 0.
func Period(list []Stall) time.Duration {
	if len(list) < 3 {
		return 0
	}
	var between []time.Duration
	for i := range list[1:] {
		between = append(between, list[i+1].Start-list[i].Start)
	}
	slices.Sort(between)
	median := between[len(between)/2]
	tolerance := time.Duration(regular * float64(median))
	if median-between[0] > tolerance || between[len(between)-1]-median > tolerance {
		return 0
	}
	return (list[len(list)-1].Start - list[0].Start) / time.Duration(len(between))
}

// stallMeter finds the stalls of all parts of a run.
type stallMeter struct {
	limit   time.Duration
	brokers []string // by worker
	several bool     // the workers are at several brokers
	parts   []*part  // wider ones first
	now     time.Duration
	open    []Stall // that last now
	found   []Stall
	step    int // number of stalls found before the present step
	told    int // number of stalls already in a snapshot
}

// maxFound bounds the memory for stalls.
const maxFound = 1 << 17

// Stalls lets the collector look for times of at least that length in which nothing came. Call it before the first
// message.
func (c *Collector) Stalls(limit time.Duration) {
	c.stalls = &stallMeter{limit: limit}
	for _, r := range c.producers {
		r.mu.Lock()
		r.quiet = newQuiet(limit)
		r.mu.Unlock()
	}
	for _, r := range c.consumers {
		r.mu.Lock()
		r.quiet = newQuiet(limit)
		r.mu.Unlock()
	}
}

// standstills collects the workers' gaps of the interval that ends at now.
func (c *Collector) standstills(phase Phase, now time.Duration, last bool) {
	m := c.stalls
	if m == nil || m.limit <= 0 {
		return
	}
	m.arrange(c)
	pauses := c.meter.pulse.stopped()
	n := len(c.producers)
	closed, open := make([][]gap, n+len(c.consumers)), make([]gap, n+len(c.consumers))
	for i, r := range c.producers {
		closed[i], open[i] = r.takeGaps(now, last)
	}
	for i, r := range c.consumers {
		closed[n+i], open[n+i] = r.takeGaps(now, phase != Drain && c.delivered.owes(i), last)
	}
	m.now, m.open = now, m.open[:0]
	for _, p := range m.parts {
		p.find(m, closed, open, phase, last, pauses)
	}
}

// add keeps a stall of a part.
func (m *stallMeter) add(p *part, s Stall) {
	s = m.named(p, s, m.found)
	p.so.add(&s)
	if len(m.found) < maxFound {
		m.found = append(m.found, s)
	}
}

// fresh returns the stalls of all workers of a side that were found since the last call, and the sums of the parts.
func (m *stallMeter) fresh() (list []Stall, parts []PartStalls) {
	if m == nil {
		return nil, nil
	}
	for _, s := range m.found[m.told:] {
		if s.Whole {
			list = append(list, s)
		}
	}
	m.told = len(m.found)
	for _, p := range m.parts {
		if p.of != wholeRun {
			parts = append(parts, p.so)
		}
	}
	return list, parts
}

// listed selects the stalls of a run: stalls of a part as far as no wider part had them.
func listed(s *Stall) bool { return !s.covered }

// ofGroupNamed selects the stalls of a group.
func ofGroupNamed(name string) func(*Stall) bool {
	return func(s *Stall) bool { return s.part.of == ofGroup && s.part.group == name }
}

// sum returns the selected stalls found from that index on, and that last now.
func (m *stallMeter) sum(from int, selected func(*Stall) bool) (sum Stalls) {
	if m == nil {
		return sum
	}
	sum.Limit = m.limit
	var list []Stall
	for _, part := range [][]Stall{m.found[from:], m.open} {
		for i := range part {
			if selected(&part[i]) {
				list = append(list, part[i])
			}
		}
	}
	for _, s := range joined(list) {
		sum.add(s)
	}
	return sum
}

// decide ends the search for stalls of the present step.
func (m *stallMeter) decide(pauses []gap) {
	if m == nil {
		return
	}
	m.open = nil
	for _, p := range m.parts {
		for _, s := range p.interval(nil, nil, false, true, pauses) {
			m.add(p, s)
		}
	}
}

// endStep begins the next step, and returns the stalls of the present one.
func (m *stallMeter) endStep() (sum Stalls) {
	if m != nil {
		sum = m.sum(m.step, listed)
		m.step = len(m.found)
	}
	return sum
}

// first returns the index of the first stall of the present step, or of the run.
func (m *stallMeter) first(step bool) int {
	if m == nil || !step {
		return 0
	}
	return m.step
}

// standstill finds the stalls of one side: times in which nothing came to any of its workers.
type standstill struct {
	side    Side
	limit   time.Duration
	pending []candidate
}

// candidate is a time without messages for all workers. Since when something was waited for is known only when the
// workers' gaps have ended, which may be a moment later.
type candidate struct {
	gap
	warmup bool
	looks  int // collections since it was found
}

// settled is the number of collections after which a candidate is decided.
const settled = 2

// interval adds the gaps of all workers since the last interval: closed has each worker's finished gaps, open the one
// in progress. With last, or at the end of a step, all candidates are decided.
func (m *standstill) interval(closed [][]gap, open []gap, warmup, last bool, pauses []gap) (found []Stall) {
	if m.limit <= 0 {
		return nil
	}
	all := []gap{{0, never, never}}
	for i := range open {
		all = common(all, append(slices.Clone(closed[i]), open[i]), m.limit)
	}
	for _, g := range all {
		if g.to < never {
			m.pending = append(m.pending, candidate{gap: gap{g.from, g.to, never}, warmup: warmup})
		}
	}
	var waiting []candidate
	for _, c := range m.pending {
		for i := range closed {
			for _, g := range closed[i] {
				if g.from <= c.from && g.to >= c.to {
					c.waiting = min(c.waiting, g.waiting)
				}
			}
		}
		if c.looks++; c.looks <= settled && !last {
			waiting = append(waiting, c)
			continue
		}
		if s, ok := c.stall(m.side, m.limit, pauses); ok {
			found = append(found, s)
		}
	}
	m.pending = waiting
	return found
}

// common returns the times that are in both lists, if they are long enough. Each list is in order.
func common(a, b []gap, limit time.Duration) (list []gap) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		from, to := max(a[i].from, b[j].from), min(a[i].to, b[j].to)
		if to == never || to-from >= limit {
			list = append(list, gap{from, to, never})
		}
		switch {
		case a[i].to < b[j].to:
			i++
		case a[i].to > b[j].to:
			j++
		default:
			i, j = i+1, j+1
		}
	}
	return list
}

// stall converts a candidate into a stall. It cuts off a pause of the tester at the start or end; a pause within does
// not count towards the required length.
func (c *candidate) stall(side Side, limit time.Duration, pauses []gap) (Stall, bool) {
	from, to := max(c.from, c.waiting), c.to
	var paused time.Duration
	for _, p := range pauses {
		switch {
		case p.to <= from || p.from >= to:
		case p.from <= from+beatInterval:
			from = min(to, p.to)
		case p.to >= to-beatInterval:
			to = max(from, p.from)
		default:
			paused += p.to - p.from
		}
	}
	return Stall{Side: side, Start: from, Length: to - from, Warmup: c.warmup}, to-from-paused >= limit
}

// alike is the share of the longer of two stalls that both must cover to be one stall of both sides.
const alike = 0.8

// sameAs tells whether a stall of the other side may be the same one: both are of the run, or of a broker or group.
func (s *Stall) sameAs(o *Stall) bool {
	return s.Whole && o.Whole || s.Broker != "" && s.Broker == o.Broker || s.Group != "" && s.Group == o.Group
}

// onlyIf returns the name if the other one is the same.
func onlyIf(name, other string) string {
	if name != other {
		return ""
	}
	return name
}

// joined returns the stalls of both sides in order, with simultaneous ones joined.
func joined(list []Stall) (out []Stall) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Stall) int { return cmp.Compare(a.Start, b.Start) })
	for _, s := range list {
		at := slices.IndexFunc(out, func(o Stall) bool {
			both := min(o.End(), s.End()) - max(o.Start, s.Start)
			return o.Side != s.Side && o.Side != BothSides && s.Side != BothSides && o.sameAs(&s) &&
				float64(both) >= alike*float64(max(o.Length, s.Length))
		})
		if at < 0 {
			out = append(out, s)
			continue
		}
		o := &out[at]
		end := max(o.End(), s.End())
		o.Side, o.Length, o.Warmup = BothSides, end-o.Start, o.Warmup && s.Warmup
		o.Group, o.Broker, o.Whole = onlyIf(o.Group, s.Group), onlyIf(o.Broker, s.Broker), o.Whole && s.Whole
	}
	return out
}
