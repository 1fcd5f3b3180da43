package engine

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// summarize returns the summary of the run. All workers are closed and the last snapshot is taken.
func (r *run) summarize(end ending, left []string) *stats.Summary {
	c := r.sampler.collector
	r.endStep(end, r.sampler.sumStep())
	now, sum := time.Now(), c.SumRun()
	s, several := &sum, len(r.steps) > 1 // else the step is the run
	for i := range s.Groups {
		g := &s.Groups[i]
		for _, step := range r.steps {
			for _, u := range step.uses {
				if u.plan.Name == g.Name {
					g.Due += u.due
					g.Offered.Add(u.offered)
				}
			}
		}
		if several {
			g.Offered.Span = 0
		}
	}
	s.Outcome = result.Outcome{
		Reason: end.reason, Interrupted: end.interrupted, Aborted: end.aborted, LeftBehind: left,
	}
	s.Complete, s.Err = true, end.err
	s.Start, s.End = r.clock.Start().UnixMicro(), r.clock.Moment(now).UnixMicro()
	s.Tester, s.Offered, s.Counters, s.Workers = c.Tester(now), r.offered, c.Protocol(), c.WorkerTotals()
	s.Marks, s.Commands, s.Brokers, s.BrokerCount = c.MarksPassed(), r.commands, r.brokers(), r.brokerCount()
	s.Limit = r.longestLimit()
	for i, p := range r.producers {
		s.Workers[i].BrokerHosts = p.stays.all()
	}
	for i, c := range r.consumers {
		s.Workers[len(r.producers)+i].BrokerHosts = c.stays.all()
	}
	if several {
		s.Ended = r.endedSteps
	} else {
		r.setReadRates(s)
	}
	if len(r.endedSteps) > 1 {
		s.Minimum = r.lowest(r.endedSteps, s.Groups)
		s.Offered.Span = 0
	}
	var excess uint64
	if r.expectedKnown() {
		s.Expected, s.Missing = new(uint64), new(uint64)
		if r.verify == nil {
			*s.Expected, *s.Missing, excess = r.compareReceived()
		}
	}
	s.Errors = r.errorClasses(s)
	r.setOutside(s)
	r.judgeVerification(s)
	countedAnew(s)
	r.findAll(s, excess)
	if r.sample > 0 {
		s.Trace = new(r.traced)
		s.Find("trace-dropped", "", s.Trace.Dropped, s.Trace.Dropped, s.Trace.Dropped+s.Trace.Events)
	}
	s.Outcome.Success = len(s.Problems()) == 0
	s.Values = metrics(s)
	s.Thresholds = threshold.Judge(r.plan.Thresholds, r.wholeTarget, s.Values)
	if !several {
		s.Thresholds = append(s.Thresholds, r.step.judgeThresholds(s.Values)...)
	}
	for i := range s.Ended {
		s.Thresholds = append(s.Thresholds, s.Ended[i].Thresholds...)
	}
	return s
}

// setOutside sets the use of the broker's side, and the outages of a run that reconnects.
func (r *run) setOutside(s *stats.Summary) {
	if side := r.watched.Sum(); side != nil {
		s.BrokerSide = []result.BrokerSide{*side}
	}
	if r.outages == nil {
		return
	}
	s.Outages, s.MoreOutages = r.outages.List(r.clock.Start()), r.outages.More()
	for i := range s.Outages {
		o := &s.Outages[i]
		o.Error, o.LastAttempt = safetext.Bounded(o.Error), safetext.Bounded(o.LastAttempt)
	}
}

// errorClasses returns the number of failures by class, with an example of each.
func (r *run) errorClasses(s *stats.Summary) (list []result.Failure) {
	for class := range driver.NumClasses {
		if n := s.Total.OfClass(class.String()); n > 0 {
			e := result.Failure{Class: class.String(), Count: n}
			if err := r.firstError(class); err != nil {
				e.Examples = []string{err.Error()}
			}
			list = append(list, e)
		}
	}
	return list
}

