package report

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// namedSeries is the maximum number of brokers and destinations with series of their own; others have none.
const namedSeries = 20

// maxLabel is the maximum length of the label of a step and of the user's labels, in bytes.
const maxLabel = 64

const inFlightHelp = "Messages sent without an answer yet."

// ended is the phase after the summary, in addition to the values of stats.Phase.
const ended = "ended"

// collector holds the figures of the last snapshot for scrapes. It is safe for concurrent use.
type collector struct {
	version string
	remote  *RemoteWrite // nil if nothing is written

	mu         sync.Mutex
	run        stats.Run
	started    bool
	last       stats.Snapshot // with the totals of final, if that is known
	final      *stats.Summary
	tester     result.Tester // of all intervals so far
	histograms map[histogramKey]*result.Latency
	groups     []result.Counts   // of the first groups, if there are several
	side       *result.BrokerUse // sums of all intervals; states as of the last

	// Of the present scrape: where its metrics go, and the series that have been sent.
	to   chan<- prometheus.Metric
	sent map[string]bool
}

type histogramKey struct {
	kind  result.Kind
	phase string
	group string // empty for all groups
}

func newCollector(version string) *collector {
	return &collector{version: version, histograms: map[histogramKey]*result.Latency{}}
}

func (c *collector) start(run stats.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run, c.started = run, true
	c.groups = make([]result.Counts, min(len(run.Groups), result.MaxRowGroups))
	if len(run.Groups) < 2 {
		c.groups = nil
	}
	c.last.Phase = result.Warmup
	if run.Several() {
		c.last.Step = run.Steps[0]
	}
	if run.Warmup <= 0 {
		c.last.Phase = result.Measure
	}
}

func (c *collector) interval(s *stats.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = *s
	c.tester.Follow(&s.Tester)
	if u := s.BrokerSide; u != nil {
		sum := *brokerside.Join(c.side, u)
		sum.Memory, sum.Heap, sum.Threads, sum.Files = u.Memory, u.Heap, u.Threads, u.Files
		sum.Load, sum.DiskBusy = u.Load, u.DiskBusy
		c.side = &sum
	}
	phase := s.Phase
	if phase == result.Drain {
		phase = result.Measure
	}
	for k, info := range result.Kinds() {
		c.observe(histogramKey{info.Kind, phase, ""}, s.Latencies[k])
		if s.Leftover != nil {
			c.observe(histogramKey{info.Kind, result.Warmup, ""}, s.Leftover[k])
		}
	}
	for i := range c.groups {
		name := c.run.Groups[i].Name
		n := slices.IndexFunc(s.Groups, func(g result.RowGroup) bool { return g.Name == name })
		if n < 0 {
			continue
		}
		c.groups[i].Add(&s.Groups[n].Counts)
		for k, info := range result.Kinds() {
			if l := s.Groups[n].Latencies; l != nil && info.Always {
				c.observe(histogramKey{info.Kind, phase, safetext.Line(name)}, l[k])
			}
		}
	}
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
	n.Total, n.Protocol, n.Depths = s.Total, s.Counters, finalDepths(s.BrokerCount)
	n.InFlight, n.Workers, n.Live = 0, 0, 0
	if n.Outage != nil { // no worker waits for a connection any more
		p := *n.Outage
		p.Since, p.Down = 0, 0
		n.Outage = &p
	}
	for i := range min(len(c.groups), len(s.Groups)) {
		c.groups[i] = s.Groups[i].Total
	}
}

// Describe sends nothing, because the metrics depend on the run.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the figures as of the last snapshot.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to, c.sent = metrics, map[string]bool{}
	c.set("build_info", "version goversion", "The program; always 1.", 1, c.version, runtime.Version())
	if !c.started {
		return
	}
	c.collectRun()
	c.collectCounters()
	c.collectStalls()
	c.collectOutages()
	for i := range c.groups {
		c.collectGroup(&c.run.Groups[i], &c.groups[i])
	}
	for key, l := range c.histograms {
		// During the measurement the series of the warm-up are omitted: without new values their quantiles would be NaN.
		if key.phase == result.Measure || c.last.Phase != result.Measure || c.final != nil {
			metrics <- key.metric(l)
		}
	}
	h := c.tester
	h.Memory = c.last.Tester.Memory // the present one
	c.setFields(&h)
	if c.side != nil {
		c.setFields(c.side)
	}
	c.collectVerified()
	c.collectDepths()
	if c.final != nil {
		c.collectEnd(c.final)
	}
}

