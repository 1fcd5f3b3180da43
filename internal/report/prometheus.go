package report

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Prometheus serves the figures of the run as metrics, at the path /metrics of a server of its own, or writes them to a
// receiver.
//
// The metrics are filled from the snapshots, so they grow once a second; docs/prometheus.md describes them. The final
// figures can be scraped until Close. A histogram has the buckets 1, 2.5 and 5 times each power of ten, from 10 us to
// 100 s. Sums and counts are exact; a latency less than 1% below the bound of a bucket may be counted in the next one.
type Prometheus struct {
	collector *collector
	registry  *prometheus.Registry
	http      *listen.HTTP // nil if none are served
	web       listen.Web
	remote    *RemoteWrite // nil if none are written
}

// Limits of scrapes.
const (
	scrapeTimeout = 10 * time.Second
	maxScrapes    = 4 // at once
)

// NewPrometheus returns a reporter that listens on one address, HOST:PORT, or :PORT, which is on loopback; empty for
// none. The listener opens the port; nil for [listen.TCP]. The version of this program is for perfmq_build_info; web
// has TLS and users. The reporter can be scraped at once, and has metrics from Start on.
func NewPrometheus(address, version string, web listen.Web, open listen.Listener) (*Prometheus, error) {
	p := &Prometheus{collector: newCollector(version), registry: prometheus.NewRegistry(), web: web}
	if address == "" {
		return p, nil
	}
	if open == nil {
		open = listen.TCP
	}
	l, err := open(context.Background(), "metrics", "--metrics", address)
	if err != nil {
		return nil, err
	}
	p.http = web.Serve(l, p.handler(address, l.Addr()))
	return p, nil
}

// WriteTo lets the metrics be written, too.
func (p *Prometheus) WriteTo(w *RemoteWrite) { p.remote, p.collector.remote = w, w }

// Start sets the description of the run. All series have the user's labels.
func (p *Prometheus) Start(run stats.Run) error {
	p.collector.start(run)
	labels := prometheus.Labels{}
	for _, name := range slices.Sorted(maps.Keys(run.Labels)) {
		label := labelName(name)
		for n := 2; labels[label] != ""; n++ { // a-b and a_b
			label = fmt.Sprintf("%s_%d", labelName(name), n)
		}
		labels[label] = shortLabel(run.Labels[name])
	}
	registerer := prometheus.WrapRegistererWith(labels, p.registry)
	for _, c := range []prometheus.Collector{
		p.collector, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registerer.Register(c); err != nil {
			return driver.Errorf(driver.ClassOther, "register metrics", "", "%w", err)
		}
	}
	if p.remote != nil {
		p.remote.start(p.registry, run.ID)
	}
	return nil
}

// labelName returns the name of a user's label in the syntax of Prometheus (data model: [a-zA-Z_][a-zA-Z0-9_]*). The
// prefix keeps it apart from perfmq's own labels.
func labelName(name string) string {
	return "label_" + strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name[:min(len(name), maxLabel)])
}

// Address returns the address of the listener, with the real port if port 0 was requested.
func (p *Prometheus) Address() net.Addr { return p.http.Addr() }

// URL returns the URL of the metrics.
func (p *Prometheus) URL() string { return p.web.URL(p.Address()) + "/metrics" }

// Interval updates the figures.
func (p *Prometheus) Interval(s *stats.Snapshot) error {
	p.collector.interval(s)
	return nil
}

// Summary sets the final figures.
func (p *Prometheus) Summary(s *stats.Summary) error {
	p.collector.summary(s)
	return nil
}

// Close writes the final values, and stops the server. Scrapes in progress have two seconds to finish.
func (p *Prometheus) Close() error {
	if p.remote != nil {
		p.remote.close()
	}
	if p.http == nil {
		return nil
	}
	if err := p.http.Close(); err != nil {
		return driver.Errorf(driver.ClassOther, "serve metrics on "+p.Address().String(), "", "%w", err)
	}
	return nil
}

// handler serves reads only. On loopback it refuses requests with a foreign host name, because these come from web
// pages (DNS rebinding). Other listeners accept any host name, because other machines may have their own names for this
// one.
func (p *Prometheus) handler(address string, at net.Addr) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	}))
	if listen.IsLoopback(at.String()) {
		return listen.Local(listen.HostNames(address), mux)
	}
	return mux
}