// metrics returns the metrics of a run or a step. The metrics of its groups follow, under their names.
func metrics(s *stats.Summary) map[string]float64 {
	all := s.Metrics()
	for i := range s.Groups {
		for name, v := range s.Groups[i].Metrics() {
			all[threshold.GroupPrefix+s.Groups[i].Name+"."+name] = v
		}
	}
	return all
}

// shortest is the minimum time from the first to the last message of a backlog for a rate.
const shortest = time.Millisecond

// readTime returns when the present step read the first and the last message of a backlog. It is false for a step that
// also sends, has a duration or a warm-up, or received nothing: such a step has rates over its whole time.
func (r *run) readTime() (first, last time.Duration, ok bool) {
	s := r.step.plan
	if s.Produces() || s.Duration > 0 || s.Warmup > 0 {
		return 0, 0, false
	}
	first = math.MaxInt64
	for _, c := range r.step.consumers {
		if from, to, ok := c.rec.FirstAndLast(); ok {
			first, last = min(first, from), max(last, to)
		}
	}
	return first, last, last-first >= shortest
}

// setReadRates sets the rates of the present step, or the run, and its groups if they have read a backlog.
func (r *run) setReadRates(s *stats.Summary) {
	if first, last, ok := r.readTime(); ok {
		s.ReadBacklog(first, last)
		for i := range s.Groups {
			s.Groups[i].ReadBacklog(first, last)
		}
	}
}

// lowest returns the lowest rates over the steps so far, the first ones of the plan, and sets the groups' lowest rates,
// each over its own steps.
func (r *run) lowest(sums, groups []stats.Summary) (all stats.Peaks) {
	for i := range groups {
		groups[i].Minimum = stats.Peaks{}
	}
	for k := range sums {
		all.Include(&sums[k].Minimum, 1)
		for i := range sums[k].Groups {
			group := &sums[k].Groups[i]
			n := slices.IndexFunc(groups, func(g stats.Summary) bool { return g.Name == group.Name })
			if n >= 0 && slices.ContainsFunc(r.steps[k].uses, func(u *use) bool { return u.plan.Name == group.Name }) {
				groups[n].Minimum.Include(&group.Minimum, 1)
			}
		}
	}
	return all
}

// stays are the hosts to which a worker was connected, for a URL with several. It is safe for concurrent use.
type stays struct {
	mu      sync.Mutex
	present string   // host of the present connection, or the last one; empty if it is not known
	hosts   []string // of the URL, in the order of the first connections
}

// recordHost records the host of a new connection, before its first message.
func (s *stays) recordHost(worker any, e *Endpoint) {
	located, ok := worker.(driver.Located)
	if !ok || len(e.Hosts) < 2 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present = located.Host()
	if !slices.Contains(s.hosts, s.present) && slices.Contains(e.Hosts, s.present) {
		s.hosts = append(s.hosts, s.present)
	}
}

func (s *stays) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts
}

func (s *stays) presentHost() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present
}

// lastIndex returns the index of the last host in the URL; 0 if the worker was connected to no host of it.
func (s *stays) lastIndex(hosts []string) int {
	return max(0, slices.Index(hosts, s.presentHost()))
}

// orderAfter returns the order of the hosts for a connection that replaces a lost one; nil if there is no choice.
func (s *stays) orderAfter(g *plan.Group, e *Endpoint) []int {
	switch {
	case len(e.Hosts) < 2:
		return nil
	case g.Hosts == plan.Spread:
		return plan.Rotation(s.lastIndex(e.Hosts)+1, len(e.Hosts))
	default:
		return plan.Rotation(0, len(e.Hosts))
	}
}

// spreads reports whether connections to a broker are spread over several hosts.
func (r *run) spreads(e *Endpoint) bool {
	return slices.ContainsFunc(r.plan.Groups(), func(g *plan.Group) bool {
		return slices.ContainsFunc(g.Sides(), func(b *plan.Broker) bool { return b.Same(e.Broker) && g.Spreads(b) })
	})
}
