package stats

import (
	"cmp"
	"slices"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// The sides of a stall.
const (
	SendSide    = "send"    // messages were in flight, or due, and none was answered
	ReceiveSide = "receive" // messages waited at the broker, and none was received
	BothSides   = "both"    // both at once
)

// PartStalls are the stalls so far of the workers of one side: of the whole run, of one group or at one broker.
type PartStalls struct {
	Side  string
	Whole bool
	// A broker has no group, the whole run neither; a group's broker is empty if there are several.
	Group, Broker string
	// Count is their number, and Length the sum of their lengths; by phase: Warmup and Measure.
	Count  [parts]uint64
	Length [parts]time.Duration
}

// stall is a time in which the broker did nothing for any worker of a part, although it had something to do. It leaves
// out time at its start or end in which perfmq itself stood still.
type stall struct {
	side          string
	start, length time.Duration // from the start of the load
	warmup        bool          // it ended in a warm-up
	group, broker string        // the only ones that stalled, of several; else empty
	part          *part
	covered       bool // stalls of wider parts say the same
}

func (s *stall) end() time.Duration { return s.start + s.length }

// overlap returns the time that both share.
func (s *stall) overlap(o *stall) time.Duration {
	return max(0, min(o.end(), s.end())-max(o.start, s.start))
}

// alike is the share of the longer of two stalls that both must cover to be one stall of both sides.
const alike = 0.8

// twin reports whether a stall is the same one on the other side: both are of the run, or of a broker or group.
func (s *stall) twin(o *stall) bool {
	return o.side != s.side && o.side != BothSides && s.side != BothSides &&
		(s.part.kind == wholeRun && o.part.kind == wholeRun ||
			s.broker != "" && s.broker == o.broker || s.group != "" && s.group == o.group) &&
		float64(s.overlap(o)) >= alike*float64(max(o.length, s.length))
}

// joined returns the stalls of both sides in order, with simultaneous ones joined.
func joined(list []stall) (out []stall) {
	slices.SortStableFunc(list, func(a, b stall) int { return cmp.Compare(a.start, b.start) })
	var last []int // those that may overlap the next one: few, of many thousand in a run of days
	for _, s := range list {
		last = slices.DeleteFunc(last, func(i int) bool { return out[i].end() <= s.start })
		n := slices.IndexFunc(last, func(i int) bool { return out[i].twin(&s) })
		if n < 0 {
			last, out = append(last, len(out)), append(out, s)
			continue
		}
		o := &out[last[n]]
		o.side, o.length, o.warmup = BothSides, max(o.end(), s.end())-o.start, o.warmup && s.warmup
		o.group, o.broker = onlyIf(o.group, s.group), onlyIf(o.broker, s.broker)
	}
	return out
}

// onlyIf returns the name if the other one is the same.
func onlyIf(name, other string) string {
	if name != other {
		return ""
	}
	return name
}

// stallMeter finds the stalls of all parts of a run.
type stallMeter struct {
	limit   time.Duration
	brokers []string // by worker
	several bool     // the workers are at several brokers
	parts   []*part  // wider ones first
	open    []stall  // that last now
	found   []stall
	step    int  // number of stalls found before the present step
	fresh   bool // some were found since the last look
}

// maxFound bounds the memory for stalls.
const maxFound = 1 << 17

// SetStallLimit lets the collector look for times of at least that length in which nothing came. Call it before the
// first message.
func (c *Collector) SetStallLimit(limit time.Duration) {
	c.stalls.limit = limit
	c.quiets(func(q *quiet) { *q = quiet{limit: limit, waiting: never, owed: never} })
}

// DecideStalls decides the stalls that last now, as the load ends because of them: their answers may not come.
func (c *Collector) DecideStalls() {
	now := c.last.Sub(c.start)
	c.quiets(func(q *quiet) { q.endOwed(now) })
}

// quiets visits the quiet of each worker.
func (c *Collector) quiets(visit func(*quiet)) {
	for _, r := range c.producers {
		r.visitQuiet(visit)
	}
	for _, r := range c.consumers {
		r.visitQuiet(visit)
	}
}

// findStalls collects the workers' gaps of the interval that ends at now.
func (c *Collector) findStalls(phase Phase, now time.Duration, last bool) {
	m := &c.stalls
	if m.limit <= 0 {
		return
	}
	m.arrange(c)
	n := len(c.producers)
	closed, open := make([][]gap, n+len(c.consumers)), make([]gap, n+len(c.consumers))
	for i, r := range c.producers {
		closed[i], open[i] = r.takeGaps(now, last)
	}
	for i, r := range c.consumers {
		closed[n+i], open[n+i] = r.takeGaps(now, phase != Drain && c.delivered.owes(i), last)
	}
	m.open = nil
	pauses := c.meter.pulse.stopped()
	for _, p := range m.parts {
		finished, unfinished := make([][]gap, len(p.members)), make([]gap, len(p.members))
		for i, member := range p.members {
			finished[i], unfinished[i] = closed[member], open[member]
		}
		m.add(p, p.interval(finished, unfinished, phase == Warmup, last, pauses))
		if s, ok := p.lasting(unfinished, now, phase == Warmup, pauses); ok && !last {
			m.open = append(m.open, m.named(p, s, m.open))
		}
	}
}

// decide ends the search for stalls of the present step.
func (m *stallMeter) decide(pauses []gap) {
	m.open = nil
	for _, p := range m.parts {
		m.add(p, p.interval(nil, nil, false, true, pauses))
	}
}

// add keeps stalls of a part.
func (m *stallMeter) add(p *part, list []stall) {
	for _, s := range list {
		phase := Measure
		if s.warmup {
			phase = Warmup
		}
		p.so.Count[phase]++
		p.so.Length[phase] += s.length
		m.fresh = true
		if len(m.found) < maxFound {
			m.found = append(m.found, m.named(p, s, m.found))
		}
	}
}

// soFar returns the sums of the parts.
func (m *stallMeter) soFar() (list []PartStalls) {
	for _, p := range m.parts {
		list = append(list, p.so)
	}
	return list
}

// stallsOf returns the stalls of a group in the present step or the run, found or lasting now, by their starts; without
// a name the stalls of all parts, unless a wider part had them. It is nil if stalls were not looked for.
func (c *Collector) stallsOf(step bool, group string) []result.Stall {
	m, first := &c.stalls, 0
	if m.limit <= 0 {
		return nil
	}
	if step {
		first = m.step
	}
	var list []stall
	for _, part := range [][]stall{m.found[first:], m.open} {
		for i := range part {
			other := part[i].part
			if group == "" && !part[i].covered || group != "" && other.kind == ofGroup && other.name == group {
				list = append(list, part[i])
			}
		}
	}
	out := []result.Stall{}
	for _, s := range joined(list) {
		out = append(out, result.Stall{
			Side: s.side, Time: c.start.Add(s.start).UnixMicro(), Elapsed: s.start.Microseconds(),
			Length: s.length.Microseconds(), Group: s.group, Broker: s.broker, Warmup: s.warmup,
		})
	}
	return out
}

// coverAge bounds the search for an overlapping stall, in the order in which stalls were found: an older stall may have
// been found later.
const coverAge = time.Minute

// named adds to a stall its part, and whether stalls of wider parts in the list cover it.
func (m *stallMeter) named(p *part, s stall, list []stall) stall {
	s.part = p
	if p.kind != wholeRun {
		s.group = p.group
	}
	if m.several {
		s.broker = p.broker
	}
	var both time.Duration
	for i := range slices.Backward(list) {
		o := &list[i]
		if o.end()+coverAge < s.start {
			break
		}
		if o.part.includes(p) {
			both += o.overlap(&s)
		}
	}
	s.covered = float64(both) >= alike*float64(s.length)
	return s
}

// part is a set of workers of one side, with their common stalls.
type part struct {
	side          string
	kind          int    // wholeRun, atBroker or ofGroup
	name          string // of the broker or group
	group, broker string // the only ones of its workers; empty if there are several
	members       []int  // producers, then consumers
	limit         time.Duration
	pending       []candidate
	so            PartStalls // the ones found so far
}

const (
	wholeRun = iota
	atBroker
	ofGroup
)

// includes reports whether all workers of another part are its workers, too.
func (p *part) includes(o *part) bool {
	return p.side == o.side && p.kind < o.kind && (p.kind == wholeRun || p.broker == o.broker)
}

// brokerOf returns the broker of worker i, or, if its URL names several hosts, the host.
func (c *Collector) brokerOf(i int) string {
	w := c.workers[i]
	if w.Host != nil {
		if host := w.Host(); host != "" {
			return host
		}
	}
	return w.Broker
}

// arrange divides the workers into parts, if their brokers are others than at the last call. A part that was there
// before keeps its state.
func (m *stallMeter) arrange(c *Collector) {
	brokers := make([]string, len(c.producers)+len(c.consumers))
	for i := range brokers {
		brokers[i] = c.brokerOf(i)
	}
	if slices.Equal(brokers, m.brokers) {
		return
	}
	m.brokers = brokers
	m.several = slices.ContainsFunc(brokers, func(b string) bool { return b != brokers[0] })
	for _, p := range m.parts {
		p.members = nil
	}
	for i, broker := range brokers {
		side, group := SendSide, ""
		if i >= len(c.producers) {
			side = ReceiveSide
		}
		if c.groupOf != nil && c.groupOf[i] != nil {
			group = c.groupOf[i].run.Name
		}
		m.join(i, side, wholeRun, "", group, broker)
		if m.several {
			m.join(i, side, atBroker, broker, group, broker)
		}
		if group != "" {
			m.join(i, side, ofGroup, group, group, broker)
		}
	}
	slices.SortStableFunc(m.parts, func(a, b *part) int { return cmp.Compare(a.kind, b.kind) })
	for _, p := range m.parts {
		if p.so.Side == "" { // workers that go to another host later do not change its names
			p.so = PartStalls{Side: p.side, Whole: p.kind == wholeRun}
			p.so.Group, p.so.Broker = p.names(c)
		}
	}
}

// names returns the group and the broker that name the sums of a part, whatever worker joins it: a broker has no group,
// and a group has the planned broker of its workers, if it is one.
func (p *part) names(c *Collector) (group, broker string) {
	switch p.kind {
	case atBroker:
		return "", p.name
	case ofGroup:
		broker = c.workers[p.members[0]].Broker
		for _, i := range p.members {
			broker = onlyIf(broker, c.workers[i].Broker)
		}
		return p.name, broker
	default:
		return "", ""
	}
}

// join adds a worker, with its group and broker, to a part.
func (m *stallMeter) join(worker int, side string, kind int, name, group, broker string) {
	index := slices.IndexFunc(m.parts, func(p *part) bool { return p.side == side && p.kind == kind && p.name == name })
	if index < 0 {
		index = len(m.parts)
		m.parts = append(m.parts, &part{side: side, kind: kind, name: name, limit: m.limit})
	}
	p := m.parts[index]
	if len(p.members) == 0 {
		p.group, p.broker = group, broker
	}
	p.group, p.broker = onlyIf(p.group, group), onlyIf(p.broker, broker)
	p.members = append(p.members, worker)
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
func (p *part) interval(closed [][]gap, open []gap, warmup, last bool, pauses []gap) (found []stall) {
	all := []gap{{0, never, never}}
	for i := range open {
		all = common(all, append(slices.Clone(closed[i]), open[i]), p.limit)
	}
	for _, g := range all {
		if g.to < never {
			p.pending = append(p.pending, candidate{gap: gap{g.from, g.to, never}, warmup: warmup})
		}
	}
	var waiting []candidate
	for _, c := range p.pending {
		for _, g := range slices.Concat(closed...) {
			if g.from <= c.from && g.to >= c.to {
				c.waiting = min(c.waiting, g.waiting)
			}
		}
		if c.looks++; c.looks <= settled && !last {
			waiting = append(waiting, c)
			continue
		}
		if s, ok := c.stall(p.limit, pauses); ok {
			s.side = p.side
			found = append(found, s)
		}
	}
	p.pending = waiting
	return found
}

// lasting returns the stall that lasts now, if there is one.
func (p *part) lasting(open []gap, now time.Duration, warmup bool, pauses []gap) (stall, bool) {
	c := candidate{gap: gap{0, now, never}, warmup: warmup}
	for _, g := range open {
		c.from, c.waiting = max(c.from, g.from), min(c.waiting, g.waiting)
	}
	if c.waiting == never || max(c.from, c.waiting) >= now {
		return stall{}, false
	}
	s, ok := c.stall(p.limit, pauses)
	s.side = p.side
	return s, ok
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

// stall converts a candidate into a stall. It cuts off a pause of perfmq at the start or end; a pause within does
// not count towards the required length.
func (c *candidate) stall(limit time.Duration, pauses []gap) (stall, bool) {
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
	return stall{start: from, length: to - from, warmup: c.warmup}, to-from-paused >= limit
}