func (c *collector) collectRun() {
	run, n := &c.run, &c.last
	c.set("run_info", "protocol consumer_protocol client consumer_client destinations scenario",
		"What is measured; always 1.", 1, run.Protocol, run.ConsumerProtocol, run.Client, run.ConsumerClient,
		words.First(run.Destinations, namedSeries, ","), run.Scenario)
	now := n.Phase
	if c.final != nil {
		now = ended
	} else if run.Several() {
		c.set("step_info", "step", "The present step of several; always 1.", 1, shortLabel(n.Step))
	}
	c.set("run_start_time_seconds", "",
		"Start of the load, in seconds since the Unix epoch.", float64(run.Start.UnixMilli())/1000)
	for _, phase := range []string{result.Warmup, result.Measure, result.Drain, ended} {
		c.set("phase", "phase", "1 for the present phase, 0 for the others.", oneIf(phase == now), phase)
	}
	c.set("workers", "", "Open producers and consumers.", float64(n.Workers))
	if run.Producing {
		c.count("in_flight", "", inFlightHelp, n.InFlight)
	}
	if run.Opening {
		c.count("connections_live", "", "Open connections of groups of connections.", n.Live)
		classes := map[string]uint64{}
		if n.Total.Connections != nil {
			classes = n.Total.Connections.Failures
		}
		for class := driver.ClassNone + 1; class < driver.NumClasses; class++ { // all from the beginning, for rate()
			c.count("connections_failed_total", "class",
				"Connections that did not open, or were lost, by class of error.",
				classes[class.String()], class.String())
		}
	}
	if w := c.remote; w != nil {
		for state, n := range map[string]*atomic.Uint64{"written": &w.written, "retried": &w.retried, "lost": &w.lost} {
			c.count("remote_writes_total", "state", "Requests of --remote-write.", n.Load(), state)
		}
	}
	for _, own := range n.Protocol {
		c.count("protocol_events_total", "name", "Counters of the protocol's driver.", own.Value, own.Name)
	}
}

// shortLabel returns a label of at most maxLabel bytes.
func shortLabel(text string) string {
	label := safetext.Line(text)
	return strings.ToValidUTF8(label[:min(len(label), maxLabel)], "")
}

func (c *collector) collectCounters() {
	t := c.last.Total.Values()
	has := result.ProducerRole.If(c.run.Producing) | result.ConsumerRole.If(c.run.Consuming) |
		result.OpenerRole.If(c.run.Opening) | result.Transacted.If(c.run.Transacted) |
		result.Delaying.If(t[result.Delayed] > 0) |
		result.Requesting.If(c.run.Requests) | result.Responding.If(c.run.Responds)
	for _, k := range result.CounterTable() {
		if k.Metric != "" && k.Role&^has == 0 {
			c.count(k.Metric, "", k.Help, t[k.Counter])
		}
	}
	if c.run.Producing {
		for of, n := range map[string]uint64{
			"slot": t[result.Blocked] - t[result.NoLeave], "credit": t[result.NoLeave], "socket": t[result.SocketWaits],
		} {
			c.count("send_waits_total", "for",
				"Waits of producers for room in max-pending (slot), for credit, and for the network (socket).", n, of)
		}
		for _, f := range failuresOf(&c.last.Total) {
			// All classes exist from the beginning, so that rate() sees the first failure.
			for class := range driver.NumClasses {
				n := f.classes[class.String()]
				if class != driver.ClassNone || n > 0 {
					c.count("sends_failed_total", "state class",
						"Messages sent but not completed, by end and cause.",
						n, f.name, class.String())
				}
			}
		}
	}
	if t[result.ConsumerReleased]+t[result.ConsumerRejected] > 0 {
		for as, n := range map[driver.Verdict]uint64{
			driver.Release: t[result.ConsumerReleased], driver.Reject: t[result.ConsumerRejected],
		} {
			c.count("consumer_failed_total", "as",
				"Messages given back (release) or rejected (reject) by consumers.", n, as.String())
		}
	}
}

// collectStalls emits the stalls of the sides, and the stalls of several groups and brokers.
func (c *collector) collectStalls() {
	named := 0
	whole := map[string]stats.PartStalls{}
	for _, p := range c.last.Stalls {
		switch {
		case p.Whole:
			whole[p.Side] = p
		case (p.Group == "" || len(c.run.Groups) > 1) && named < 4*namedSeries:
			named++
			c.emitStalls("group_", "group broker ",
				"The same of each group and broker; all groups if group is empty.", &p, p.Group, p.Broker, p.Side)
		}
	}
	for side, works := range map[string]bool{stats.SendSide: c.run.Producing, stats.ReceiveSide: c.run.Consuming} {
		if p := whole[side]; works {
			c.emitStalls("", "",
				"Stalls of --stall-threshold or longer; send: no confirmation, receive: no delivery.", &p, side)
		}
	}
}

