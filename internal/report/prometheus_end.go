package report

import (
	"github.com/perfmq/perfmq/pkg/result"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
)

// Maximum numbers of series that depend on the scenario or the brokers.
const (
	maxThresholds = 100
	maxBrokers    = 20
)

// collectEnd emits the figures of the summary.
func collectEnd(run *stats.Run, s *stats.Summary, emit emitter) {
	emit.gauge("run_success", oneIf(s.Success))
	if s.ExpectedKnown {
		emit.gauge("messages_missing", float64(s.Missing))
		emit.gauge("messages_expected", float64(s.Expected))
	}
	emit.gauge("run_end_time_seconds", float64(s.End.UnixMilli())/1000)
	a := &s.Average
	if run.Producing {
		emit.gauge("run_rate", a.PerSecond(a.Sent), "sent", "average")
		emit.gauge("run_rate", a.PerSecond(a.Completed), "completed", "average")
		emit.extremes("completed", &s.Minimum.Completed, &s.Maximum.Completed)
	}
	if run.Consuming {
		emit.gauge("run_rate", a.PerSecond(a.Received), "received", "average")
		emit.extremes("received", &s.Minimum.Received, &s.Maximum.Received)
	}
	if s.Offered.Known() {
		emit.gauge("run_rate_missed_ratio", s.Offered.Missed())
	}
	if s.Limit.Kind != "" {
		emit.gauge("run_limit_info", 1, s.Limit.Kind)
	}
	emit.gauge("run_problems", float64(len(s.Problems())))
	emit.gauge("run_warnings", float64(len(s.Warnings())))
	collectFindings(s, emit)
	collectThresholds(s, emit)
	seen := map[result.Broker]bool{}
	for _, b := range s.Brokers {
		b = result.Broker{
			Name: safetext.Line(b.Name), Side: b.Side, Protocol: b.Protocol, Product: safetext.Line(b.Product),
			Version: safetext.Line(b.Version),
		}
		if !seen[b] && len(seen) < maxBrokers {
			seen[b] = true
			emit.gauge("broker_info", 1, b.Name, b.Side, b.Protocol, b.Product, b.Version)
		}
	}
	if s.BrokerCount != nil {
		for _, c := range comparisons(s.BrokerCount) {
			emit.gauge("broker_counted_messages", float64(c.Count), c.name)
			emit.gauge("broker_count_difference", float64(c.Differs()), c.name)
		}
	}
}

func (e emitter) extremes(messages string, lowest, highest *stats.Lowest) {
	if lowest.Known() {
		e.gauge("run_rate", lowest.PerSecond, messages, "minimum")
	}
	if highest.Known() {
		e.gauge("run_rate", highest.PerSecond, messages, "maximum")
	}
}

func collectFindings(s *stats.Summary, emit emitter) {
	counts := map[string]uint64{}
	for _, f := range s.Findings {
		counts[f.Kind] += f.Count
	}
	for kind, n := range counts {
		emit.gauge("run_findings", float64(n), kind)
	}
}

func collectThresholds(s *stats.Summary, emit emitter) {
	type name struct{ threshold, step string }
	kept := map[name]bool{}
	for i := range s.Thresholds {
		o := &s.Thresholds[i]
		at := name{safetext.Line(o.Threshold.String()), stepLabel(o.Step)}
		if before, ok := kept[at]; ok {
			kept[at] = before && o.Kept
		} else if len(kept) < maxThresholds {
			kept[at] = o.Kept
		}
	}
	for at, yes := range kept {
		emit.gauge("threshold_kept", oneIf(yes), at.threshold, at.step)
	}
}
