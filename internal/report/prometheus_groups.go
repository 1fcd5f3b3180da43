package report

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// groupDescriptions describe the metrics per group of a scenario. They have names of their own, so that sums over the
// series of the other metrics stay those of the run.
type groupDescriptions struct {
	sent, completed, failed, received, redelivered, inFlight *prometheus.Desc
	latency                                                  [result.Transfer + 1]*prometheus.Desc
	info                                                     *prometheus.Desc
}

func describeGroups(d *describer) groupDescriptions {
	g := groupDescriptions{
		info: d.of("group_info", "The role, protocol and client of a group; always 1.", "group", "role", "protocol",
			"client"),
		sent:      d.of("group_messages_sent_total", "Messages of a group handed to the protocol's driver.", "group"),
		completed: d.of("group_messages_completed_total", "Messages of a group that the broker acknowledged.", "group"),
		failed:    d.of("group_sends_failed_total", "Messages of a group that were sent but not acknowledged.", "group"),
		received:  d.of("group_messages_received_total", "Messages delivered to the consumers of a group.", "group"),
		redelivered: d.of("group_messages_redelivered_total", "Those of them that the broker marked as delivered before.",
			"group"),
		inFlight: d.of("group_in_flight", "Messages of a group that were sent and are neither acknowledged nor failed.",
			"group"),
	}
	for k := range g.latency {
		kind := result.Kinds()[k]
		g.latency[k] = d.of("group_"+kind.Metric, strings.TrimSuffix(kind.Help, ".")+", of a group.", "phase", "group")
	}
	return g
}

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
		for k, desc := range c.d.group.latency {
			c.add(histogramKey{desc: desc, phase: phase, group: t.name}, of.Latencies[k])
		}
	}
}

// summary sets the final totals.
func (g *groupSeries) summary(groups []stats.GroupSummary) {
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

func (g *groupSeries) collect(d *groupDescriptions, emit emitter) {
	for i := range g.list {
		t := &g.list[i]
		if t.of != nil && t.sends {
			emit.gauge(d.info, 1, t.name, "producer", t.of.Protocol, t.of.Client)
		}
		if t.of != nil && t.receives {
			emit.gauge(d.info, 1, t.name, "consumer", t.of.ConsumerProtocol, t.of.ConsumerClient)
		}
		if t.sends {
			emit.counter(d.sent, t.total[result.Sent], t.name)
			emit.counter(d.completed, t.total[result.Completed], t.name)
			emit.counter(d.failed, t.total[result.Sent]-t.total.InFlight()-t.total[result.Completed], t.name)
			emit.gauge(d.inFlight, float64(t.total.InFlight()), t.name)
		}
		if t.receives {
			emit.counter(d.received, t.total[result.Received], t.name)
			emit.counter(d.redelivered, t.total[result.Redelivered], t.name)
		}
	}
}
