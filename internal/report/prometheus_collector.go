package report

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// collector holds the figures of the last snapshot for scrapes. It is safe for concurrent use.
type collector struct {
	d       descriptions
	version string

	mu       sync.Mutex
	run      stats.Run
	info     prometheus.Metric // of the run
	more     []*dto.LabelPair  // on every series
	started  bool
	step     string // the present one; empty if there is only one, or when all have ended
	phase    string
	steps    []stepFigures  // one element in a run with one step
	present  int            // index of the present step in steps
	total    stats.Counters // of all steps
	protocol []driver.Counter
	verified *result.Progress // as of the last snapshot; nil if nothing is verified
	inFlight uint64
	depths   []brokerside.Depth
	workers  int
	tester   testerFigures
	stalls   []stats.PartStalls
	outages  *stats.OutageProgress // nil without --reconnect
	hosts    []result.BrokerHost   // of a run whose URL names several; else nil
	// histograms has no entry for a latency that the run does not measure.
	histograms map[histogramKey]*buckets
	final      *stats.Summary
	groups     groupSeries
	side       *result.BrokerUse // of the broker, over all intervals so far; nil if nothing is known
	sideNow    *result.BrokerUse // of the broker, in the last interval with figures
}

// stepFigures are the counters of a step.
type stepFigures struct {
	labels []string // the value of the label step; none in a run with one step
	total  stats.Counters
}

type histogramKey struct {
	metric string // its name without "perfmq_"
	phase  string
	step   int
	group  string // empty for all groups; keys with a group have no step
}

// ended is the phase after the summary, in addition to those of stats.Phase.
const ended = "ended"

// namedSteps is the maximum number of steps with series of their own; later steps share the series of others.
const namedSteps = 50

// others is the label of steps, groups and destinations without a series of their own.
const others = "others"

func newCollector(version string) *collector {
	return &collector{
		d: describe(version, false), version: version, phase: stats.Warmup.String(),
		histograms: map[histogramKey]*buckets{},
	}
}

func (c *collector) start(run stats.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, series := userLabels(run.Labels)
	c.run, c.info, c.started, c.more = run, runInfo(&run, all), true, series
	c.d, c.steps = describe(c.version, run.Several()), []stepFigures{{}}
	if run.Several() {
		c.step, c.steps = stepLabel(run.Steps[0]), nil
		for _, name := range run.Steps[:min(len(run.Steps), namedSteps)] {
			label := stepLabel(name)
			if !slices.ContainsFunc(c.steps, func(s stepFigures) bool { return s.labels[0] == label }) {
				c.steps = append(c.steps, stepFigures{labels: []string{label}})
			}
		}
		if len(run.Steps) > namedSteps {
			c.steps = append(c.steps, stepFigures{labels: []string{others}})
		}
	}
	c.groups.start(run.Groups)
	if run.Warmup <= 0 {
		c.phase = stats.Measure.String()
	}
}

// maxStepLabel is the maximum length of a step's label, in bytes.
const maxStepLabel = 64

// stepLabel returns the label of a step. Steps with equal labels share their series.
func stepLabel(name string) string {
	label := safetext.Line(name)
	if len(label) <= maxStepLabel {
		return label
	}
	return strings.ToValidUTF8(label[:maxStepLabel], "")
}

// shown reports whether step i has series. The next step has them in advance, so that rate() sees its first second.
func (c *collector) shown(i int) bool { return i <= c.present+1 }

// labels returns the user's labels on every series; none before the run.
func (c *collector) labels() []*dto.LabelPair {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.more
}

// begun reports whether the load has begun.
func (c *collector) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
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
	if c.run.Several() {
		c.step = stepLabel(s.Step)
		c.present = c.stepOf(c.step)
		of := &c.steps[c.present]
		of.total = of.total.Add(s.Delta)
	} else {
		c.steps[0].total = s.Total
	}
	c.total = s.Total
	c.phase, c.inFlight, c.workers = s.Phase.String(), s.InFlight, s.Workers
	c.protocol, c.verified, c.depths = s.Protocol, s.Verified, s.Depths
	c.side = brokerside.Join(c.side, s.Side)
	if s.Side != nil {
		c.sideNow = s.Side
	}
	c.tester.add(s)
	c.stalls = s.Stalls
	c.outages, c.hosts = s.Outages, s.Hosts
	phase := stats.Measure.String()
	if s.Phase == stats.Warmup {
		phase = s.Phase.String()
	}
	c.observe(phase, s.Latencies)
	c.observe(stats.Warmup.String(), s.Leftover)
	c.groups.interval(c, phase, s.Groups)
}

// stepOf returns the index of a step's figures; that of the last element if the step has no series of its own.
func (c *collector) stepOf(label string) int {
	for i := range c.steps {
		if c.steps[i].labels[0] == label {
			return i
		}
	}
	return len(c.steps) - 1
}

// observe adds the latencies of messages that were due in a phase.
func (c *collector) observe(phase string, l result.Latencies) {
	for k := range l {
		c.add(histogramKey{metric: result.Kinds()[k].Metric, phase: phase, step: c.present}, l[k])
	}
}

func (c *collector) add(key histogramKey, l *result.Latency) {
	if l == nil {
		return
	}
	b := c.histograms[key]
	if b == nil {
		b = newBuckets()
		c.histograms[key] = b
	}
	b.add(l)
}

func (c *collector) summary(s *stats.Summary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step, c.phase, c.inFlight, c.workers, c.final = "", ended, 0, 0, s
	if c.outages != nil { // no worker waits for a connection any more
		p := *c.outages
		p.Since, p.Down = 0, 0
		c.outages = &p
	}
	c.protocol, c.depths, c.hosts = s.Protocol, finalDepths(s.BrokerCount), s.Hosts
	if !c.run.Several() {
		c.steps[0].total = s.Total
	}
	c.total = s.Total
	c.groups.summary(s.Groups)
}
