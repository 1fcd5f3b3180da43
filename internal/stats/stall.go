package stats

import (
	"cmp"
	"math"
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
	// A broker has no group, the whole run neither; a group has the planned broker of its workers, if it is only one.
	Group, Broker string
	// Count is their number, and Length the sum of their lengths; by phase: Warmup and Measure.
	Count  [parts]uint64
	Length [parts]time.Duration
}

// stall is a time in which the broker did nothing for any worker of a part, although it had something to do. It leaves
// out time at its start or end in which perfmq was paused. It has no Time yet.
type stall struct {
	result.Stall
	exact   time.Duration // its length
	part    *part
	covered bool // stalls of wider parts say the same
}

func (s *stall) end() int64 { return s.Elapsed + s.Length }

// overlap returns the time that both share.
func (s *stall) overlap(o *stall) int64 {
	return max(0, min(o.end(), s.end())-max(o.Elapsed, s.Elapsed))
}

// alike is the share of the longer of two stalls that both must cover to be one stall of both sides.
const alike = 0.8

// twin reports whether a stall is the same one on the other side: both are of the run, or of a broker or group.
func (s *stall) twin(o *stall) bool {
	return o.Side != s.Side && o.Side != BothSides && s.Side != BothSides &&
		(s.part.kind == wholeRun && o.part.kind == wholeRun ||
			s.Broker != "" && s.Broker == o.Broker || s.Group != "" && s.Group == o.Group) &&
		float64(s.overlap(o)) >= alike*float64(max(o.Length, s.Length))
}

// joined returns the stalls of both sides in order, with simultaneous ones joined.
func joined(list []stall) (out []stall) {
	slices.SortStableFunc(list, func(a, b stall) int { return cmp.Compare(a.Elapsed, b.Elapsed) })
	var last []int // those that may overlap the next one: few, of many thousand in a run of days
	for _, s := range list {
		last = slices.DeleteFunc(last, func(i int) bool { return out[i].end() <= s.Elapsed })
		n := slices.IndexFunc(last, func(i int) bool { return out[i].twin(&s) })
		if n < 0 {
			last, out = append(last, len(out)), append(out, s)
			continue
		}
		o := &out[last[n]]
		o.Side, o.Length, o.Warmup = BothSides, max(o.end(), s.end())-o.Elapsed, o.Warmup && s.Warmup
		o.Group, o.Broker = onlyIf(o.Group, s.Group), onlyIf(o.Broker, s.Broker)
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
	recent  []stall // the last ones found: coverAge
	step    int     // number of stalls in found before the present step
	fresh   bool    // some were found since the last look
	// more counts the measured stalls that found leaves out, of the run and of the present step: by group, and under no
	// name the stalls of all parts, unless a wider part had them.
	more [2]map[string]uint64
}

// maxFound bounds the memory for stalls.
const maxFound = 1 << 17

// SetStallLimit lets the collector look for times of at least that length, above 0, in which nothing came. Call it
// before the first message.
func (c *Collector) SetStallLimit(limit time.Duration) {
	c.stalls.limit = limit
	c.stalls.more = [2]map[string]uint64{{}, {}}
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
	var workers []workerGaps
	for _, r := range c.producers {
		workers = append(workers, r.takeGaps(now, last))
	}
	for i, r := range c.consumers {
		workers = append(workers, r.takeGaps(now, phase != Drain && c.delivered.owes(i), last))
	}
	m.open = nil
	pauses := c.meter.pulse.stopped()
	for _, p := range m.parts {
		m.add(p, p.interval(workers, phase == Warmup, last, pauses))
		if s, ok := p.lasting(workers, now, phase == Warmup, pauses); ok && !last {
			m.open = append(m.open, m.named(p, s, m.open))
		}
	}
}

// decide ends the search for stalls of the present step.
func (m *stallMeter) decide(pauses []gap) {
	m.open = nil
	for _, p := range m.parts {
		m.add(p, p.interval(make([]workerGaps, len(m.brokers)), false, true, pauses))
	}
}

// add counts and keeps stalls of a part.
func (m *stallMeter) add(p *part, list []stall) {
	for _, s := range list {
		s = m.named(p, s, m.recent)
		phase := Measure
		if s.Warmup {
			phase = Warmup
		}
		p.Count[phase]++
		p.Length[phase] += s.exact
		m.fresh = true
		m.keep(s, phase)
		m.recent = append(slices.DeleteFunc(m.recent, func(o stall) bool {
			return o.end()+coverAge.Microseconds() < s.Elapsed
		}), s)
	}
}

// keep adds a stall to found. If there is no room, only the longest one of its part in the present step stays.
func (m *stallMeter) keep(s stall, phase Phase) {
	longest := &s.part.longest[phase]
	first := *longest <= m.step
	longer := first || m.found[*longest-1].Length < s.Length
	if first || len(m.found) < maxFound {
		m.found = append(m.found, s)
		if longer {
			*longest = len(m.found)
		}
		return
	}
	if longer {
		m.found[*longest-1], s = s, m.found[*longest-1]
	}
	if phase != Measure {
		return
	}
	for _, more := range m.more {
		if !s.covered {
			more[""]++
		}
		if s.part.kind == ofGroup {
			more[s.part.Group]++
		}
	}
}

// setStalls sets the stalls of a group in the present step or the run, found or lasting now, by their starts; without
// a name the stalls of all parts, unless a wider part had them. They stay nil if stalls were not looked for.
func (c *Collector) setStalls(sum *Summary, step bool, group string) {
	m, first := &c.stalls, 0
	if m.limit <= 0 {
		return
	}
	sum.Unlisted = m.more[0][group]
	if step {
		first, sum.Unlisted = m.step, m.more[1][group]
	}
	var list []stall
	for _, part := range [][]stall{m.found[first:], m.open} {
		for i := range part {
			other := part[i].part
			if group == "" && !part[i].covered || group != "" && other.kind == ofGroup && other.Group == group {
				list = append(list, part[i])
			}
		}
	}
	sum.Stalls = []result.Stall{}
	for _, s := range joined(list) {
		s.Time = c.start.Add(time.Duration(s.Elapsed) * time.Microsecond).UnixMicro()
		sum.Stalls = append(sum.Stalls, s.Stall)
	}
}

// coverAge bounds the search for an overlapping stall: an older stall may have been found later.
const coverAge = time.Minute

// named adds to a stall its part, and whether stalls of wider parts in the list cover it.
func (m *stallMeter) named(p *part, s stall, list []stall) stall {
	s.part = p
	if p.kind != wholeRun {
		s.Group = p.group
	}
	if m.several {
		s.Broker = p.broker
	}
	var both int64
	for i := range list {
		if list[i].part.includes(p) {
			both += list[i].overlap(&s)
		}
	}
	s.covered = float64(both) >= alike*float64(s.Length)
	return s
}

// part is a set of workers of one side, with their common stalls.
type part struct {
	PartStalls
	kind          int    // wholeRun, atBroker or ofGroup
	group, broker string // the only ones of its workers now; empty if there are several
	members       []int  // producers, then consumers
	limit         time.Duration
	pending       []candidate
	longest       [parts]int // by phase: the place of the longest stall in found, from 1
}

const (
	wholeRun = iota
	atBroker
	ofGroup
)

// includes reports whether all workers of another part are its workers, too.
func (p *part) includes(o *part) bool {
	return p.Side == o.Side && p.kind < o.kind && (p.kind == wholeRun || p.broker == o.broker)
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
		m.join(i, PartStalls{Side: side, Whole: true}, wholeRun, group, broker)
		if m.several {
			m.join(i, PartStalls{Side: side, Broker: broker}, atBroker, group, broker)
		}
		if group != "" {
			m.join(i, PartStalls{Side: side, Group: group, Broker: c.workers[i].Broker}, ofGroup, group, broker)
		}
	}
	slices.SortStableFunc(m.parts, func(a, b *part) int { return cmp.Compare(a.kind, b.kind) })
}

