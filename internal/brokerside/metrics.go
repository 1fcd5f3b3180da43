package brokerside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/perfmq/perfmq/internal/httpclient"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The bounds of a page of metrics.
const (
	maxPage      = 16 << 20 // bytes
	pagePatience = 2 * time.Second
	// MaxSeries is how many series can be chosen.
	MaxSeries     = 32
	maxSeriesText = 512
)

// Series is a series of a Prometheus endpoint, or several that are added up: those of a name that have all of the
// labels.
type Series struct {
	Text   string // as it was given
	Name   string
	Labels map[string]string
}

// ParseSeries reads NAME or NAME{label="value",...}, as Prometheus writes them.
func ParseSeries(text string) (Series, error) {
	wrong := errors.New(`must be NAME or NAME{label="value"}, such as jvm_memory_used_bytes{area="heap"}`)
	_, labels, labelled := strings.Cut(text, "{")
	if len(text) > maxSeriesText || strings.ContainsAny(text, "\n\r#") || text == "" ||
		!labelled && strings.ContainsAny(text, " \t}") || labelled && !strings.HasSuffix(labels, "}") {
		return Series{}, wrong
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text + " 0\n"))
	if err != nil || len(families) != 1 {
		return Series{}, wrong
	}
	s := Series{Text: text, Labels: map[string]string{}}
	for name, family := range families {
		if len(family.GetMetric()) != 1 {
			return Series{}, wrong
		}
		s.Name = name
		for _, l := range family.GetMetric()[0].GetLabel() {
			s.Labels[l.GetName()] = l.GetValue()
		}
	}
	return s, nil
}

// Endpoint is where metrics are served.
type Endpoint struct {
	// URL is http or https, with or without user and password; without a path it is /metrics.
	URL string
	TLS driver.TLS
}

// CheckURL finds mistakes in the URL of an endpoint.
func CheckURL(text string) error {
	_, err := httpclient.ParseURL(text)
	return err
}

// scraper reads the metrics of an endpoint.
type scraper struct {
	url    *url.URL // without user
	client *httpclient.Client
	series []Series
	// patience bounds a question.
	patience time.Duration
}

func newScraper(e Endpoint, series []Series) (*scraper, error) {
	u, err := httpclient.ParseURL(e.URL)
	if err != nil {
		return nil, driver.Errorf(driver.ClassOther, "check the URL of the broker's metrics", "", "%w", err)
	}
	client, err := httpclient.New(u, "", "", e.TLS, 1)
	if err != nil {
		return nil, &driver.Error{Class: driver.ClassTLS, Op: "check the URL of the broker's metrics", Err: err}
	}
	u.User = nil
	if u.Path == "" || u.Path == "/" && u.RawQuery == "" {
		u.Path = "/metrics"
	}
	return &scraper{url: u, series: series, client: client, patience: pagePatience}, nil
}

func (s *scraper) close() { s.client.Close() }

// name is the URL without the parts that may be secret: user, password and query.
func (s *scraper) name() string {
	return (&url.URL{Scheme: s.url.Scheme, Host: s.url.Host, Path: s.url.Path}).String()
}

// look fills in the metrics of the endpoint.
func (s *scraper) look(ctx context.Context, to *sample) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/plain; version=0.0.4")
	answer, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name(), err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return driver.Errorf(driver.ClassAuth, "", "", "%s answers %s", s.name(), answer.Status)
	case status != http.StatusOK:
		return driver.Errorf(driver.ClassOther, "", "", "%s answers %s", s.name(), answer.Status)
	}
	page, err := io.ReadAll(io.LimitReader(answer.Body, maxPage+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", s.name(), err)
	case len(page) > maxPage:
		return driver.Errorf(driver.ClassTooLarge, "", "", "the metrics at %s are more than %d bytes", s.name(), maxPage)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return driver.Errorf(driver.ClassProtocol, "", "", "the metrics at %s cannot be read: %w", s.name(), err)
	}
	to.page(families, s.series)
	return nil
}

// page takes the known metrics of a page, and the chosen series.
func (s *sample) page(families map[string]*dto.MetricFamily, chosen []Series) {
	value := func(name string, labels map[string]string) *float64 { return valueOf(families, name, labels) }
	first := func(names ...string) *float64 {
		for _, name := range names {
			name, label, _ := strings.Cut(name, " ")
			var labels map[string]string
			if key, of, ok := strings.Cut(label, "="); ok {
				labels = map[string]string{key: of}
			}
			if v := value(name, labels); v != nil {
				return v
			}
		}
		return nil
	}
	ofBroker := first
	if families["node_exporter_build_info"] != nil { // whose own process the page is about
		ofBroker = func(names ...string) *float64 {
			return first(slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "process_") })...)
		}
	}
	s.cpu = micros(ofBroker("process_cpu_seconds_total"))
	s.memory = count(ofBroker("process_resident_memory_bytes", "rabbitmq_process_resident_memory_bytes"))
	s.threads = count(ofBroker("jvm_threads_live_threads", "jvm_threads_current", "process_threads"))
	s.files = count(ofBroker("process_open_fds", "process_files_open_files", "rabbitmq_process_open_fds"))
	s.heap = count(first("jvm_memory_used_bytes area=heap", "jvm_memory_bytes_used area=heap"))
	s.collections = count(first("jvm_gc_pause_seconds_count", "jvm_gc_collection_seconds_count",
		"erlang_vm_statistics_garbage_collection_number_of_gcs"))
	s.collectionTime = micros(first("jvm_gc_pause_seconds_sum", "jvm_gc_collection_seconds_sum"))
	s.load = share(first("node_load1", "system_load_average_1m"))
	s.disks(families)
	s.netIn, s.loopback = apart(families["node_network_receive_bytes_total"])
	s.netOut, _ = apart(families["node_network_transmit_bytes_total"])
	for i := range chosen {
		if v := value(chosen[i].Name, chosen[i].Labels); v != nil {
			if s.series == nil {
				s.series = map[string]float64{}
			}
			s.series[chosen[i].Text] = *v
		}
	}
}

