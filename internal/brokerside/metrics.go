package brokerside

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/perfmq/perfmq/pkg/driver"
)

// The bounds of a page of metrics.
const (
	maxPage      = 16 << 20 // bytes
	pagePatience = 2 * time.Second
)

func parsePage(text []byte) (model.Vector, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
}

// Endpoint is where metrics are served.
type Endpoint struct {
	// URL is http or https, with or without user and password; without a path it is /metrics.
	URL string
	TLS driver.TLS
}

func (e *Endpoint) open() (*client, error) {
	c, err := newClient(e.URL, "", "", e.TLS, maxPage)
	if err == nil && (c.url.Path == "" || c.url.Path == "/" && c.url.RawQuery == "") {
		c.url.Path = "/metrics"
	}
	return c, err
}

// scrape fills in the metrics of an endpoint.
func (c *client) scrape(ctx context.Context, patience time.Duration, to *sample) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := c.fetch(ctx, http.MethodGet, c.url.String(), nil, "Accept", "text/plain; version=0.0.4")
	if err != nil {
		return fmt.Errorf("%s: %w", c.name(), err)
	}
	list, err := parsePage(text)
	if err != nil {
		return driver.Errorf(driver.ClassProtocol, "", "", "the metrics at %s cannot be read: %w", c.name(), err)
	}
	to.page(list)
	return nil
}

// page has the values of a page of metrics by their names.
type page map[model.LabelValue]model.Vector

// page takes the known metrics of a page.
func (s *sample) page(list model.Vector) {
	p := page{}
	for _, v := range list {
		name := v.Metric[model.MetricNameLabel]
		if !strings.HasPrefix(string(name), "jvm_memory_") || v.Metric["area"] == "heap" {
			p[name] = append(p[name], v)
		}
	}
	if p["node_exporter_build_info"] != nil { // whose own process it is
		maps.DeleteFunc(p, func(name model.LabelValue, _ model.Vector) bool {
			return strings.HasPrefix(string(name), "process_")
		})
	}
	s.CPU = p.count(1e6, "process_cpu_seconds_total")
	s.Memory = p.count(1, "process_resident_memory_bytes", "rabbitmq_process_resident_memory_bytes")
	s.Threads = p.count(1, "jvm_threads_live_threads", "jvm_threads_current", "process_threads")
	s.Files = p.count(1, "process_open_fds", "process_files_open_files", "rabbitmq_process_open_fds")
	s.Heap = p.count(1, "jvm_memory_used_bytes", "jvm_memory_bytes_used")
	s.Collections = p.count(1, "jvm_gc_pause_seconds_count", "jvm_gc_collection_seconds_count",
		"erlang_vm_statistics_garbage_collection_number_of_gcs")
	s.CollectionTime = p.count(1e6, "jvm_gc_pause_seconds_sum", "jvm_gc_collection_seconds_sum")
	// A JVM says -1 where the system does not report its load.
	if load := p.first("node_load1", "system_load_average_1m"); load != nil && *load >= 0 && *load <= maxCount {
		s.Load = load
	}
	s.disks(p.devices("node_disk_read_bytes_total", 1), p.devices("node_disk_written_bytes_total", 1),
		p.devices("node_disk_io_time_seconds_total", 1000))
	s.networks(p.devices("node_network_receive_bytes_total", 1), p.devices("node_network_transmit_bytes_total", 1))
}

// first returns the sum of the values of the first name that has some; nil if none has.
func (p page) first(names ...model.LabelValue) *float64 {
	for _, name := range names {
		sum, known := 0.0, false
		for _, v := range p[name] {
			n := float64(v.Value)
			if !math.IsNaN(n) && !math.IsInf(n, 0) {
				sum, known = sum+n, true
			}
		}
		if known && !math.IsInf(sum, 0) {
			return &sum
		}
	}
	return nil
}

// devices returns the values of a name times a factor, by their devices.
func (p page) devices(name model.LabelValue, factor float64) map[string]float64 {
	values := map[string]float64{}
	for _, v := range p[name] {
		values[string(v.Metric["device"])] += factor * float64(v.Value)
	}
	return values
}

// count is first, times a factor.
func (p page) count(factor float64, names ...model.LabelValue) *uint64 {
	v := p.first(names...)
	if v == nil {
		return nil
	}
	return whole(factor * *v)
}