// join adds a worker, with its group and broker, to a part.
func (m *stallMeter) join(worker int, of PartStalls, kind int, group, broker string) {
	index := slices.IndexFunc(m.parts, func(p *part) bool {
		return p.Side == of.Side && p.kind == kind && p.Group == of.Group && (kind != atBroker || p.Broker == broker)
	})
	if index < 0 {
		index = len(m.parts)
		m.parts = append(m.parts, &part{PartStalls: of, kind: kind, limit: m.limit})
	}
	p := m.parts[index]
	if len(p.members) == 0 {
		p.group, p.broker = group, broker
	}
	p.group, p.broker, p.Broker = onlyIf(p.group, group), onlyIf(p.broker, broker), onlyIf(p.Broker, of.Broker)
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

// workerGaps are the gaps of a worker since the last interval: the finished ones, and the one in progress.
type workerGaps struct {
	closed []gap
	open   gap
}

// interval adds the gaps of its members among the workers. With last, or at the end of a step, all candidates are
// decided.
func (p *part) interval(workers []workerGaps, warmup, last bool, pauses []gap) (found []stall) {
	all := []gap{{0, never, never}}
	var closed []gap
	for _, i := range p.members {
		w := &workers[i]
		all = common(all, append(slices.Clone(w.closed), w.open), p.limit)
		closed = append(closed, w.closed...)
	}
	for _, g := range all {
		if g.to < never {
			p.pending = append(p.pending, candidate{gap: gap{g.from, g.to, never}, warmup: warmup})
		}
	}
	var waiting []candidate
	for _, c := range p.pending {
		for _, g := range closed {
			if g.from <= c.from && g.to >= c.to {
				c.waiting = min(c.waiting, g.waiting)
			}
		}
		if c.looks++; c.looks <= settled && !last {
			waiting = append(waiting, c)
			continue
		}
		if s, ok := c.stall(p.limit, pauses); ok {
			s.Side = p.Side
			found = append(found, s)
		}
	}
	p.pending = waiting
	return found
}

// lasting returns the stall that lasts now, if there is one.
func (p *part) lasting(workers []workerGaps, now time.Duration, warmup bool, pauses []gap) (stall, bool) {
	c := candidate{gap: gap{0, now, never}, warmup: warmup}
	for _, i := range p.members {
		open := &workers[i].open
		c.from, c.waiting = max(c.from, open.from), min(c.waiting, open.waiting)
	}
	if c.waiting == never || max(c.from, c.waiting) >= now {
		return stall{}, false
	}
	s, ok := c.stall(p.limit, pauses)
	s.Side = p.Side
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
	s := result.Stall{Elapsed: from.Microseconds(), Length: (to - from).Microseconds(), Warmup: c.warmup}
	return stall{Stall: s, exact: to - from}, to-from-paused >= limit
}

// quiet finds, for one worker, the times in which nothing came: no answer of the broker to a producer, no message to a
// consumer. Times are since the start of the run. Callers hold the lock of the recorder.
type quiet struct {
	limit time.Duration // shortest recorded time; 0 for none
	sign  time.Duration // time of the last answer or message; 0 for never
	last  time.Duration // the same, or the time at which the worker was ready for one
	// waiting and until are the begin and the end of a wait that ended without an answer or message; never if there was
	// no such wait.
	waiting, until time.Duration
	owed           time.Duration // since when it has waited for what has not come, as of the last collection; or never
	gaps           []gap         // since the last collection
}

// gap is a time in which nothing came to a worker, although it had something to wait for since waiting.
type gap struct{ from, to, waiting time.Duration }

const (
	never   = time.Duration(math.MaxInt64)
	maxGaps = 1024 // of one worker in one interval
)

// recordSign records an answer or a message that the worker had awaited since the given time.
func (q *quiet) recordSign(since, now time.Duration) {
	if q.limit > 0 && now-q.last >= q.limit {
		q.addGap(now, min(since, q.waiting))
	}
	q.sign, q.last, q.waiting, q.until, q.owed = now, max(q.last, now), never, 0, never
}

// recordNoAnswer records that the answer or message that the worker had awaited since then will not come.
func (q *quiet) recordNoAnswer(since, now time.Duration) {
	q.waiting, q.until = min(q.waiting, since), max(q.until, now)
}

// recordReady records that nothing could come before now, as the worker was busy or closed.
func (q *quiet) recordReady(now time.Duration) {
	q.endWait()
	q.last = max(q.last, now)
}

// endWait ends a wait that no answer or message has ended.
func (q *quiet) endWait() {
	if q.limit > 0 && q.until-q.last >= q.limit {
		q.addGap(q.until, q.waiting)
	}
	q.last, q.waiting, q.until = max(q.last, q.until), never, 0
}

func (q *quiet) addGap(to, waiting time.Duration) {
	if len(q.gaps) < maxGaps {
		q.gaps = append(q.gaps, gap{q.last, to, max(q.last, waiting)})
	}
}

// takeGaps returns the gaps since the last call, and the gap in progress. owed is the begin of the worker's present
// wait; never without one. With last, no more will come.
func (q *quiet) takeGaps(owed time.Duration, last bool) workerGaps {
	if last {
		q.endWait()
	}
	closed := q.gaps
	q.gaps = nil
	if q.owed = min(q.owed, owed); owed == never {
		q.owed = never
	}
	return workerGaps{closed, gap{q.last, never, max(q.last, q.owed)}}
}

// endOwed records that the awaited answer or message may not come any more.
func (q *quiet) endOwed(now time.Duration) {
	if q.owed < never {
		q.recordNoAnswer(q.owed, now)
	}
}

const (
	// leastSilence is the shortest time without an answer that counts. Before the first answers, while their usual latency
	// is unknown, it is firstSilence.
	leastSilence = 200 * time.Millisecond
	firstSilence = time.Second
)

// countedSilence returns the length of a time in which the broker answered nothing to the producer although a message
// waited throughout, or 0 if it is not long enough to count. The limit for stalls does not matter. Pauses of perfmq do
// not count. The caller holds the lock.
func (r *ProducerRecorder) countedSilence(since, now time.Duration) time.Duration {
	if now-since < r.leastSilence {
		return 0
	}
	if d := now - since - r.pulse.stoodStill(since, now); d >= r.leastSilence {
		return d
	}
	return 0
}
