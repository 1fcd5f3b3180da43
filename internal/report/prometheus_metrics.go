package report

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// descriptions are the names, helps and labels of all metrics of ours.
type descriptions struct {
	build, step, start, phase, workers, inFlight       *prometheus.Desc
	sent, blocked, completed, failed, unsent, late     *prometheus.Desc
	waits                                              *prometheus.Desc
	received, redelivered, foreign, unstamped          *prometheus.Desc
	negative, negativeAges, outOfRange, protocol       *prometheus.Desc
	delay, ack, response, transfer, b2c, s2c, commit   *prometheus.Desc
	commitsFailed, lateness, delayed, early            *prometheus.Desc
	consumerFailed                                     *prometheus.Desc
	group                                              groupDescriptions
	cpu, cores, gcPauses, gcPauseMax, success, missing *prometheus.Desc
	verified, depth                                    *prometheus.Desc
}

func describe(version string) descriptions {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("perfmq_"+name, help, labels, nil)
	}
	return descriptions{
		build: prometheus.NewDesc("perfmq_build_info", "The program; always 1.", nil,
			prometheus.Labels{"version": version, "goversion": runtime.Version()}),
		step:     desc("step_info", "The step that the run is in, if it has several; always 1.", "step"),
		start:    desc("run_start_time_seconds", "When the load began, in seconds since the Unix epoch."),
		phase:    desc("phase", "1 for the phase that the run is in, 0 for the others.", "phase"),
		workers:  desc("workers", "Open producers and consumers."),
		inFlight: desc("in_flight", "Messages that were sent and are neither acknowledged nor failed."),

		sent:    desc("messages_sent_total", "Messages handed to the protocol's driver."),
		blocked: desc("messages_blocked_total", "Waits of a producer because max-pending messages were in flight, or for credit."),
		waits: desc("send_waits_total", "Waits of a producer, by what for: slot (max-pending messages were in flight), credit (the broker's "+
			"leave to send) and socket (the network took no more).", "for"),
		completed: desc("messages_completed_total", "Messages that the broker acknowledged."),
		failed: desc("sends_failed_total", "Messages that were sent but not acknowledged, by how that ended and why.",
			"state", "class"),
		unsent: desc("sends_unsent_total", "Part of the failed ones that the driver could not send."),
		late:   desc("sends_late_total", "Sends that left late although neither broker nor max-pending held them up."),

		received:     desc("messages_received_total", "Messages delivered to consumers."),
		redelivered:  desc("messages_redelivered_total", "Received messages that the broker marked as delivered before."),
		foreign:      desc("messages_foreign_total", "Delivered messages of other runs or tools, not counted as received."),
		unstamped:    desc("messages_unstamped_total", "Received messages without a usable time property."),
		negative:     desc("transfers_negative_total", "Messages received before they were sent, as clocks differ; transfer time zero."),
		negativeAges: desc("ages_negative_total", "Born or stored to consumer times below zero, as clocks differ; counted as zero."),
		protocol:     desc("protocol_counter_total", "What only the protocol's driver counts.", "name"),
		outOfRange:   desc("latencies_out_of_range_total", "Latencies above "+stats.MaxLatency.String()+", counted as that."),

		delay:    desc("send_delay_seconds", "From the intended to the actual send.", "phase"),
		ack:      desc("send_ack_seconds", "From the actual send to its acknowledgement.", "phase"),
		response: desc("response_seconds", "From the intended send to its acknowledgement.", "phase"),
		transfer: desc("transfer_seconds", "From the actual send to the delivery to a consumer.", "phase"),
		b2c:      desc("born_to_consumer_seconds", "From when the protocol says that the message was made to its delivery.", "phase"),
		s2c:      desc("stored_to_consumer_seconds", "From when the broker says that it stored the message to its delivery.", "phase"),

		commit:        desc("commit_seconds", "From asking the broker to commit a transaction to its confirmation.", "phase"),
		commitsFailed: desc("commits_failed_total", "Transactions that the broker was asked to commit and did not confirm."),

		lateness: desc("lateness_seconds", "From the end of the delay that a producer has asked for to the delivery.", "phase"),
		delayed:  desc("messages_delayed_total", "Received messages whose delivery a producer has asked to delay."),
		early:    desc("messages_early_total", "Part of the delayed ones that came before their delay was over."),

		consumerFailed: desc("consumer_failed_total", "Messages that consumers gave back on purpose (release: not received, to come again) "+
			"or rejected on purpose (reject: received).", "as"),

		group: describeGroups(desc),

		cpu:        desc("tester_cpu_seconds_total", "Processor time used by this process since the load began."),
		cores:      desc("tester_cores", "Processors that this process may use at once."),
		gcPauses:   desc("tester_gc_pauses_total", "Stops of this process for garbage collection since the load began."),
		gcPauseMax: desc("tester_gc_pause_max_seconds", "The longest of them."),

		verified: desc("verified_messages_total", "What the verification has found. Received, duplicates, redelivered, out_of_order, damaged "+
			"and foreign are known during the run, the others when it has ended.", "finding"),

		depth: desc("destination_depth", "Messages that the broker has at a destination, as it told last.", "destination"),

		success: desc("run_success", "1 if all that was sent was accepted and received; known when the run has ended."),
		missing: desc("messages_missing", "Messages acknowledged but not received when the run had ended, if known."),
	}
}

