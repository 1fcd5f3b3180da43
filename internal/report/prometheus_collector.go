package report

import (
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// namedSeries is the maximum number of groups, brokers and destinations with series of their own; others have
// none.
const namedSeries = 20

// maxLabel is the maximum length of the label of a step and of the user's labels, in bytes.
const maxLabel = 64

// ended is the phase after the summary, in addition to the values of stats.Phase.
const ended = "ended"

// collector holds the figures of the last snapshot for scrapes. It is safe for concurrent use.
type collector struct {
	version      string
	descriptions map[string]*prometheus.Desc // by the names of metrics without "perfmq_"

	mu         sync.Mutex
	run        stats.Run
	started    bool
	last       stats.Snapshot // with the totals of final, if that is known
	final      *stats.Summary
	tester     stats.Health // of all intervals so far
	histograms map[histogramKey]*result.Latency
}

type histogramKey struct {
	metric string // its name without "perfmq_"
	phase  stats.Phase
	group  string // empty for all groups
}

func newCollector(version string) *collector {
	return &collector{
		version: version, descriptions: describe(), histograms: map[histogramKey]*result.Latency{},
	}
}

func (c *collector) start(run stats.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run, c.started = run, true
	c.last.Groups = make([]stats.GroupInterval, len(run.Groups))
	if run.Several() {
		c.last.Step = run.Steps[0]
	}
	if run.Warmup <= 0 {
		c.last.Phase = stats.Measure
	}
}

// ended reports whether the figures are final.
func (c *collector) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.final != nil
}

func (c *collector) interval(s *stats.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = *s
	c.tester.Add(&s.Health)
	phase := min(s.Phase, stats.Measure)
	for k, info := range result.Kinds() {
		c.observe(histogramKey{info.Metric, phase, ""}, s.Latencies[k])
		c.observe(histogramKey{info.Metric, stats.Warmup, ""}, s.Leftover[k])
		if info.Always {
			for i := range c.groups() {
				g := &s.Groups[i]
				c.observe(histogramKey{groupPrefix + info.Metric, phase, safetext.Line(g.Name)}, g.Latencies[k])
			}
		}
	}
}

// groups returns the number of groups with series of their own; 0 if there is only one.
func (c *collector) groups() int {
	if len(c.run.Groups) < 2 {
		return 0
	}
	return min(len(c.run.Groups), len(c.last.Groups), namedSeries)
}

// observe adds latencies.
func (c *collector) observe(key histogramKey, l *result.Latency) {
	if l == nil || l.Count == 0 {
		return
	}
	if c.histograms[key] == nil {
		c.histograms[key] = result.NewLatency()
	}
	c.histograms[key].Merge(l)
}

func (c *collector) summary(s *stats.Summary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.final = s
	n := &c.last
	n.Total, n.Protocol, n.Depths = s.Total, s.Protocol, finalDepths(s.BrokerCount)
	n.InFlight, n.Workers = 0, 0
	if n.Outages != nil { // no worker waits for a connection any more
		p := *n.Outages
		p.Since, p.Down = 0, 0
		n.Outages = &p
	}
	n.Groups = slices.Clone(n.Groups)
	for i := range min(len(n.Groups), len(s.Groups)) {
		n.Groups[i].Total = s.Groups[i].Total
	}
}

// Describe sends nothing, because the metrics depend on the run.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the figures as of the last snapshot.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := emitter{metrics, c.descriptions, map[string]bool{}}
	e.set("build_info", 1, c.version, runtime.Version())
	if !c.started {
		return
	}
	c.collectRun(e)
	c.collectCounters(e)
	c.collectStalls(e)
	c.collectOutages(e)
	for i := range c.groups() {
		collectGroup(e, &c.run.Groups[i], &c.last.Groups[i])
	}
	for key, l := range c.histograms {
		// During the measurement the series of the warm-up are omitted: without new values their quantiles would be NaN.
		if key.phase == stats.Measure || c.last.Phase != stats.Measure || c.final != nil {
			labels := []string{key.phase.String(), key.group}
			if key.group == "" {
				labels = labels[:1]
			}
			metrics <- histogramMetric(c.descriptions[key.metric], l, labels...)
		}
	}
	c.collectTester(e)
	c.collectVerified(e)
	c.collectDepths(e)
	if c.final != nil {
		collectEnd(&c.run, c.final, e)
	}
}

func (c *collector) collectRun(e emitter) {
	run, n := &c.run, &c.last
	e.set("run_info", 1, run.Protocol, run.ConsumerProtocol, run.Client, run.ConsumerClient,
		words.First(run.Destinations, namedSeries, ","), run.Scenario)
	now := n.Phase.String()
	if c.final != nil {
		now = ended
	} else if run.Several() {
		e.set("step_info", 1, shortLabel(n.Step))
	}
	e.set("run_start_time_seconds", float64(run.Start.UnixMilli())/1000)
	for _, phase := range []string{stats.Warmup.String(), stats.Measure.String(), stats.Drain.String(), ended} {
		e.set("phase", oneIf(phase == now), phase)
	}
	e.set("workers", float64(n.Workers))
	if run.Producing {
		e.count("in_flight", n.InFlight)
	}
	for _, own := range n.Protocol {
		e.count("protocol_events_total", own.Value, own.Name)
	}
}

