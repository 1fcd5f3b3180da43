package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
)

// runInfoName is the metric with all labels of the user's.
const runInfoName = "perfmq_run_info"

// runInfo describes the run. It has a label for the scenario only in a run of a scenario.
func runInfo(run *stats.Run, own []*dto.LabelPair) prometheus.Metric {
	labels := []string{"protocol", "consumer_protocol", "client", "consumer_client", "destinations"}
	values := []string{
		run.Protocol, run.ConsumerProtocol, run.Client, run.ConsumerClient,
		safetext.Line(words.First(run.Destinations, namedDestinations, ",")),
	}
	if run.Scenario != "" {
		labels, values = append(labels, "scenario"), append(values, safetext.Line(run.Scenario))
	}
	for _, pair := range own {
		labels, values = append(labels, pair.GetName()), append(values, pair.GetValue())
	}
	desc := prometheus.NewDesc(runInfoName, "What is measured; always 1.", labels, nil)
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, values...)
}

// namedDestinations is the maximum number of destinations in a label, and of those with series of their own.
const namedDestinations = 20

// seriesLabels bounds the user's labels on every series, names and values together, in bytes: a run has hundreds of
// series.
const seriesLabels = 256

// userLabels returns all labels of the user's, and those for every series: in the order of their names, each that still
// fits into seriesLabels.
func userLabels(labels map[string]string) (all, series []*dto.LabelPair) {
	seen := map[string]bool{}
	room := seriesLabels
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		label := labelName(name)
		for n := 2; seen[label]; n++ { // a-b and a_b
			label = fmt.Sprintf("%s_%d", labelName(name), n)
		}
		seen[label] = true
		value := safetext.Line(labels[name])
		pair := &dto.LabelPair{Name: &label, Value: &value}
		all = append(all, pair)
		if size := len(label) + len(value); size <= room {
			room -= size
			series = append(series, pair)
		}
	}
	return all, series
}

// labeled adds labels to every series of g except perfmq_run_info, which has them already.
func labeled(g prometheus.Gatherer, more func() []*dto.LabelPair) prometheus.GathererFunc {
	return func() ([]*dto.MetricFamily, error) {
		families, err := g.Gather()
		pairs := more()
		if len(pairs) == 0 {
			return families, err
		}
		for _, f := range families {
			if f.GetName() == runInfoName {
				continue
			}
			for _, m := range f.GetMetric() {
				m.Label = slices.Concat(m.GetLabel(), pairs)
				slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
			}
		}
		return families, err
	}
}

// maxLabelName bounds the names of labels, in bytes.
const maxLabelName = 128

// labelName returns the name of a user's label in the syntax of Prometheus (data model: [a-zA-Z_][a-zA-Z0-9_]*). The
// prefix keeps it apart from perfmq's own labels.
func labelName(name string) string {
	name = name[:min(len(name), maxLabelName)]
	return "label_" + strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// Describe sends nothing, because the metrics depend on the run.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the figures as of the last snapshot.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	emit := emitter{metrics, c.d}
	emit.gauge("build_info", 1)
	if !c.started {
		return
	}
	metrics <- c.info
	if c.step != "" {
		emit.gauge("step_info", 1, c.step)
	}
	emit.gauge("run_start_time_seconds", float64(c.run.Start.UnixMilli())/1000)
	for _, phase := range []string{stats.Warmup.String(), stats.Measure.String(), stats.Drain.String(), ended} {
		emit.gauge("phase", oneIf(phase == c.phase), phase)
	}
	emit.gauge("workers", float64(c.workers))
	if c.run.Producing {
		emit.gauge("in_flight", float64(c.inFlight))
		c.collectStalls(stats.SendSide, emit)
	}
	if c.run.Consuming {
		c.collectStalls(stats.ReceiveSide, emit)
	}
	c.collectParts(emit)
	c.collectOutages(emit)
	c.collectHosts(emit)
	for i := range c.steps {
		if s := &c.steps[i]; c.shown(i) {
			c.collectCounters(emit, &s.total, s.labels)
		}
	}
	for _, own := range c.protocol {
		emit.counter("protocol_events_total", own.Value, safetext.Line(own.Name))
	}
	c.groups.collect(emit)
	for key, b := range c.histograms {
		// During the measurement the series of the warm-up are omitted: without new values their quantiles would be NaN.
		if b.count > 0 && (key.phase == stats.Measure.String() || c.phase != stats.Measure.String()) {
			metrics <- b.metric(c.d[key.metric], c.labelsOf(key)...)
		}
	}
	c.tester.collect(emit)
	c.collectVerified(emit)
	c.collectDepths(emit)
	c.collectSide(emit)
	if c.final != nil {
		collectEnd(&c.run, c.final, emit)
	}
}

