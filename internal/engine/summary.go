package engine

import (
	"time"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
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
	s.Limit, s.BrokerHosts = r.longestLimit(), r.locate(s.Workers)
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
