package report

import (
	"math"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// jsonFigures are the figures of a run or a step: first those of artemis perf, in its order.
type jsonFigures struct {
	TotalSent          *uint64      `json:"totalSent,omitempty"`
	TotalBlocked       *uint64      `json:"totalBlocked,omitempty"`
	TotalCompleted     *uint64      `json:"totalCompleted,omitempty"`
	TotalReceived      *uint64      `json:"totalReceived,omitempty"`
	TotalDelaySendTime *jsonLatency `json:"totalDelaySendTime,omitempty"`
	TotalSendTime      *jsonLatency `json:"totalSendTime,omitempty"`
	TotalTransferTime  *jsonLatency `json:"totalTransferTime,omitempty"`

	TotalResponseTime *jsonLatency `json:"totalResponseTime,omitempty"`
	TotalB2CTime      *jsonLatency `json:"totalB2cTime,omitempty"`
	TotalS2CTime      *jsonLatency `json:"totalS2cTime,omitempty"`
	TotalCommitTime   *jsonLatency `json:"totalCommitTime,omitempty"`
	TotalLateness     *jsonLatency `json:"totalLateness,omitempty"`
	MinimumCompleted  *jsonLowest  `json:"minimumCompleted,omitempty"`
	MinimumReceived   *jsonLowest  `json:"minimumReceived,omitempty"`
}

// jsonEnds counts the messages of a run or a step that were not accepted, and has other counts that only perfmq has.
type jsonEnds struct {
	TotalRejected    *uint64 `json:"totalRejected,omitempty"`
	TotalReleased    *uint64 `json:"totalReleased,omitempty"`
	TotalModified    *uint64 `json:"totalModified,omitempty"`
	TotalFailed      *uint64 `json:"totalFailed,omitempty"`
	TotalUnconfirmed *uint64 `json:"totalUnconfirmed,omitempty"`
	TotalResent      uint64  `json:"totalResent,omitempty"`
	jsonCounts
}

// jsonStep has the keys of the summary for a step; its thresholds are among those of the summary, too.
type jsonStep struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Start  int64  `json:"start"` // of its load, ms since the epoch
	Time   int64  `json:"time"`  // its end, drain included
	// Loaded is the length of the load; Due is the number of messages that its rates required in that time.
	Loaded float64 `json:"loadSeconds"`
	Due    uint64  `json:"due,omitempty"`
	jsonFigures
	// Average has messages per second of the measured time, without warm-up and drain; missing if there was none.
	Average *jsonAverage `json:"average,omitempty"`
	jsonHighest
	jsonEnds
	Measured   jsonTotals         `json:"measured"`
	Health     jsonHealth         `json:"health"`
	Thresholds []result.Threshold `json:"thresholds,omitempty"`
	Groups     []jsonGroup        `json:"groups,omitempty"` // if there are several
	Limit      *result.Limit      `json:"limit,omitempty"`
}

// jsonGroup has the keys of a step for one of its groups, or of the summary for a group over all steps.
type jsonGroup struct {
	Name string `json:"name"`
	Due  uint64 `json:"due,omitempty"`
	jsonFigures
	Average *jsonAverage `json:"average,omitempty"`
	jsonHighest
	jsonEnds
	Measured jsonTotals `json:"measured"`
}

// sides tells which kinds of workers exist: keys of the others are missing.
type sides struct{ sends, receives bool }

// jsonAverage has messages per second, rounded to two decimals.
type jsonAverage struct {
	Seconds float64 `json:"seconds"`
	result.Averages
	Missed *float64 `json:"missed,omitempty"` // the share of Due that was not sent, 0 to 1
}

// jsonHighest are the highest rates of a full measured second.
type jsonHighest struct {
	MaximumCompleted *jsonLowest `json:"maximumCompleted,omitempty"`
	MaximumReceived  *jsonLowest `json:"maximumReceived,omitempty"`
}

// jsonNumbers are figures of the summary that artemis perf does not have.
type jsonNumbers struct {
	Elapsed float64      `json:"elapsedSeconds"`    // of load and drain
	Average *jsonAverage `json:"average,omitempty"` // missing if nothing was measured
	jsonHighest
	Spreads []result.Spread `json:"spreads,omitempty"` // of groups with several workers of a side
	// Stalls are the stalls of the broker, in microseconds.
	Stalls   []result.Stall   `json:"stalls,omitempty"`
	Findings []result.Finding `json:"findings"`
	// Outages are the times without a connection of some worker, in microseconds; only with --reconnect.
	// Of more than 200 they are the first and the last hundred, and MoreOutages the sums of the others.
	Outages     []result.Outage     `json:"outages,omitempty"`
	MoreOutages *result.MoreOutages `json:"moreOutages,omitempty"`
	// BrokerHosts are the figures of each host, if a URL names several.
	BrokerHosts       []result.BrokerHost       `json:"brokerHosts,omitempty"`
	BrokerHostSpreads []result.BrokerHostSpread `json:"brokerHostSpreads,omitempty"`
}

