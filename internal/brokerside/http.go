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

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/perfmq/perfmq/pkg/driver"
)

// CheckURL finds mistakes in the URL of a server.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

// parseURL returns the URL of a server. The error does not show the URL, which may have a password.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("it must begin with http://HOST or https://HOST")
	}
	return u, nil
}

// CheckManagement finds mistakes in a management URL, as CheckURL does.
func CheckManagement(text string) error {
	u, err := parseURL(text)
	if err != nil {
		return err
	}
	for key := range u.Query() {
		if key != "vhost" { // a mistyped one would count another queue of that name
			return errors.New("only ?vhost=NAME may follow its path")
		}
	}
	return nil
}

// client asks one server. It follows no redirects: they would take the password elsewhere.
type client struct {
	http           http.Client
	url            *url.URL // without user
	user, password string
	limit          int64 // bytes of an answer
}

// newClient returns a client of the server of a URL. User and password of the URL take precedence over the arguments.
func newClient(text, user, password string, tls driver.TLS, limit int64) (*client, error) {
	const op = "check the URL of the broker"
	u, err := parseURL(text)
	if err != nil {
		return nil, driver.Errorf(driver.ClassOther, op, "", "%w", err)
	}
	config, err := tls.Config(u.Hostname())
	if err != nil {
		return nil, &driver.Error{Class: driver.ClassTLS, Op: op, Err: err}
	}
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	u.User = nil
	return &client{url: u, user: user, password: password, limit: limit, http: http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, MaxConnsPerHost: 2, IdleConnTimeout: 10 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// name is the URL without the parts that may be secret: user, password and query.
func (c *client) name() string {
	return (&url.URL{Scheme: c.url.Scheme, Host: c.url.Host, Path: c.url.Path}).String()
}

// fetch sends a request and returns the body of the answer. Errors do not show the URL.
func (c *client) fetch(ctx context.Context, method, to string, body []byte, headers ...string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	if c.user != "" || c.password != "" {
		request.SetBasicAuth(c.user, c.password)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return nil, failure(ctx, driver.ClassConnect, err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		class, hint, status := statusClass(answer.StatusCode), "", answer.Status
		if class == driver.ClassAuth {
			hint = "check user and password, and what the user may do"
		}
		if to := answer.Header.Get("Location"); to != "" {
			status += ": " + to
		}
		return nil, driver.Errorf(class, "", hint, "the server answers %.200q", status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, c.limit+1))
	switch {
	case err != nil:
		return nil, failure(ctx, driver.ClassConnectionLost, fmt.Errorf("read the answer: %w", err))
	case int64(len(text)) > c.limit:
		return nil, driver.Errorf(driver.ClassTooLarge, "", "", "the answer has more than %d bytes", c.limit)
	}
	return text, nil
}

// statusClass returns the class of an answer that is no success.
func statusClass(status int) driver.Class {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return driver.ClassAuth
	case http.StatusNotFound:
		return driver.ClassNotFound
	}
	return driver.ClassOther
}

// failure is a time-out if the context has ended.
func failure(ctx context.Context, class driver.Class, err error) error {
	if ctx.Err() != nil {
		class = driver.ClassTimeout
	}
	return driver.Errorf(class, "", "", "%w", err)
}

// close closes the connections that are not in use.
func (c *client) close() { c.http.CloseIdleConnections() }

// repeat calls do after each wait, until it returns false or ctx ends.
func repeat(ctx context.Context, wait func() time.Duration, do func() bool) {
	for {
		select {
		case <-time.After(wait()):
		case <-ctx.Done():
			return
		}
		if !do() {
			return
		}
	}
}

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
