package engine

import "github.com/perfmq/perfmq/internal/stats"

// All times of a summary follow one reading of the wall clock, that of the start: see [load.Clock.Moment].

// outageList returns the outages of the run.
func (r *run) outageList() ([]stats.Outage, stats.MoreOutages) {
	list, more := r.outages.List(), r.outages.More()
	for i := range list {
		list[i].Start = r.clock.Moment(list[i].Start)
	}
	return list, more
}