// runInfoName is the name of the metric that has all labels.
const runInfoName = "perfmq_run_info"

// runInfo says what is measured. It has labels for the name of the scenario, and for labels of the user's, only if there are such.
func runInfo(run *stats.Run, own []*dto.LabelPair) prometheus.Metric {
	labels := []string{"protocol", "consumer_protocol", "client", "consumer_client", "destinations"}
	values := []string{
		run.Protocol, run.ConsumerProtocol, run.Client, run.ConsumerClient, safetext.Line(strings.Join(run.Destinations, ",")),
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

// seriesLabels is how many bytes the user's labels of a series take at most, names and values. There are hundreds of series.
const seriesLabels = 256

// userLabels returns the labels of the user's. Those that every series has are the first ones, by name, that are short enough.
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

// labeled gathers what another gatherer does, with more labels on every series that does not have them.
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

// labelName returns the name of a label of the user's as one of a metric (data model of Prometheus: [a-zA-Z_][a-zA-Z0-9_]*). The
// text in front of it keeps it apart from labels of ours.
func labelName(name string) string {
	name = name[:min(len(name), maxLabelName)]
	return "label_" + strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// Describe sends nothing: which metrics there are depends on the run.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the figures as of the last snapshot.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	emit := emitter(metrics)
	emit.gauge(c.d.build, 1)
	if !c.started {
		return
	}
	metrics <- c.info
	if c.step != "" {
		emit.gauge(c.d.step, 1, safetext.Line(c.step))
	}
	emit.gauge(c.d.start, float64(c.run.Start.UnixMilli())/1000)
	for _, phase := range []string{stats.Warmup.String(), stats.Measure.String(), stats.Drain.String(), ended} {
		emit.gauge(c.d.phase, oneIf(phase == c.phase), phase)
	}
	emit.gauge(c.d.workers, float64(c.workers))
	if c.run.Producing {
		c.collectProducing(emit)
	}
	if c.run.Consuming {
		c.collectConsuming(emit)
	}
	emit.counter(c.d.outOfRange, c.total.OutOfRange)
	if c.run.Transacted {
		emit.counter(c.d.commitsFailed, c.total.CommitsFailed)
	}
	for _, own := range c.protocol {
		emit.counter(c.d.protocol, own.Value, safetext.Line(own.Name))
	}
	c.groups.collect(&c.d.group, emit)
	for key, b := range c.histograms {
		// A series without new values has no quantiles, so that of the warm-up is not there in the measurement.
		if b.count > 0 && (key.phase == stats.Measure.String() || c.phase != stats.Measure.String()) {
			emit <- b.metric(key)
		}
	}
	emit <- prometheus.MustNewConstMetric(c.d.cpu, prometheus.CounterValue, c.cpu.Seconds())
	emit.gauge(c.d.cores, float64(c.cores))
	emit.counter(c.d.gcPauses, c.gcPauses)
	emit.gauge(c.d.gcPauseMax, c.gcPauseMax.Seconds())
	c.collectVerified(emit)
	c.collectDepths(emit)
	c.collectSide(emit)
	if c.final != nil {
		emit.gauge(c.d.success, oneIf(c.final.Success))
		if c.final.ExpectedKnown {
			emit.gauge(c.d.missing, float64(c.final.Missing))
		}
	}
}

func (c *collector) collectProducing(emit emitter) {
	emit.counter(c.d.sent, c.total.Sent)
	emit.counter(c.d.blocked, c.total.Blocked)
	emit.counter(c.d.waits, c.total.Blocked-c.total.NoLeave, "slot")
	emit.counter(c.d.waits, c.total.NoLeave, "credit")
	emit.counter(c.d.waits, c.total.SocketWaits, "socket")
	emit.counter(c.d.completed, c.total.Completed)
	emit.counter(c.d.unsent, c.total.Unsent)
	emit.counter(c.d.late, c.total.LateSends)
	emit.gauge(c.d.inFlight, float64(c.inFlight))
	for _, f := range failuresOf(&c.total) {
		// All classes are there from the beginning, so that rate() sees the first failure.
		for class := range driver.NumClasses {
			if class != driver.ClassNone || f.classes[class] > 0 {
				emit.counter(c.d.failed, f.classes[class], f.name, class.String())
			}
		}
	}
}

func (c *collector) collectVerified(emit emitter) {
	finding := func(name string, n uint64) { emit.counter(c.d.verified, n, name) }
	var p verify.Progress
	switch {
	case c.final != nil && c.final.Verification != nil:
		t := &c.final.Verification.Total
		p = verify.Progress{
			Received: t.Received, Duplicates: t.Duplicates, Redelivered: t.Redelivered, Disordered: t.Disordered,
			Damaged: t.Damaged, Foreign: t.Foreign,
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
	finding("out_of_order", p.Disordered)
	finding("damaged", p.Damaged)
	finding("foreign", p.Foreign)
}

func (c *collector) collectConsuming(emit emitter) {
	emit.counter(c.d.received, c.total.Received)
	emit.counter(c.d.redelivered, c.total.Redelivered)
	emit.counter(c.d.foreign, c.total.Foreign)
	emit.counter(c.d.unstamped, c.total.Unstamped)
	emit.counter(c.d.negative, c.total.NegativeTransfers)
	emit.counter(c.d.negativeAges, c.total.NegativeAges)
	if c.total.Delayed > 0 {
		emit.counter(c.d.delayed, c.total.Delayed)
		emit.counter(c.d.early, c.total.Early)
	}
	if c.total.ConsumerReleased+c.total.ConsumerRejected > 0 {
		emit.counter(c.d.consumerFailed, c.total.ConsumerReleased, driver.Release.String())
		emit.counter(c.d.consumerFailed, c.total.ConsumerRejected, driver.Reject.String())
	}
}

// emitter sends metrics to a scrape. Its Must functions panic only if labels and description do not fit, which the tests
// would show.
type emitter chan<- prometheus.Metric

func (e emitter) counter(d *prometheus.Desc, n uint64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func (e emitter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// buckets is a histogram as Prometheus has it, in microseconds.
type buckets struct {
	bounds [22]int64 // upper, inclusive, ascending: 10 us to 100 s
	counts [22]uint64
	count  uint64
	sum    int64
}

func newBuckets() *buckets {
	b := &buckets{}
	for i := range b.bounds {
		decade := int64(10)
		for range i / 3 {
			decade *= 10
		}
		b.bounds[i] = decade * [...]int64{10, 25, 50}[i%3] / 10
	}
	return b
}

// add adds all values of l. Each counts as the upper end of its place in the histogram, so a bucket never holds more
// than belongs there.
func (b *buckets) add(l *stats.Latency) {
	l.Bars(func(upTo, count int64) {
		for i, bound := range b.bounds {
			if upTo <= bound {
				b.counts[i] += uint64(count) //nolint:gosec // counts are not negative
				break
			}
		}
	})
	b.count += uint64(l.Count()) //nolint:gosec // counts are not negative
	b.sum += l.Sum()
}

func (b *buckets) metric(key histogramKey) prometheus.Metric {
	cumulative := make(map[float64]uint64, len(b.bounds)) // the metric keeps it
	var sum uint64
	for i, bound := range b.bounds {
		sum += b.counts[i]
		cumulative[float64(bound)/1e6] = sum
	}
	labels := []string{key.phase}
	if key.group != "" {
		labels = append(labels, key.group)
	}
	return prometheus.MustNewConstHistogram(key.desc, b.count, float64(b.sum)/1e6, cumulative, labels...)
}
