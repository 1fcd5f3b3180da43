package page

import (
	"math"
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// extent is the range of some values; it is empty if high is below low.
type extent struct{ low, high float64 }

func nothing() extent { return extent{math.Inf(1), math.Inf(-1)} }

func (e *extent) add(v float64) { e.join(extent{v, v}) }

func (e *extent) join(o extent) { e.low, e.high = min(e.low, o.low), max(e.high, o.high) }

func (e *extent) known() bool { return e.low <= e.high }

// rate is a count of messages, with the lowest and highest rate of its full seconds.
type rate struct {
	count  uint64
	extent extent
}

// tail has the percentiles of a latency, as ranges over the rows of a point.
type tail struct{ p50, p99, max extent }

// point is a row of a run, or several successive rows. Times are in microseconds.
type point struct {
	from, to, length          int64
	phase, step               string
	sent, completed, received rate
	latencies                 []tail  // in the order of result.Names
	backlog                   float64 // the highest known one
	hasBacklog                bool
	inFlight                  float64 // the highest
	cpu, busy, all            int64
	cores                     int
	memory                    uint64 // the highest
	down                      int    // workers that are not connected, at most
	outages                   uint64 // so far
	side                      map[string]sidePoint
}

func newPoint(r *result.Row) point {
	p := point{
		from: r.Elapsed - r.Length, to: r.Elapsed, length: r.Length, phase: r.Phase, step: r.Step,
		inFlight: float64(r.InFlight),
		cpu:      r.Tester.CPU, busy: r.Tester.MachineBusy, all: r.Tester.MachineAll, cores: r.Tester.Cores,
		memory: r.Tester.Memory, down: r.Disconnected, outages: r.Outages,
		side: sidePoints(r.BrokerSide),
	}
	of := func(n uint64) rate {
		e := nothing()
		if r.Length >= fullSecond {
			e.add(perSecond(n, r.Length))
		}
		return rate{n, e}
	}
	if c := r.Producers; c != nil {
		p.sent, p.completed = of(c.Sent), of(c.Completed)
	}
	if c := r.Consumers; c != nil {
		p.received = of(c.Received)
	}
	if r.Backlog != nil {
		p.backlog, p.hasBacklog = float64(*r.Backlog), true
	}
	for _, name := range result.KindNames() {
		t := tail{nothing(), nothing(), nothing()}
		if l := r.Latencies.Get(name); l != nil && l.Count > 0 {
			if l.Percentiles != nil {
				t.p50.add(float64(l.P50))
				t.p99.add(float64(l.P99))
			}
			t.max.add(float64(l.Max))
		}
		p.latencies = append(p.latencies, t)
	}
	return p
}

// add joins p with the next point.
func (p *point) add(next *point) {
	p.to, p.phase, p.step = next.to, next.phase, next.step
	p.length += next.length
	for _, r := range [][2]*rate{{&p.sent, &next.sent}, {&p.completed, &next.completed}, {&p.received, &next.received}} {
		r[0].count += r[1].count
		r[0].extent.join(r[1].extent)
	}
	p.latencies = slices.Clone(p.latencies) // a page may be reading the old slice
	for i := range p.latencies {
		p.latencies[i].p50.join(next.latencies[i].p50)
		p.latencies[i].p99.join(next.latencies[i].p99)
		p.latencies[i].max.join(next.latencies[i].max)
	}
	p.backlog, p.hasBacklog = max(p.backlog, next.backlog), p.hasBacklog || next.hasBacklog // 0 if unknown
	p.inFlight = max(p.inFlight, next.inFlight)
	p.cpu, p.busy, p.all = p.cpu+next.cpu, p.busy+next.busy, p.all+next.all
	p.cores, p.memory = next.cores, max(p.memory, next.memory)
	p.down, p.outages = max(p.down, next.down), next.outages
	p.side = joinSides(p.side, next.side)
}

// series has the points of a run, thinned as the run gets longer: at most 2*limit points, each with the range of its
// rows.
type series struct {
	limit  int
	span   int64 // maximum length of a point; 0 while each is a row
	points []point
}

func (s *series) add(row *result.Row) {
	s.take(newPoint(row))
	for len(s.points) > 2*s.limit {
		s.thin()
	}
}

// shortest is the minimum length of a point of its own, in microseconds: rates of shorter rows say nothing.
const shortest = 500_000

// take joins p with the last point if both are of one step and phase, and p is short or the joined point is not too
// long.
func (s *series) take(p point) {
	if n := len(s.points); n > 0 {
		last := &s.points[n-1]
		if last.phase == p.phase && last.step == p.step && (p.length < shortest || p.to-last.from <= s.span+s.span/20) {
			last.add(&p)
			return
		}
	}
	s.points = append(s.points, p)
}

// thin doubles the length of the points. If that does not suffice, because of many short steps, it joins points in
// pairs.
func (s *series) thin() {
	before := s.points
	s.span = max(2*s.span, 2_000_000)
	s.points = make([]point, 0, 2*s.limit+1)
	for i := range before {
		s.take(before[i])
	}
	if total := before[len(before)-1].to - before[0].from; s.span < total || len(s.points) <= 2*s.limit {
		return
	}
	before, s.points = s.points, nil
	for i := 0; i < len(before); i += 2 {
		p := before[i]
		if i+1 < len(before) {
			p.add(&before[i+1])
		}
		s.points = append(s.points, p)
	}
}

// clone returns a copy that add on the original does not change.
func (s *series) clone() *series {
	c := *s
	c.points = slices.Clone(s.points)
	return &c
}

// of returns the rate of a count of the point, or NaN if the point is too short.
func (p *point) of(n uint64) float64 {
	if p.length < shortest/2 {
		return math.NaN()
	}
	return perSecond(n, p.length)
}

// perSecond returns the rate of n messages in length microseconds.
func perSecond(n uint64, length int64) float64 {
	if length <= 0 {
		return 0
	}
	return float64(n) * 1e6 / float64(length)
}