// shortLabel returns a label of at most maxLabel bytes.
func shortLabel(text string) string {
	label := safetext.Line(text)
	return strings.ToValidUTF8(label[:min(len(label), maxLabel)], "")
}

func (c *collector) collectCounters(e emitter) {
	t := &c.last.Total
	has := result.ProducerRole.If(c.run.Producing) | result.ConsumerRole.If(c.run.Consuming) |
		result.Transacted.If(c.run.Transacted) | result.Delaying.If(t[result.Delayed] > 0)
	for _, k := range result.CounterTable() {
		if k.Metric != "" && k.Role&^has == 0 {
			e.count(k.Metric, t[k.Counter])
		}
	}
	if c.run.Producing {
		e.count("send_waits_total", t[result.Blocked]-t[result.NoLeave], "slot")
		e.count("send_waits_total", t[result.NoLeave], "credit")
		e.count("send_waits_total", t[result.SocketWaits], "socket")
		for _, f := range failuresOf(t) {
			// All classes exist from the beginning, so that rate() sees the first failure.
			for class := range driver.NumClasses {
				if class != driver.ClassNone || f.classes[class] > 0 {
					e.count("sends_failed_total", f.classes[class], f.name, class.String())
				}
			}
		}
	}
	if t[result.ConsumerReleased]+t[result.ConsumerRejected] > 0 {
		e.count("consumer_failed_total", t[result.ConsumerReleased], driver.Release.String())
		e.count("consumer_failed_total", t[result.ConsumerRejected], driver.Reject.String())
	}
}

// collectStalls emits the stalls of the sides, and the stalls of several groups and brokers.
func (c *collector) collectStalls(e emitter) {
	named := 0
	whole := map[string]stats.PartStalls{}
	for _, p := range c.last.Stalls {
		switch {
		case p.Whole:
			whole[p.Side] = p
			continue
		case p.Group != "" && len(c.run.Groups) < 2 || named == 4*namedSeries:
			continue
		}
		named++
		for _, phase := range []stats.Phase{stats.Measure, stats.Warmup} {
			e.count("group_stalls_total", p.Count[phase], p.Group, p.Broker, p.Side, phase.String())
			e.set("group_stall_seconds_total", p.Length[phase].Seconds(), p.Group, p.Broker, p.Side, phase.String())
		}
	}
	for side, works := range map[string]bool{stats.SendSide: c.run.Producing, stats.ReceiveSide: c.run.Consuming} {
		for _, phase := range []stats.Phase{stats.Measure, stats.Warmup} {
			if works {
				e.count("stalls_total", whole[side].Count[phase], side, phase.String())
				e.set("stall_seconds_total", whole[side].Length[phase].Seconds(), side, phase.String())
			}
		}
	}
}

// collectOutages emits the figures of outages; none without --reconnect.
func (c *collector) collectOutages(e emitter) {
	p := c.last.Outages
	if p == nil {
		return
	}
	e.set("outages_total", float64(p.Count))
	e.set("outage_seconds_total", p.Length.Seconds())
	e.set("outage_age_seconds", p.Since.Seconds())
	e.set("workers_disconnected", float64(p.Down))
	e.count("reconnects_total", p.Reconnects)
	e.count("messages_in_doubt_total", p.InDoubt)
	for class := range driver.NumClasses { // the most frequent class exists from the beginning, for rate()
		if n := p.Attempts[class]; n > 0 || class == driver.ClassConnect {
			e.count("reconnect_failures_total", n, class.String())
		}
	}
}

func collectGroup(e emitter, g *stats.RunGroup, n *stats.GroupInterval) {
	t := &n.Total
	if g.Sends {
		e.set("group_info", 1, g.Name, "producer", g.Protocol, g.Client)
		e.count("group_messages_sent_total", t[result.Sent], g.Name)
		e.count("group_messages_completed_total", t[result.Completed], g.Name)
		e.count("group_sends_failed_total", t[result.Sent]-t.InFlight()-t[result.Completed], g.Name)
		e.count("group_in_flight", t.InFlight(), g.Name)
	}
	if g.Receives {
		e.set("group_info", 1, g.Name, "consumer", g.ConsumerProtocol, g.ConsumerClient)
		e.count("group_messages_received_total", t[result.Received], g.Name)
		e.count("group_messages_redelivered_total", t[result.Redelivered], g.Name)
	}
}

func (c *collector) collectTester(e emitter) {
	h := &c.tester
	e.set("tester_cpu_seconds_total", h.CPU.Seconds())
	e.set("tester_cores", float64(h.Cores))
	e.set("tester_gc_pause_max_seconds", h.GCPauseMax.Seconds())
	if c.last.Health.Memory > 0 {
		e.count("tester_memory_bytes", c.last.Health.Memory)
	}
	if h.DelayKnown {
		e.set("tester_processor_wait_seconds_total", h.Delay.Seconds())
	}
	e.count("tester_pauses_total", h.Pauses)
	e.set("tester_pause_max_seconds", h.PauseMax.Seconds())
	e.set("tester_clock_step_seconds_total", h.ClockForward.Seconds(), "forward")
	e.set("tester_clock_step_seconds_total", h.ClockBackward.Seconds(), "backward")
	if h.MachineAll > 0 {
		e.set("machine_cpu_busy_seconds_total", h.Machine.Seconds())
		e.set("machine_cpu_seconds_total", h.MachineAll.Seconds())
	}
}

