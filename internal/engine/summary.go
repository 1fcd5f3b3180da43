package engine

import (
	"time"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// summarize returns the summary of the run. All workers are closed and the last snapshot is taken.
func (r *run) summarize(end ending, left []string) *stats.Summary {
	c := r.sampler.collector
	if len(r.steps) > 1 {
		r.endStep(end, c.EndStep(r.step.plan.Name))
	} else {
		r.countDemand()
	}
	now, sum := time.Now(), c.SumRun()
	groups := sum.Groups
	for i := range groups {
		for _, step := range r.steps {
			for _, u := range step.uses {
				if u.plan.Name == groups[i].Name {
					groups[i].Due += u.due
					groups[i].Offered.Add(u.offered)
				}
			}
		}
		if len(r.steps) > 1 {
			groups[i].Offered.Span = 0
		}
	}
	sum.Reason, sum.Start, sum.End = end.reason, r.clock.Start(), r.clock.Moment(now)
	sum.Tester, sum.Offered = c.Tester(now), r.offered
	sum.Sends, sum.Receives = r.role.Produces(), r.role.Consumes()
	s := &stats.Summary{
		StepSummary: sum, Interrupted: end.interrupted, Aborted: end.aborted, Err: end.err, Marks: c.MarksPassed(),
		Protocol: c.Protocol(), Workers: c.WorkerTotals(),
		ExpectedKnown: r.expectedKnown(), LeftBehind: left, Commands: r.commands, Steps: r.endedSteps,
		Side: r.watched.Sum(), Brokers: r.brokers(), BrokerCount: r.brokerCount(),
	}
	if len(r.steps) == 1 {
		r.setReadRates(&s.StepSummary)
	}
	if len(r.endedSteps) > 0 {
		s.Limit = longestLimit(r.endedSteps)
	} else {
		s.Limit = c.Tally().Judge(r.producersAsked())
	}
	s.Hosts = r.locate(s.Workers)
	if len(r.endedSteps) > 1 {
		s.Minimum = r.lowest(r.endedSteps, groups)
		s.Offered.Span = 0
	}
	var excess uint64
	if s.ExpectedKnown && r.verify == nil {
		s.Expected, s.Missing, excess = r.compareReceived()
	}
	s.Errors = r.errorClasses(s)
	if r.outages != nil {
		s.Outages, s.MoreOutages = r.outageList()
	}
	r.judgeVerification(s)
	countedAnew(s)
	if c := s.BrokerCount; c != nil {
		c.Notes = c.Unknown()
	}
	r.findAll(s, excess)
	s.Success = len(s.Problems()) == 0
	s.Metrics = r.wholeMetrics(s, true)
	s.Thresholds = threshold.Judge(r.plan.Thresholds, r.wholeTarget, s.Metrics)
	if len(r.steps) == 1 { // the step is the run
		s.Thresholds = append(s.Thresholds, r.step.judgeThresholds(s.Metrics)...)
	}
	for i := range r.endedSteps {
		s.Thresholds = append(s.Thresholds, r.endedSteps[i].Thresholds...)
	}
	return s
}

// errorClasses returns the number of failures by class, with an example of each.
func (r *run) errorClasses(s *stats.Summary) (list []result.Failure) {
	for class := range driver.NumClasses {
		if n := s.Total.Class(class); n > 0 {
			e := result.Failure{Class: class.String(), Count: n}
			if err := r.firstError(class); err != nil {
				e.Examples = []string{err.Error()}
			}
			list = append(list, e)
		}
	}
	return list
}
