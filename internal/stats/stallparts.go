package stats

import (
	"slices"
	"time"
)

// part is a set of workers of one side whose stalls are found: all of the run, those at one broker, or those of one
// group.
type part struct {
	standstill
	of      partKind
	group   string     // the only one of its workers; empty if there are several
	broker  string     // the same
	members []int      // producers, then consumers
	so      PartStalls // the ones found so far
}

type partKind uint8

const (
	wholeRun partKind = iota
	atBroker
	ofGroup
)

// PartStalls are the stalls so far of the workers of one group, or at one broker, on one side.
type PartStalls struct {
	Group, Broker string // empty if there are several
	Side          Side
	Measured      StallSum
	Warmup        StallSum
}

// StallSum is the number of stalls and how long they were, added up.
type StallSum struct {
	Count  uint64
	Length time.Duration
}

func (s *PartStalls) add(stall *Stall) {
	sum := &s.Measured
	if stall.Warmup {
		sum = &s.Warmup
	}
	sum.Count++
	sum.Length += stall.Length
}

// includes tells whether all workers of another part are its workers, too.
func (p *part) includes(o *part) bool {
	return p.side == o.side && (p.of == wholeRun && o.of != wholeRun ||
		p.of == atBroker && o.of == ofGroup && p.broker == o.broker)
}

// brokerOf returns the broker of worker i, or, if its URL names several hosts, the host.
func (c *Collector) brokerOf(i int) string {
	if i >= len(c.workers) {
		return ""
	}
	w := &c.workers[i]
	if w.Host != nil {
		if host := w.Host(); host != "" {
			return host
		}
	}
	return w.Broker
}

// arrange divides the workers into parts, if their brokers are others than at the last call.
func (m *stallMeter) arrange(c *Collector) {
	n := len(c.producers) + len(c.consumers)
	same := len(m.brokers) == n
	m.brokers = slices.Grow(m.brokers[:0], n)[:n]
	for i := range m.brokers {
		broker := c.brokerOf(i)
		same = same && m.brokers[i] == broker
		m.brokers[i] = broker
	}
	if same {
		return
	}
	m.several = slices.ContainsFunc(m.brokers, func(b string) bool { return b != m.brokers[0] })
	before := m.parts
	m.parts = nil
	m.divide(before, c, SendSide, 0, len(c.producers))
	m.divide(before, c, ReceiveSide, len(c.producers), n)
}

// divide adds the parts of the workers of a side: all, then those at each broker, then those of each group. A part that
// was there before keeps its state.
func (m *stallMeter) divide(before []*part, c *Collector, side Side, from, to int) {
	first := len(m.parts)
	join := func(of partKind, group, broker string, i int) {
		at := slices.IndexFunc(m.parts[first:], func(p *part) bool {
			return p.of == of && (of != atBroker || p.broker == broker) && (of != ofGroup || p.group == group)
		})
		if at < 0 {
			at = len(m.parts) - first
			p := &part{standstill: standstill{side: side, limit: m.limit}, of: of, group: group, broker: broker}
			m.parts = append(m.parts, p)
		}
		p := m.parts[first+at]
		p.members = append(p.members, i)
		if p.group != group {
			p.group = ""
		}
		if p.broker != broker {
			p.broker = ""
		}
	}
	for _, of := range []partKind{wholeRun, atBroker, ofGroup} {
		for i := from; i < to; i++ {
			group := c.groupName(i)
			if of == wholeRun || of == atBroker && m.several || of == ofGroup && group != "" {
				join(of, group, m.brokers[i], i)
			}
		}
	}
	for _, p := range m.parts[first:] {
		p.so = PartStalls{Group: p.group, Broker: p.broker, Side: side}
		if p.of == ofGroup { // workers that go to another host do not change its name
			p.so.Broker = c.plannedBroker(p.members)
		}
	}
	for _, old := range before {
		if old.side != side {
			continue
		}
		at := slices.IndexFunc(m.parts[first:], func(p *part) bool {
			return p.of == old.of && (p.of != atBroker || p.broker == old.broker) && (p.of != ofGroup || p.group == old.group)
		})
		if at < 0 {
			old.members = nil
			m.parts = append(m.parts, old)
			continue
		}
		p := m.parts[first+at]
		p.pending, p.so.Measured, p.so.Warmup = old.pending, old.so.Measured, old.so.Warmup
	}
}

// plannedBroker returns the one broker of workers in the plan; empty if there are several.
func (c *Collector) plannedBroker(members []int) (name string) {
	for i, member := range members {
		if member >= len(c.workers) || i > 0 && name != c.workers[member].Broker {
			return ""
		}
		name = c.workers[member].Broker
	}
	return name
}

// groupName returns the name of the group of worker i; empty on a command line.
func (c *Collector) groupName(i int) string {
	if c.groupOf == nil || c.groupOf[i] == nil {
		return ""
	}
	return c.groupOf[i].Name
}

// find looks for stalls of the part in the gaps of all workers.
func (p *part) find(m *stallMeter, closed [][]gap, open []gap, phase Phase, last bool, pauses []gap) {
	finished, unfinished := make([][]gap, len(p.members)), make([]gap, len(p.members))
	for i, member := range p.members {
		finished[i], unfinished[i] = closed[member], open[member]
	}
	for _, s := range p.interval(finished, unfinished, phase == Warmup, last, pauses) {
		m.add(p, s)
	}
	if s, ok := p.lasting(unfinished, m.now, phase == Warmup, pauses); ok && !last {
		m.open = append(m.open, m.named(p, s, m.open))
	}
}

// named adds to a stall its part, and whether stalls of wider parts in the list cover it.
func (m *stallMeter) named(p *part, s Stall, list []Stall) Stall {
	s.part, s.Whole = p, p.of == wholeRun
	if !s.Whole {
		s.Group = p.group
	}
	if m.several {
		s.Broker = p.broker
	}
	var both time.Duration
	for i := range slices.Backward(list) {
		o := &list[i]
		if o.End()+coverAge < s.Start {
			break
		}
		if o.part.includes(p) {
			both += max(0, min(o.End(), s.End())-max(o.Start, s.Start))
		}
	}
	s.covered = float64(both) >= alike*float64(s.Length)
	return s
}

// coverAge is how long before a stall another one may have ended that was found after one that overlaps it: the list is
// in the order in which stalls were found.
const coverAge = time.Minute

// lasting returns the stall that lasts now, if there is one.
func (m *standstill) lasting(open []gap, now time.Duration, warmup bool, pauses []gap) (Stall, bool) {
	c := candidate{gap: gap{0, now, never}, warmup: warmup}
	for _, g := range open {
		c.from, c.waiting = max(c.from, g.from), min(c.waiting, g.waiting)
	}
	if c.waiting == never || max(c.from, c.waiting) >= now {
		return Stall{}, false
	}
	return c.stall(m.side, m.limit, pauses)
}

// GiveUp decides the stalls that last now, as the load ends because of them: what they waited for may not come.
func (c *Collector) GiveUp() {
	now := c.last.Sub(c.start)
	for _, r := range c.producers {
		r.mu.Lock()
		r.quiet.giveUp(now)
		r.mu.Unlock()
	}
	for _, r := range c.consumers {
		r.mu.Lock()
		r.quiet.giveUp(now)
		r.mu.Unlock()
	}
}