// stalls emits the stalls of a part, by phase.
func (c *collector) emitStalls(prefix, labels, help string, p *stats.PartStalls, values ...string) {
	for _, phase := range []stats.Phase{stats.Measure, stats.Warmup} {
		all := append(values[:len(values):len(values)], phase.String())
		c.count(prefix+"stalls_total", labels+"side phase", help, p.Count[phase], all...)
		c.set(prefix+"stall_seconds_total", labels+"side phase", "Total length of these stalls.",
			p.Length[phase].Seconds(), all...)
	}
}

// collectOutages emits the figures of outages; none without --reconnect.
func (c *collector) collectOutages() {
	p := c.last.Outage
	if p == nil {
		return
	}
	c.setFields(p)
	for class := range driver.NumClasses { // the most frequent class exists from the beginning, for rate()
		if n := p.Attempts[class]; n > 0 || class == driver.ClassConnect {
			c.count("reconnect_failures_total", "class",
				"Failed attempts to reconnect, by class of error.", n, class.String())
		}
	}
}

// ofGroup returns a metric's description for its twin of groups.
func ofGroup(help string) string { return strings.TrimSuffix(help, ".") + ", of a group." }

func (c *collector) collectGroup(g *stats.RunGroup, n *result.Counts) {
	has := result.ProducerRole.If(g.Sends) | result.ConsumerRole.If(g.Receives)
	t, inFlight := n.Values(), n.InFlight()
	for _, k := range result.CounterTable() {
		switch k.Counter {
		case result.Sent, result.Completed, result.Received, result.Redelivered:
			if k.Role&^has == 0 {
				c.count("group_"+k.Metric, "group", ofGroup(k.Help), t[k.Counter], g.Name)
			}
		}
	}
	info := func(role, protocol, client string) {
		c.set("group_info", "group role protocol client",
			"The role, protocol and client of a group; always 1.", 1, g.Name, role, protocol, client)
	}
	if g.Receives {
		info("consumer", g.ConsumerProtocol, g.ConsumerClient)
	}
	if g.Sends {
		info("producer", g.Protocol, g.Client)
		c.count("group_sends_failed_total", "group",
			"Messages sent but not completed, of a group.",
			t[result.Sent]-inFlight-t[result.Completed], g.Name)
		c.count("group_in_flight", "group", ofGroup(inFlightHelp), inFlight, g.Name)
	}
}

// setFields sends the fields of a struct that have the tag "metric": its name, and omitempty if 0 means that the value
// is unknown. The tags "label", NAME=VALUE, and "help" are beside it. Whole numbers of metrics in seconds are
// microseconds. Fields that point nowhere have no value.
func (c *collector) setFields(of any) {
	for field, v := range reflect.Indirect(reflect.ValueOf(of)).Fields() {
		name, empty, _ := strings.Cut(field.Tag.Get("metric"), ",")
		v = reflect.Indirect(v)
		if name == "" || !v.IsValid() || empty != "" && v.IsZero() {
			continue
		}
		n := v.Convert(reflect.TypeFor[float64]()).Float()
		if length, is := v.Interface().(time.Duration); is {
			n = length.Seconds()
		} else if strings.Contains(name, "_seconds") {
			n /= 1e6
		}
		label, value, _ := strings.Cut(field.Tag.Get("label"), "=")
		c.set(name, label, field.Tag.Get("help"), n, strings.Fields(value)...)
	}
}

// collectVerified emits the findings of the verification, by the tags of their counts: the ones that are known during
// each run, with a window, or at the end alone.
func (c *collector) collectVerified() {
	var t result.Verified
	known := []string{""}
	if c.run.Windowed {
		known = append(known, "window")
	}
	switch v := c.last.Verified; {
	case c.final != nil && c.final.Verification != nil:
		if t = c.final.Verification.Total; c.final.Verification.Known {
			known = []string{"", "window", "end"}
		}
	case v != nil:
		t = v.Verified()
	default:
		return
	}
	for field, v := range reflect.ValueOf(t).Fields() {
		if of := field.Tag.Get("finding"); of != "" && slices.Contains(known, field.Tag.Get("known")) {
			c.count("verified_messages_total", "finding",
				"Results of the verification; left, *_arrived and *_missing after the run, expected and lost with a window.",
				v.Uint(), of)
		}
	}
}