func (c *collector) collectVerified(e emitter) {
	finding := func(name string, n uint64) { e.count("verified_messages_total", n, name) }
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
	case c.last.Verified != nil:
		p = *c.last.Verified
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

// collectDepths emits the numbers of messages at the destinations.
func (c *collector) collectDepths(e emitter) {
	for _, d := range c.last.Depths[:min(len(c.last.Depths), namedSeries)] {
		e.count("destination_depth", d.Messages, d.Destination)
	}
	if n := depthOf(c.last.Depths); n != nil {
		e.count("backlog_messages", *n)
	}
}

// collectEnd emits the figures of the summary.
func collectEnd(run *stats.Run, s *stats.Summary, e emitter) {
	e.set("run_success", oneIf(s.Success))
	if s.ExpectedKnown {
		e.count("messages_missing", s.Missing)
		e.count("messages_expected", s.Expected)
	}
	e.set("run_end_time_seconds", float64(s.End.UnixMilli())/1000)
	metrics := s.Result().Metrics()
	for _, messages := range []string{"sent", "completed", "received"} {
		for of, value := range map[string]string{".avg": "average", ".min": "minimum", ".max": "maximum"} {
			if v, known := metrics[messages+of]; known {
				e.set("run_rate", v, messages, value)
			}
		}
	}
	if s.Offered.Known() {
		e.set("run_rate_missed_ratio", s.Offered.Missed())
	}
	if s.Limit.Kind != "" {
		e.set("run_limit_info", 1, s.Limit.Kind)
	}
	e.set("run_problems", float64(len(s.Problems())))
	e.set("run_warnings", float64(len(s.Warnings())))
	findings := map[string]uint64{}
	for _, f := range s.Findings {
		findings[f.Kind] += f.Count
	}
	for kind, n := range findings {
		e.count("run_findings", n, kind)
	}
	named := 0
	for _, kept := range []bool{false, true} { // those that fail have a series, however many there are
		for i := range s.Thresholds {
			if o := &s.Thresholds[i]; o.Kept == kept && named < 5*namedSeries &&
				e.set("threshold_kept", oneIf(kept), o.Threshold.String(), shortLabel(o.Step)) {
				named++
			}
		}
	}
	for i := range s.Brokers[:min(len(s.Brokers), namedSeries)] {
		b := &s.Brokers[i]
		e.set("broker_info", 1, b.Name, b.Side, b.Protocol, b.Product, b.Version)
	}
	if s.BrokerCount != nil {
		for _, c := range comparisons(s.BrokerCount) {
			e.count("broker_counted_messages", c.Count, c.name)
			e.set("broker_count_difference", float64(c.Differs()), c.name)
		}
	}
}

// emitter sends metrics to a scrape, by their names without "perfmq_"; each series once. It panics only if labels do
// not match the description, a mistake that the tests find.
type emitter struct {
	to           chan<- prometheus.Metric
	descriptions map[string]*prometheus.Desc
	sent         map[string]bool
}

// set sends a value: a counter if the name ends in _total. It returns false if the series has a value.
func (e emitter) set(name string, v float64, labels ...string) bool {
	for i := range labels {
		labels[i] = safetext.Line(labels[i])
	}
	series := name + "\n" + strings.Join(labels, "\n")
	if e.sent[series] {
		return false
	}
	e.sent[series] = true
	kind := prometheus.GaugeValue
	if strings.HasSuffix(name, "_total") {
		kind = prometheus.CounterValue
	}
	e.to <- prometheus.MustNewConstMetric(e.descriptions[name], kind, v, labels...)
	return true
}

func (e emitter) count(name string, n uint64, labels ...string) { e.set(name, float64(n), labels...) }

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// bounds are the upper bounds of the buckets of histograms in microseconds, inclusive: 10 us to 100 s.
//
//nolint:gochecknoglobals // a table that never changes
var bounds = [22]int64{
	10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
	1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000,
}

// histogramMetric returns the values of l as a histogram. A value counts as the upper bound of its bar in l, so it is
// never in a bucket below its own.
func histogramMetric(desc *prometheus.Desc, l *result.Latency, labels ...string) prometheus.Metric {
	cumulative, bars := map[float64]uint64{}, l.Histogram.Bars()
	var sum uint64
	for _, bound := range bounds {
		for ; len(bars) > 0 && bars[0].UpTo <= bound; bars = bars[1:] {
			sum += uint64(bars[0].Count) //nolint:gosec // counts are not negative
		}
		cumulative[float64(bound)/1e6] = sum
	}
	count := uint64(l.Count) //nolint:gosec // likewise
	return prometheus.MustNewConstHistogram(desc, count, float64(l.Sum)/1e6, cumulative, labels...)
}
