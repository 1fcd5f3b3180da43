package report

import (
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// Metrics of a group of a scenario have a prefix, so that sums over the series of the others stay those of the run.
// groupKinds is the last kind of latency of groups.
const (
	groupPrefix = "group_"
	groupKinds  = result.Transfer
)

// namedParts is the maximum number of groups, brokers and hosts of a side with series of their stalls.
const namedParts = 4 * namedGroups

// namedGroups is the maximum number of groups with series of their own.
const namedGroups = 20

// groupSeries are the series of a scenario with several groups. Groups beyond namedGroups share one series.
type groupSeries struct {
	list []groupTotals
}

type groupTotals struct {
	name            string // as in the label
	sends, receives bool
	total           stats.Counters
	of              *stats.RunGroup // nil for the shared series
}

// place returns the totals of the i-th group of the run.
func (g *groupSeries) place(i int) *groupTotals { return &g.list[min(i, namedGroups)] }

func (g *groupSeries) start(groups []stats.RunGroup) {
	g.list = nil
	if len(groups) < 2 {
		return
	}
	for i, of := range groups {
		if i <= namedGroups {
			name := safetext.Line(of.Name)
			if i == namedGroups {
				name = result.OtherGroups
			}
			g.list = append(g.list, groupTotals{name: name})
			if i < namedGroups {
				g.list[i].of = &groups[i]
			}
		}
		t := g.place(i)
		t.sends, t.receives = t.sends || of.Sends, t.receives || of.Receives
	}
}

// interval updates the totals, and adds the latencies to the histograms of c.
func (g *groupSeries) interval(c *collector, phase string, groups []stats.GroupInterval) {
	if len(g.list) == 0 {
		return
	}
	g.reset()
	for i := range groups {
		of := &groups[i]
		t := g.place(i)
		t.total = t.total.Add(of.Total)
		for k := range groupKinds + 1 {
			c.add(histogramKey{metric: groupPrefix + result.Kinds()[k].Metric, phase: phase, group: t.name}, of.Latencies[k])
		}
	}
}

// summary sets the final totals.
func (g *groupSeries) summary(groups []stats.StepSummary) {
	if len(g.list) == 0 || len(groups) == 0 {
		return
	}
	g.reset()
	for i := range groups {
		t := g.place(i)
		t.total = t.total.Add(groups[i].Total)
	}
}

func (g *groupSeries) reset() {
	for i := range g.list {
		g.list[i].total = stats.Counters{}
	}
}

func (g *groupSeries) collect(emit emitter) {
	for i := range g.list {
		t := &g.list[i]
		if t.of != nil && t.sends {
			emit.gauge("group_info", 1, t.name, "producer", t.of.Protocol, t.of.Client)
		}
		if t.of != nil && t.receives {
			emit.gauge("group_info", 1, t.name, "consumer", t.of.ConsumerProtocol, t.of.ConsumerClient)
		}
		if t.sends {
			emit.counter("group_messages_sent_total", t.total[result.Sent], t.name)
			emit.counter("group_messages_completed_total", t.total[result.Completed], t.name)
			emit.counter("group_sends_failed_total", t.total[result.Sent]-t.total.InFlight()-t.total[result.Completed], t.name)
			emit.gauge("group_in_flight", float64(t.total.InFlight()), t.name)
		}
		if t.receives {
			emit.counter("group_messages_received_total", t.total[result.Received], t.name)
			emit.counter("group_messages_redelivered_total", t.total[result.Redelivered], t.name)
		}
	}
}