// disks takes the bytes of all disks and the time in which each was busy, by the names that the node exporter gives
// them.
func (s *sample) disks(families map[string]*dto.MetricFamily) {
	of := func(name string) map[string]float64 {
		values := map[string]float64{}
		for _, m := range families[name].GetMetric() {
			values[labelOf(m, "device")] += number1(m)
		}
		maps.DeleteFunc(values, func(device string, _ float64) bool { return !whole(device, values) })
		return values
	}
	bytes := func(name string) *uint64 {
		values := of(name)
		if len(values) == 0 {
			return nil
		}
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		return count(&sum)
	}
	s.diskRead, s.diskWritten = bytes("node_disk_read_bytes_total"), bytes("node_disk_written_bytes_total")
	for device, seconds := range of("node_disk_io_time_seconds_total") {
		if us := micros(&seconds); us != nil {
			if s.diskTime == nil {
				s.diskTime = map[string]uint64{}
			}
			s.diskTime[device] = uint64(*us) / 1000 //nolint:gosec // not negative
		}
	}
}

// apart adds up the bytes of network interfaces, those of the loopback apart.
func apart(family *dto.MetricFamily) (others, loopback *uint64) {
	if family == nil {
		return nil, nil
	}
	var sums [2]float64
	for _, m := range family.GetMetric() {
		to := &sums[0]
		if labelOf(m, "device") == "lo" {
			to = &sums[1]
		}
		*to += number1(m)
	}
	return count(&sums[0]), count(&sums[1])
}

// valueOf adds up the series of a name that have the labels; nil if there are none. Sums and counts of summaries and
// histograms have names of their own.
func valueOf(families map[string]*dto.MetricFamily, name string, labels map[string]string) *float64 {
	family, part := families[name], ""
	for _, suffix := range []string{"_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && family == nil {
			family, part = families[base], suffix
		}
	}
	var sum *float64
	for _, m := range family.GetMetric() {
		has := func(name, value string) bool {
			return slices.ContainsFunc(m.GetLabel(), func(
				l *dto.LabelPair,
			) bool {
				return l.GetName() == name && l.GetValue() == value
			})
		}
		all := true
		for name, value := range labels {
			all = all && has(name, value)
		}
		v, ok := numberOf(m, part)
		if !all || !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if sum == nil {
			sum = new(float64)
		}
		*sum += v
	}
	if sum != nil && math.IsInf(*sum, 0) {
		return nil
	}
	return sum
}

func numberOf(m *dto.Metric, part string) (float64, bool) {
	switch {
	case part == "_sum" && m.Summary != nil:
		return m.Summary.GetSampleSum(), true
	case part == "_count" && m.Summary != nil:
		return float64(m.Summary.GetSampleCount()), true
	case part == "_sum" && m.Histogram != nil:
		return m.Histogram.GetSampleSum(), true
	case part == "_count" && m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount()), true
	case part != "":
		return 0, false
	case m.Counter != nil:
		return m.Counter.GetValue(), true
	case m.Gauge != nil:
		return m.Gauge.GetValue(), true
	case m.Untyped != nil:
		return m.Untyped.GetValue(), true
	}
	return 0, false
}

// number1 is the value of a counter or gauge.
func number1(m *dto.Metric) float64 {
	v, _ := numberOf(m, "")
	return v
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// most is the highest count that is believed: a page may contain any value.
const most = 1 << 53

func count(v *float64) *uint64 {
	if v == nil || !(*v >= 0 && *v <= most) { // nor is it NaN
		return nil
	}
	n := uint64(*v)
	return &n
}

// share returns a number of processors; nil for -1, by which a JVM says that the system does not tell.
func share(v *float64) *float64 {
	if v == nil || *v < 0 || *v > most {
		return nil
	}
	return v
}

// micros returns seconds in microseconds.
func micros(v *float64) *int64 {
	if v == nil || !(*v >= 0 && *v <= most/1e6) {
		return nil
	}
	n := int64(*v * 1e6)
	return &n
}
