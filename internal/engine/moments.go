package engine

import (
	"slices"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/stats"
)

// All times of a summary follow one reading of the wall clock, that of the start: see [load.Clock.Moment].

// outageList returns the outages of the run.
func (r *run) outageList() ([]stats.Outage, stats.MoreOutages) {
	list, more := r.outages.List(), r.outages.More()
	for i := range list {
		list[i].Start = r.clock.Moment(list[i].Start)
	}
	if more.Stuck != nil {
		stuck := *more.Stuck
		stuck.Start = r.clock.Moment(stuck.Start)
		more.Stuck = &stuck
	}
	return list, more
}

// brokerSide returns what the broker and its host did; nil if they were not watched.
func (r *run) brokerSide() *brokerside.Sum {
	sum := r.watched.Sum()
	if sum == nil {
		return nil
	}
	sum.Events = slices.Clone(sum.Events)
	for i := range sum.Events {
		sum.Events[i].At = r.clock.Moment(sum.Events[i].At)
	}
	return sum
}
