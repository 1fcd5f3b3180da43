package report

import (
	"math"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// sides tells which kinds of workers exist: keys of the others are missing.
type sides struct{ sends, receives bool }

// figures returns the figures of a run or a step: first those of `artemis perf`, in its order.
func (has sides) figures(total *stats.Counters, l *result.Latencies, m *stats.Peaks) *object {
	o := new(object)
	o.addIf(has.sends, "totalSent", total[result.Sent]).addIf(has.sends, "totalBlocked", total[result.Blocked])
	o.addIf(has.sends, "totalCompleted", total[result.Completed]).addIf(has.receives, "totalReceived",
		total[result.Received])
	return o.addAll(latencyKeys("total ", l)).addAll(has.extremes("minimum", &m.Completed, &m.Received))
}

// extremes returns the lowest, or the highest, rates of a full measured second.
func (has sides) extremes(which string, completed, received *stats.Lowest) *object {
	return new(object).addIf(has.sends && completed.Known(), which+"Completed", extreme(completed)).
		addIf(has.receives && received.Known(), which+"Received", extreme(received))
}

// ends returns the messages of a run or a step that were not accepted, and the counts that only perfmq has.
func (has sides) ends(total *stats.Counters) *object {
	o := new(object)
	o.addIf(has.sends, "totalRejected", total[result.Rejected]).addIf(has.sends, "totalReleased", total[result.Released])
	o.addIf(has.sends, "totalModified", total[result.Modified]).addIf(has.sends, "totalFailed", total[result.Failed])
	o.addIf(has.sends, "totalUnconfirmed", total[result.Unconfirmed]).addIf(total[result.Resent] > 0, "totalResent",
		total[result.Resent])
	return o.addAll(ownCounts(total))
}

// numbers returns figures of the summary that `artemis perf` does not have.
func (has sides) numbers(s *stats.Summary, findings []result.Finding) *object {
	o := new(object).add("elapsedSeconds", s.End.Sub(s.Start).Seconds()).addAll(has.average(&s.Average, &s.Offered))
	o.addAll(has.extremes("maximum", &s.Maximum.Completed, &s.Maximum.Received))
	o.addIf(len(s.Spreads) > 0, "spreads", s.Spreads).addIf(len(s.Stalls.List) > 0, "stalls", s.Stalls.List)
	o.add("findings", findings).addIf(len(s.Outages) > 0, "outages", s.Outages)
	more, hosts := s.MoreOutages, s.Hosts
	o.addIf(more != nil, "moreOutages", more).addIf(len(hosts) > 0, "brokerHosts", hosts)
	spread := result.SpreadOverHosts(hosts)
	return o.addIf(len(spread) > 0, "brokerHostSpreads", spread)
}

// steps returns the keys of the summary for each of several steps. Their thresholds are among those of the summary,
// too.
func (has sides) steps(list []stats.StepSummary) (out []*object) {
	for i := range list {
		s := &list[i]
		o := new(object).add("name", s.Name).add("reason", s.Reason)
		o.add("start", s.Start.UnixMilli()).add("time", s.End.UnixMilli()) // of its load; drain included
		o.add("loadSeconds", s.Loaded.Seconds()).addIf(s.Due > 0, "due", s.Due)
		o.addAll(has.sums(s)).add("health", health(&s.Health))
		o.addIf(len(s.Thresholds) > 0, "thresholds", Thresholds(s.Thresholds))
		groups := jsonGroups(s.Groups)
		o.addIf(len(groups) > 0, "groups", groups).addIf(s.Limit.Kind != "", "limit", limit(&s.Limit))
		out = append(out, o)
	}
	return out
}

// sums returns the figures of a step or a group.
func (has sides) sums(s *stats.StepSummary) *object {
	o := has.figures(&s.Total, &s.Latencies, &s.Minimum).addAll(has.average(&s.Average, &s.Offered))
	o.addAll(has.extremes("maximum", &s.Maximum.Completed, &s.Maximum.Received)).addAll(has.ends(&s.Total))
	return o.add("measured", has.totals(&s.Measured, false))
}

// jsonGroups returns the keys of a step for each of its groups, or of the summary for each group over all steps, if
// there are several.
func jsonGroups(list []stats.StepSummary) (out []*object) {
	if len(list) < 2 {
		return nil
	}
	for i := range list {
		g := &list[i]
		has := sides{g.Sends, g.Receives}
		o := new(object).add("name", g.Name).addIf(g.Due > 0, "due", g.Due)
		out = append(out, o.addAll(has.sums(g)))
	}
	return out
}

// average returns the key for messages per second of the measured time, without warm-up and drain, rounded to two
// decimals; nothing if there was none.
func (has sides) average(a *stats.Average, o *stats.Offered) *object {
	if a.Span <= 0 {
		return new(object)
	}
	v := averages(a, o, has.sends, has.receives)
	average := new(object).add("seconds", a.Span.Seconds())
	for _, rate := range []struct {
		key   string
		value *float64
	}{
		{"sent", v.Sent},
		{"completed", v.Completed},
		{"received", v.Received},
		{"completedBytes", v.CompletedBytes},
		{"receivedBytes", v.ReceivedBytes},
	} {
		if rate.value != nil {
			average.add(rate.key, math.Round(*rate.value*100)/100)
		}
	}
	average.addIf(v.Offered != nil, "offered", v.Offered).addIf(v.Due != nil, "due", v.Due)
	average.addIf(v.Unsent != nil, "unsent", v.Unsent).addIf(o.Known(), "missed", o.Missed())
	return new(object).add("average", average)
}

// jsonCommands returns the commands that ran before and after steps. The status is null if a command could not be run,
// or was killed.
func jsonCommands(list []result.Command) (out []*object) {
	for i := range list {
		c := &list[i]
		out = append(out, new(object).add("step", c.Step).add("when", c.When).add("command", c.Command).
			add("status", c.Status).add("seconds", float64(c.Took)/1e6).
			addIf(c.Accepted > 0, "acceptedAfter", float64(c.Accepted)/1e6).add("output", c.Output))
	}
	return out
}
