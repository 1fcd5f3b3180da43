package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
)

// endDescriptions describe the metrics that exist only after the end of the run.
type endDescriptions struct {
	success, missing, expected, end, rate, missed *prometheus.Desc
	limit, findings, problems, warnings           *prometheus.Desc
	threshold, broker, counted, differs           *prometheus.Desc
}

func describeEnd(d *describer) endDescriptions {
	return endDescriptions{
		success:  d.of("run_success", "1 if all that was sent was accepted and received; known when the run has ended."),
		missing:  d.of("messages_missing", "Messages acknowledged but not received when the run had ended, if known."),
		expected: d.of("messages_expected", "Deliveries that the acknowledged messages ought to have caused, if known."),
		end:      d.of("run_end_time_seconds", "When the run ended, drain included, in seconds since the Unix epoch."),
		rate: d.of("run_rate", "Messages per second in the measured part: average, and the lowest and highest of a full "+
			"second.",
			"messages", "value"),
		missed: d.of("run_rate_missed_ratio", "Share of the messages due that were not sent, from 0 to 1; only with a "+
			"rate."),
		limit: d.of("run_limit_info", "What bounded the rate, as the summary's line limit; always 1.", "limit"),
		findings: d.of("run_findings", "What the figures say beyond single messages, by kind: how often, or of how many "+
			"messages.", "kind"),
		problems: d.of("run_problems", "Problems that make the run a failure, as the summary lists them."),
		warnings: d.of("run_warnings", "Warnings about the trust that the figures deserve, as the summary lists them."),
		threshold: d.of("threshold_kept", "1 if a threshold was kept, 0 if it was not; of a step if it is about one.",
			"threshold", "step"),
		broker: d.of("broker_info", "What a broker said of itself; always 1.", "broker", "side", "protocol", "product",
			"version"),
		counted: d.of("broker_counted_messages", "Messages that the brokers themselves have counted as added, and as "+
			"acknowledged, by the run's "+
			"destinations.", "count"),
		differs: d.of("broker_count_difference", "By how many messages these counts are above or below what the run "+
			"allows; 0 if they agree.", "count"),
	}
}

// Maximum numbers of series that depend on the scenario or the brokers.
const (
	maxThresholds = 100
	maxBrokers    = 20
)

// collectEnd emits the figures of the summary.
func collectEnd(d *endDescriptions, run *stats.Run, s *stats.Summary, emit emitter) {
	emit.gauge(d.success, oneIf(s.Success))
	if s.ExpectedKnown {
		emit.gauge(d.missing, float64(s.Missing))
		emit.gauge(d.expected, float64(s.Expected))
	}
	emit.gauge(d.end, float64(s.End.UnixMilli())/1000)
	a := &s.Average
	if run.Producing {
		emit.gauge(d.rate, a.PerSecond(a.Sent), "sent", "average")
		emit.gauge(d.rate, a.PerSecond(a.Completed), "completed", "average")
		emit.extremes(d, "completed", &s.Minimum.Completed, &s.Maximum.Completed)
	}
	if run.Consuming {
		emit.gauge(d.rate, a.PerSecond(a.Received), "received", "average")
		emit.extremes(d, "received", &s.Minimum.Received, &s.Maximum.Received)
	}
	if s.Offered.Known() {
		emit.gauge(d.missed, s.Offered.Missed())
	}
	if s.Limit.Kind != "" {
		emit.gauge(d.limit, 1, string(s.Limit.Kind))
	}
	emit.gauge(d.problems, float64(len(s.Problems)))
	emit.gauge(d.warnings, float64(len(s.Warnings)))
	collectFindings(d, s, emit)
	collectThresholds(d, s, emit)
	seen := map[result.Broker]bool{}
	for _, b := range s.Brokers {
		b = result.Broker{
			Name: safetext.Line(b.Name), Side: b.Side, Protocol: b.Protocol, Product: safetext.Line(b.Product),
			Version: safetext.Line(b.Version),
		}
		if !seen[b] && len(seen) < maxBrokers {
			seen[b] = true
			emit.gauge(d.broker, 1, b.Name, b.Side, b.Protocol, b.Product, b.Version)
		}
	}
	if s.BrokerCount != nil {
		for _, c := range comparisons(s.BrokerCount) {
			emit.gauge(d.counted, float64(c.Count), c.name)
			emit.gauge(d.differs, float64(c.Differs()), c.name)
		}
	}
}

func (e emitter) extremes(d *endDescriptions, messages string, lowest, highest *stats.Lowest) {
	if lowest.Known() {
		e.gauge(d.rate, lowest.PerSecond, messages, "minimum")
	}
	if highest.Known() {
		e.gauge(d.rate, highest.PerSecond, messages, "maximum")
	}
}

func collectFindings(d *endDescriptions, s *stats.Summary, emit emitter) {
	counts := map[string]uint64{}
	for _, f := range Observations(s) {
		counts[f.Kind] += f.Count
	}
	for kind, n := range counts {
		emit.gauge(d.findings, float64(n), kind)
	}
}

func collectThresholds(d *endDescriptions, s *stats.Summary, emit emitter) {
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
		emit.gauge(d.threshold, oneIf(yes), at.threshold, at.step)
	}
}