// labelsOf returns the values of the labels of a histogram.
func (c *collector) labelsOf(key histogramKey) []string {
	if key.group != "" {
		return []string{key.phase, key.group}
	}
	return slices.Concat([]string{key.phase}, c.steps[key.step].labels)
}

// collectCounters emits the counters of messages of a step, or of the run if it has one step.
func (c *collector) collectCounters(emit emitter, t *stats.Counters, step []string) {
	with := func(labels ...string) []string { return append(labels, step...) }
	for _, k := range result.CounterTable() {
		if k.Metric != "" && c.counts(&k) {
			emit.counter(k.Metric, t[k.Counter], step...)
		}
	}
	if c.run.Producing {
		emit.counter("send_waits_total", t[result.Blocked]-t[result.NoLeave], with("slot")...)
		emit.counter("send_waits_total", t[result.NoLeave], with("credit")...)
		emit.counter("send_waits_total", t[result.SocketWaits], with("socket")...)
		for _, f := range failuresOf(t) {
			// All classes exist from the beginning, so that rate() sees the first failure.
			for class := range driver.NumClasses {
				if class != driver.ClassNone || f.classes[class] > 0 {
					emit.counter("sends_failed_total", f.classes[class], with(f.name, class.String())...)
				}
			}
		}
	}
	if c.total[result.ConsumerReleased]+c.total[result.ConsumerRejected] > 0 {
		emit.counter("consumer_failed_total", t[result.ConsumerReleased], with(driver.Release.String())...)
		emit.counter("consumer_failed_total", t[result.ConsumerRejected], with(driver.Reject.String())...)
	}
}

// counts reports whether the run has a counter.
func (c *collector) counts(k *result.CounterInfo) bool {
	switch k.Counter {
	case result.Commits, result.CommitsFailed:
		return c.run.Transacted
	case result.Delayed, result.Early:
		return c.total[result.Delayed] > 0
	default:
		return k.Role == result.AnyRole || k.Role == result.ProducerRole && c.run.Producing ||
			k.Role == result.ConsumerRole && c.run.Consuming
	}
}

func (c *collector) collectVerified(emit emitter) {
	finding := func(name string, n uint64) { emit.counter("verified_messages_total", n, name) }
	var p result.Progress
	switch {
	case c.final != nil && c.final.Verification != nil:
		t := &c.final.Verification.Total
		p = result.Progress{
			Received: t.Received, Duplicates: t.Duplicates, Redelivered: t.Redelivered, AfterOutage: t.AfterOutage,
			Resent: t.Resent, Disordered: t.Disordered, Damaged: t.Damaged, Foreign: t.Foreign,
		}
		if c.final.Verification.Known {
			finding("expected", t.Expected)
			finding("lost", t.Lost)
			finding("left", t.Left)
			finding("unconfirmed_arrived", t.UnconfirmedArrived)
			finding("unconfirmed_missing", t.UnconfirmedMissing)
			finding("refused_arrived", t.RefusedArrived)
			finding("rolled_back_arrived", t.WithheldArrived)
		}
	case c.verified != nil:
		p = *c.verified
	default:
		return
	}
	finding("received", p.Received)
	finding("duplicates", p.Duplicates)
	finding("redelivered", p.Redelivered)
	finding("duplicates_after_outage", p.AfterOutage)
	finding("duplicates_resent", p.Resent)
	finding("out_of_order", p.Disordered)
	finding("damaged", p.Damaged)
	finding("foreign", p.Foreign)
}

// emitter sends metrics to a scrape, by their names without "perfmq_". Its Must functions panic only if labels do not
// match the description, a mistake that the tests find.
type emitter struct {
	to chan<- prometheus.Metric
	d  descriptions
}

func (e emitter) counter(name string, n uint64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(e.d[name], prometheus.CounterValue, float64(n), labels...)
}

func (e emitter) seconds(name string, sum time.Duration, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(e.d[name], prometheus.CounterValue, sum.Seconds(), labels...)
}

func (e emitter) gauge(name string, v float64, labels ...string) {
	e.to <- prometheus.MustNewConstMetric(e.d[name], prometheus.GaugeValue, v, labels...)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