// collectDepths emits the numbers of messages at the destinations.
func (c *collector) collectDepths() {
	for _, d := range c.last.Depths[:min(len(c.last.Depths), namedSeries)] {
		c.count("destination_depth", "destination",
			"Messages at a destination, by the broker's last report.", d.Messages, d.Destination)
	}
	if n := brokerside.Backlog(c.last.Depths); n != nil {
		c.count("backlog_messages", "", "Messages at all destinations of the run, by the broker's last report.", *n)
	}
}

// collectEnd emits the figures of the summary.
func (c *collector) collectEnd(s *stats.Summary) {
	c.set("run_success", "", "1 if the run was a success; only after its end.", oneIf(s.Outcome.Success))
	if s.Missing != nil {
		c.count("messages_missing", "", "Messages completed but not received, if known.", *s.Missing)
		c.count("messages_expected", "", "Deliveries owed for the completed messages, if known.", *s.Expected)
	}
	c.set("run_end_time_seconds", "",
		"End of the run, drain included, in seconds since the Unix epoch.", float64(s.End/1000)/1000)
	metrics := s.Metrics()
	for _, messages := range []string{"sent", "completed", "received"} {
		for of, value := range map[string]string{".avg": "average", ".min": "minimum", ".max": "maximum"} {
			if v, known := metrics[messages+of]; known {
				c.set("run_rate", "messages value",
					"Messages per second of the measured part: average, lowest and highest full second.",
					v, messages, value)
			}
		}
	}
	if s.Offered.Known() {
		c.set("run_rate_missed_ratio", "",
			"Share of the due messages that were not sent, 0 to 1; only with a rate.", s.Offered.Missed())
	}
	if s.Limit != nil {
		c.set("run_limit_info", "limit", "The limit of the rate; always 1.", 1, s.Limit.Kind)
	}
	c.set("run_problems", "", "Problems, which make the run a failure.", float64(len(s.Problems())))
	c.set("run_warnings", "", "Warnings of the summary.", float64(len(s.Warnings())))
	findings := map[string]uint64{}
	for _, f := range s.Findings {
		findings[f.Kind] += f.Count
	}
	for kind, n := range findings {
		c.count("run_findings", "kind", "Findings by kind: how often, or of how many messages.", n, kind)
	}
	named := 0
	for _, kept := range []bool{false, true} { // those that fail have a series, however many there are
		for _, o := range s.Thresholds {
			if o.Kept == kept && named < 5*namedSeries &&
				c.set("threshold_kept", "threshold step",
					"1 if a threshold passes, 0 if it fails; of a step if it is about one.",
					oneIf(kept), o.Threshold, shortLabel(o.Step)) {
				named++
			}
		}
	}
	for _, b := range s.Brokers[:min(len(s.Brokers), namedSeries)] {
		c.set("broker_info", "broker side protocol product version",
			"Product and version of a broker; always 1.", 1, b.Name, b.Side, b.Protocol, b.Product, b.Version)
	}
	if s.BrokerCount != nil {
		for _, compared := range comparisons(s.BrokerCount) {
			c.count("broker_counted_messages", "count",
				"Messages added and acknowledged, as counted by the brokers.", compared.Count, compared.name)
			c.set("broker_count_difference", "count",
				"Difference of these counts from the range the run allows; 0 if they agree.",
				float64(compared.Differs()), compared.name)
		}
	}
}

// description describes a metric by its name without "perfmq_"; docs/prometheus.md lists all.
func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("perfmq_"+name, help, labels, nil)
}

// set sends a value to a scrape, by the name without "perfmq_": a counter if it ends in _total. It returns false if
// the series has a value. It panics only if values and labels differ in number, a mistake that the tests find.
func (c *collector) set(name, labels, help string, v float64, values ...string) bool {
	values = slices.Clone(values)
	for i := range values {
		values[i] = safetext.Line(values[i])
	}
	series := name + "\n" + strings.Join(values, "\n")
	if c.sent[series] {
		return false
	}
	c.sent[series] = true
	kind := prometheus.GaugeValue
	if strings.HasSuffix(name, "_total") {
		kind = prometheus.CounterValue
	}
	c.to <- prometheus.MustNewConstMetric(description(name, help, strings.Fields(labels)...), kind, v, values...)
	return true
}

func (c *collector) count(name, labels, help string, n uint64, values ...string) {
	c.set(name, labels, help, float64(n), values...)
}

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

// metric returns the histogram of a latency. Groups have a metric of their own: sums over the series of the other are
// of the run.
func (k *histogramKey) metric(l *result.Latency) prometheus.Metric {
	info := result.Kinds()[k.kind]
	if k.group == "" {
		return histogramMetric(description(info.Metric, info.Help, "phase"), l, k.phase)
	}
	return histogramMetric(description("group_"+info.Metric, ofGroup(info.Help), "phase", "group"), l, k.phase, k.group)
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
