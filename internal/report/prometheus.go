package report

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/perfmq/perfmq/internal/brokercount"
	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Prometheus serves the figures of the run as metrics, at the path /metrics of a server of its own.
//
// The metrics are filled from the snapshots, so they grow once a second. Counters include the warm-up, as the console's
// totals do; latency histograms have a label phase, "warmup" or "measure" (the drain counts as measured, as in the
// summary). Counters and histograms go on from step to step; perfmq_step_info names the present one, if there are several.
// The final figures can be scraped until Close. The histograms of b2c and s2c times appear with the first
// message whose protocol tells them, the protocol's own counters with the first snapshot of a driver that has some.
//
// Buckets of the histograms are 1, 2.5 and 5 times each power of ten from 100 us to 100 s. Sums and counts are exact;
// since latencies are kept to two significant digits, one that lies less than 1% below a bucket's bound may be counted
// in the next bucket, never in a lower one.
type Prometheus struct {
	collector *collector
	registry  *prometheus.Registry
	http      *listen.HTTP
}

// Limits of scrapes.
const (
	scrapeTimeout = 10 * time.Second
	maxScrapes    = 4 // at once
)

// NewPrometheus returns a reporter that listens on address, HOST:PORT or :PORT, which is on loopback, and nowhere else; version is
// that of this program, for perfmq_build_info. It can be scraped at once; figures of the run are there from Start on.
func NewPrometheus(address, version string) (*Prometheus, error) {
	p := &Prometheus{collector: newCollector(version), registry: prometheus.NewRegistry()}
	for _, c := range []prometheus.Collector{
		p.collector, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := p.registry.Register(c); err != nil {
			return nil, driver.Errorf(driver.ClassOther, "register metrics", "", "%w", err)
		}
	}
	l, err := listen.TCP(context.Background(), "metrics", "--metrics", address)
	if err != nil {
		return nil, err
	}
	p.http = listen.Serve(l, p.handler(address, l.Addr()))
	return p, nil
}

// Start takes over what is known of the run.
func (p *Prometheus) Start(run stats.Run) error {
	p.collector.start(run)
	return nil
}

// Address returns the address that is listened on, with the real port if 0 was asked for.
func (p *Prometheus) Address() net.Addr { return p.http.Addr() }

// Interval takes over the figures.
func (p *Prometheus) Interval(s *stats.Snapshot) error {
	p.collector.interval(s)
	return nil
}

// Summary takes over the final figures.
func (p *Prometheus) Summary(s *stats.Summary) error {
	p.collector.summary(s)
	return nil
}

// Close stops the server. Scrapes in progress have two seconds to finish.
func (p *Prometheus) Close() error {
	if err := p.http.Close(); err != nil {
		return driver.Errorf(driver.ClassOther, "serve metrics on "+p.Address().String(), "", "%w", err)
	}
	return nil
}

// handler only reads. A listener that is meant for other machines is asked by whatever names they have for this one; on loopback,
// another name than those of the machine comes from a web page.
func (p *Prometheus) handler(address string, at net.Addr) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(labeled(p.registry, p.collector.labels), promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, `<!doctype html><html lang="en"><title>perfmq</title>`+
			`<h1>perfmq</h1><p><a href="/metrics">Metrics</a> of the run</p></html>`+"\n")
	})
	if listen.IsLoopback(at.String()) {
		return listen.Local(listen.HostNames(address), mux)
	}
	return mux
}

// collector holds the figures between snapshot and scrape. It is safe for concurrent use.
type collector struct {
	d descriptions

	mu         sync.Mutex
	run        stats.Run
	info       prometheus.Metric // of the run
	more       []*dto.LabelPair  // on every series
	started    bool
	step       string // the present one; empty if there is only one, or when all have ended
	phase      string
	total      stats.Counters
	protocol   []driver.Counter
	verified   *verify.Progress // as of the last snapshot; nil if nothing is verified
	inFlight   uint64
	depths     []brokercount.Depth
	workers    int
	cpu        time.Duration
	gcPauses   uint64
	gcPauseMax time.Duration
	cores      int
	// histograms by name and phase label; a latency that the run does not measure has none.
	histograms map[histogramKey]*buckets
	final      *stats.Summary
	groups     groupSeries
	side       *brokerside.Use // of the broker, all intervals so far; nil if nothing is known
	sideNow    *brokerside.Use // the last one
}

type histogramKey struct {
	desc  *prometheus.Desc
	phase string
	group string // empty for the whole run
}

// ended is the phase after the summary; the others are those of stats.Phase.
const ended = "ended"

func newCollector(version string) *collector {
	return &collector{d: describe(version), phase: stats.Warmup.String(), histograms: map[histogramKey]*buckets{}}
}

func (c *collector) start(run stats.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, series := userLabels(run.Labels)
	c.run, c.info, c.started, c.more = run, runInfo(&run, all), true, series
	if run.Several() {
		c.step = run.Steps[0]
	}
	c.groups.start(run.Groups)
	if run.Warmup <= 0 {
		c.phase = stats.Measure.String()
	}
}

// labels returns the user's labels; none before the run.
func (c *collector) labels() []*dto.LabelPair {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.more
}

func (c *collector) interval(s *stats.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run.Several() {
		c.step = s.Step
	}
	c.phase, c.total, c.inFlight, c.workers = s.Phase.String(), s.Total, s.InFlight, s.Workers
	c.protocol, c.verified, c.depths = s.Protocol, s.Verified, s.Depths
	c.side = brokerside.Join(c.side, s.Side)
	if s.Side != nil {
		c.sideNow = s.Side
	}
	c.cpu += s.Health.CPU
	c.gcPauses += s.Health.GCPauses
	c.gcPauseMax = max(c.gcPauseMax, s.Health.GCPauseMax)
	c.cores = s.Health.Cores
	phase := stats.Measure.String()
	if s.Phase == stats.Warmup {
		phase = s.Phase.String()
	}
	c.observe(phase, s.Latencies)
	c.observe(stats.Warmup.String(), s.Leftover)
	c.groups.interval(c, phase, s.Groups)
}

// observe adds latencies of messages that were due in a phase.
func (c *collector) observe(phase string, l stats.Latencies) {
	c.add(histogramKey{desc: c.d.delay, phase: phase}, l.Delay)
	c.add(histogramKey{desc: c.d.ack, phase: phase}, l.Ack)
	c.add(histogramKey{desc: c.d.response, phase: phase}, l.Response)
	c.add(histogramKey{desc: c.d.transfer, phase: phase}, l.Transfer)
	c.add(histogramKey{desc: c.d.b2c, phase: phase}, l.B2C)
	c.add(histogramKey{desc: c.d.s2c, phase: phase}, l.S2C)
	c.add(histogramKey{desc: c.d.commit, phase: phase}, l.Commit)
	c.add(histogramKey{desc: c.d.lateness, phase: phase}, l.Lateness)
}

func (c *collector) add(key histogramKey, l *stats.Latency) {
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
	c.step, c.phase, c.total, c.inFlight, c.workers, c.final = "", ended, s.Total, 0, 0, s
	c.protocol, c.depths = s.Protocol, finalDepths(s.BrokerCount)
	c.groups.summary(s.Groups)
}