func (has sides) numbers(s *stats.Summary) jsonNumbers {
	return jsonNumbers{
		Elapsed: s.End.Sub(s.Start).Seconds(), Average: has.average(&s.Average, &s.Offered),
		jsonHighest: has.highest(&s.Maximum),
		Spreads:     spreads(s.Spreads), Stalls: stalls(s),
		Outages: outages(s), MoreOutages: moreOutages(s), Findings: append([]result.Finding{},
			Observations(s)...),
		BrokerHosts: hostFigures(s.Hosts), BrokerHostSpreads: result.SpreadOverHosts(hostFigures(s.Hosts)),
	}
}

func (has sides) highest(m *stats.Maximum) jsonHighest {
	return jsonHighest{toJSONLowest(has.sends, &m.Completed), toJSONLowest(has.receives, &m.Received)}
}

// jsonCommand is a command that ran before or after a step.
type jsonCommand struct {
	Step    string  `json:"step"`
	When    string  `json:"when"` // "before" or "after" the step
	Command string  `json:"command"`
	Status  *int    `json:"status"` // null if the command could not be run, or was killed
	Seconds float64 `json:"seconds"`
	Output  string  `json:"output"` // the end of it
}

func (has sides) figures(total *stats.Counters, l *stats.Latencies, m *stats.Minimum) jsonFigures {
	producing := has.sends
	return jsonFigures{
		TotalSent:          valueIf(producing, total.Sent),
		TotalBlocked:       valueIf(producing, total.Blocked),
		TotalCompleted:     valueIf(producing, total.Completed),
		TotalReceived:      valueIf(has.receives, total.Received),
		TotalDelaySendTime: toJSONLatency(l.Delay),
		TotalSendTime:      toJSONLatency(l.Ack),
		TotalTransferTime:  toJSONLatency(l.Transfer),
		TotalResponseTime:  toJSONLatency(l.Response),
		TotalB2CTime:       toJSONLatency(l.B2C),
		TotalS2CTime:       toJSONLatency(l.S2C),
		TotalCommitTime:    toJSONLatency(l.Commit),
		TotalLateness:      toJSONLatency(l.Lateness),
		MinimumCompleted:   toJSONLowest(producing, &m.Completed),
		MinimumReceived:    toJSONLowest(has.receives, &m.Received),
	}
}

func (has sides) ends(total *stats.Counters) jsonEnds {
	producing := has.sends
	return jsonEnds{
		TotalRejected:    valueIf(producing, total.Rejected),
		TotalReleased:    valueIf(producing, total.Released),
		TotalModified:    valueIf(producing, total.Modified),
		TotalFailed:      valueIf(producing, total.Failed),
		TotalUnconfirmed: valueIf(producing, total.Unconfirmed),
		TotalResent:      total.Resent,
		jsonCounts:       toJSONCounts(total),
	}
}

func (has sides) steps(list []stats.StepSummary) (out []jsonStep) {
	for i := range list {
		s := &list[i]
		out = append(out, jsonStep{
			Name: s.Name, Reason: s.Reason, Start: s.Start.UnixMilli(), Time: s.End.UnixMilli(),
			Loaded: s.Loaded.Seconds(), Due: s.Due,
			jsonFigures: has.figures(&s.Total, &s.Latencies, &s.Minimum), Average: has.average(&s.Average, &s.Offered),
			jsonEnds:    has.ends(&s.Total),
			jsonHighest: has.highest(&s.Maximum),
			Measured:    has.measured(&s.Measured), Health: toJSONHealth(&s.Health), Thresholds: Thresholds(s.Thresholds),
			Groups: toJSONGroups(s.Groups),
			Limit:  limit(&s.Limit),
		})
	}
	return out
}

// toJSONGroups returns the groups of a run or a step, if there are several.
func toJSONGroups(list []stats.GroupSummary) (out []jsonGroup) {
	if len(list) < 2 {
		return nil
	}
	for i := range list {
		g := &list[i]
		has := sides{g.Sends, g.Receives}
		out = append(out, jsonGroup{
			Name: g.Name, Due: g.Due,
			jsonFigures: has.figures(&g.Total, &g.Latencies, &g.Minimum), Average: has.average(&g.Average, &g.Offered),
			jsonHighest: has.highest(&g.Maximum), jsonEnds: has.ends(&g.Total),
			Measured: has.measured(&g.Measured),
		})
	}
	return out
}

func (has sides) average(a *stats.Average, o *stats.Offered) *jsonAverage {
	if a.Span <= 0 {
		return nil
	}
	out := &jsonAverage{Seconds: a.Span.Seconds(), Averages: averages(a, o, has.sends, has.receives)}
	for _, v := range []*float64{out.Sent, out.Completed, out.Received, out.CompletedBytes, out.ReceivedBytes} {
		if v != nil {
			*v = math.Round(*v*100) / 100
		}
	}
	if o.Known() {
		missed := o.Missed()
		out.Missed = &missed
	}
	return out
}

func toJSONCommands(list []stats.Command) (out []jsonCommand) {
	for i := range list {
		c := &list[i]
		out = append(out, jsonCommand{
			Step: c.Step, When: c.When, Command: c.Command, Status: status(c), Seconds: c.Took.Seconds(), Output: c.Output,
		})
	}
	return out
}

// status returns the exit status of a command; nil if it has none.
func status(c *stats.Command) *int {
	if c.Status < 0 {
		return nil
	}
	return &c.Status
}
