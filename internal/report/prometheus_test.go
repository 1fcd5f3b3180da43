package report

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

func startPrometheus(t *testing.T, run stats.Run) (*Prometheus, string) {
	t.Helper()
	p := musttest.Get(NewPrometheus("127.0.0.1:0", "1.2.3", listen.Web{}, nil))(t)
	require.NoError(t, p.Start(run))
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, "http://" + p.Address().String()
}

func request(t *testing.T, method, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := musttest.Get(http.NewRequestWithContext(ctx, method, url, nil))(t)
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	response := musttest.Get(transport.RoundTrip(r))(t)
	defer response.Body.Close()
	body := musttest.Get(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(body)
}

// metrics are scraped values by name{label="value",...}; histograms are kept apart.
type metrics struct {
	values     map[string]float64
	histograms map[string]*dto.Histogram
}

func scrape(t *testing.T, url string) metrics {
	t.Helper()
	status, body := request(t, http.MethodGet, url+"/metrics")
	require.Equal(t, http.StatusOK, status)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families := musttest.Get(parser.TextToMetricFamilies(strings.NewReader(body)))(t)
	m := metrics{values: map[string]float64{}, histograms: map[string]*dto.Histogram{}}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			key := name
			for _, label := range metric.GetLabel() {
				key += " " + label.GetName() + "=" + label.GetValue()
			}
			switch {
			case metric.GetHistogram() != nil:
				m.histograms[key] = metric.GetHistogram()
			case metric.GetCounter() != nil:
				m.values[key] = metric.GetCounter().GetValue()
			case metric.GetGauge() != nil:
				m.values[key] = metric.GetGauge().GetValue()
			}
		}
	}
	return m
}

// sum adds up all series of a name.
func (m metrics) sum(name string) (sum float64) {
	for key, value := range m.values {
		if key == name || strings.HasPrefix(key, name+" ") {
			sum += value
		}
	}
	return sum
}

func (m metrics) require(t *testing.T, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		got, ok := m.values["perfmq_"+name]
		require.True(t, ok, "perfmq_%s is missing in %v", name, slices.Sorted(maps.Keys(m.values)))
		require.InDelta(t, value, got, 1e-9, name)
	}
}

func TestPrometheusValues(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun())
	m := scrape(t, url)
	m.require(t, map[string]float64{
		"messages_sent_total": 0, "sends_failed_total class=timeout state=failed": 0,
		"phase phase=warmup": 1, "phase phase=measure": 0,
		"run_start_time_seconds": float64(loadStart().UnixMilli()) / 1000,
		"run_info client=native consumer_client=native consumer_protocol=amqp destinations=queue://TEST protocol=amqp scenario=": 1,
	})
	require.Empty(t, m.histograms["perfmq_send_ack_seconds phase=warmup"])
	nothing := between("load", stats.Warmup, loadStart(), loadStart(), stats.Counters{}, noLatencies())
	nothing.Tester.CPU = 0
	require.NoError(t, p.Interval(nothing))
	for name := range scrape(t, url).histograms {
		require.NotContains(t, name, "perfmq_", "it has no values")
	}

	first := stats.Counters{result.Sent: 1000, result.Blocked: 10, result.NoLeave: 3, result.SocketWaits: 2, result.Completed: 900, result.Received: 800, result.LateSends: 3}
	require.NoError(t, p.Interval(snapshot(stats.Warmup, 0, first, openLoop())))
	m = scrape(t, url)
	m.require(t, map[string]float64{
		"messages_sent_total": 1000, "messages_blocked_total": 10, "messages_completed_total": 900,
		"send_waits_total for=slot": 7, "send_waits_total for=credit": 3, "send_waits_total for=socket": 2,
		"messages_received_total": 800, "sends_late_total": 3, "in_flight": 100, "workers": 2,
		"tester_cpu_seconds_total": 0.3, "tester_cores": 2,
	})

	second := stats.Counters{
		result.Sent: 2500, result.Blocked: 30, result.Completed: 2400, result.Rejected: 20, result.Released: 1, result.Failed: 12, result.Unconfirmed: 7,
		result.Received: 2300, result.Redelivered: 4, result.Unstamped: 3, result.Foreign: 2, result.NegativeTransfers: 5, result.OutOfRange: 6, result.LateSends: 9,
		result.ConsumerReleased: 8, result.ConsumerRejected: 11,
	}
	second.Failures(driver.Rejected)[driver.ClassFull] = 20
	second.Failures(driver.Failed)[driver.ClassTimeout] = 10
	require.NoError(t, p.Interval(snapshot(stats.Measure, 1, second, openLoop())))
	m = scrape(t, url)
	require.Contains(t, m.histograms, "perfmq_send_ack_seconds phase=measure")
	for name := range m.histograms {
		require.NotContains(t, name, "phase=warmup", "a series without new values has no quantiles")
	}
	require.NoError(t, p.Interval(snapshot(stats.Drain, 2, second, openLoop())))
	m = scrape(t, url)
	m.require(t, map[string]float64{
		"messages_sent_total": 2500, "messages_blocked_total": 30, "messages_completed_total": 2400,
		"messages_received_total": 2300, "sends_late_total": 9, "in_flight": 60,
		"consumer_failed_total as=release": 8, "consumer_failed_total as=reject": 11,
		"messages_redelivered_total": 4, "messages_unstamped_total": 3, "messages_foreign_total": 2,
		"transfers_negative_total": 5, "latencies_out_of_range_total": 6,
		"sends_failed_total class=full state=rejected": 20, "sends_failed_total class=timeout state=rejected": 0,
		"sends_failed_total class=timeout state=failed": 10, "sends_failed_total class=none state=failed": 2,
		"sends_failed_total class=none state=released": 1, "sends_failed_total class=none state=unconfirmed": 7,
		"phase phase=warmup": 0, "phase phase=drain": 1, "tester_cpu_seconds_total": 0.9,
	})
	require.NotContains(t, m.values, "perfmq_run_success")
	checkHistograms(t, m)

	final := brokenRun()
	require.NoError(t, p.Summary(final))
	m = scrape(t, url)
	m.require(t, map[string]float64{
		"messages_sent_total": 1_216_053, "messages_completed_total": 1_216_020, "in_flight": 0, "workers": 0,
		"run_success": 0, "messages_missing": 27, "phase phase=ended": 1, "phase phase=drain": 0,
	})
	require.Contains(t, m.values, "go_goroutines")
	require.Contains(t, m.values, "process_cpu_seconds_total")
}

// checkHistograms compares with the values that openLoop records: 20 response times of 50 ms to 1 s, and so on; once
// during warm-up, once while measuring, once during the drain.
func checkHistograms(t *testing.T, m metrics) {
	t.Helper()
	require.Len(t, m.histograms, 8-countNonOurs(m))
	for phase, times := range map[string]uint64{"warmup": 1, "measure": 2} {
		response := m.histograms["perfmq_response_seconds phase="+phase]
		require.EqualValues(t, 20*times, response.GetSampleCount())
		require.InDelta(t, 10.5*float64(times), response.GetSampleSum(), 1e-9)
		got := map[float64]uint64{}
		for _, b := range response.GetBucket() {
			got[b.GetUpperBound()] = b.GetCumulativeCount()
		}
		require.Len(t, got, 23) // +Inf is one of them
		// The values include the bounds 50, 100, 250 and 500 ms and 1 s. A histogram of two digits rounds them up, so each
		// counts in the next bucket.
		for bound, n := range map[float64]uint64{0.0001: 0, 0.025: 0, 0.05: 0, 0.1: 1, 0.25: 4, 0.5: 9, 1: 19, 2.5: 20, 100: 20} {
			require.Equal(t, n*times, got[bound], "%s: up to %v in %v", phase, bound, got)
		}
		ack := m.histograms["perfmq_send_ack_seconds phase="+phase]
		require.EqualValues(t, 200*times, ack.GetSampleCount())
		require.InDelta(t, 0.0201*float64(times), ack.GetSampleSum(), 1e-9)
		require.InDelta(t, 0.0001, ack.GetBucket()[3].GetUpperBound(), 1e-12)
		require.EqualValues(t, 100*times, ack.GetBucket()[3].GetCumulativeCount(), "exact below 256 us")
		require.EqualValues(t, 200*times, ack.GetBucket()[4].GetCumulativeCount())
		require.EqualValues(t, 50*times, m.histograms["perfmq_send_delay_seconds phase="+phase].GetSampleCount())
		require.EqualValues(t, 100*times, m.histograms["perfmq_transfer_seconds phase="+phase].GetSampleCount())
	}
}

func countNonOurs(m metrics) int {
	n := 0
	for name := range m.histograms {
		if !strings.HasPrefix(name, "perfmq_") {
			n--
		}
	}
	return n
}

func TestPrometheusBuckets(t *testing.T) {
	t.Parallel()
	l := result.NewLatency()
	l.Record(0)
	l.Record(100 * time.Microsecond)
	l.Record(101 * time.Microsecond)
	l.Record(time.Hour) // above all bounds
	var d dto.Metric
	require.NoError(t, histogramMetric(prometheus.NewDesc("x", "x", nil, nil), l).Write(&d))
	for i, want := range map[int]uint64{0: 1, 2: 1, 3: 2, 4: 3, 21: 3} {
		require.Equal(t, want, d.GetHistogram().GetBucket()[i].GetCumulativeCount(), i)
	}
	require.EqualValues(t, 4, d.GetHistogram().GetSampleCount())
	require.InDelta(t, 3600.000201, d.GetHistogram().GetSampleSum(), 1e-9)
}

// Metrics that do not apply to the role are missing.
func TestPrometheusRoles(t *testing.T) {
	t.Parallel()
	run := clientRun()
	run.Producing, run.Warmup, run.Destinations = false, 0, []string{"queue://\xff"}
	_, url := startPrometheus(t, run)
	m := scrape(t, url)
	m.require(t, map[string]float64{
		"messages_received_total": 0, "phase phase=measure": 1,
		"run_info client=native consumer_client=native consumer_protocol=amqp destinations=queue://\\xff protocol=amqp scenario=": 1,
	})
	require.NotContains(t, m.values, "perfmq_messages_sent_total")
}

func TestPrometheusPages(t *testing.T) {
	t.Parallel()
	_, url := startPrometheus(t, clientRun())
	for _, test := range []struct {
		method, path string
		status       int
		contains     string
	}{
		{http.MethodGet, "/metrics", http.StatusOK, `perfmq_build_info{goversion="go1.`},
		{http.MethodHead, "/metrics", http.StatusOK, ""},
		{http.MethodGet, "/other", http.StatusNotFound, ""},
		{http.MethodPost, "/metrics", http.StatusMethodNotAllowed, ""},
	} {
		status, body := request(t, test.method, url+test.path)
		require.Equal(t, test.status, status, "%s %s", test.method, test.path)
		require.Contains(t, body, test.contains)
	}
}

// Metrics are on loopback unless the address has a host; there, web pages cannot read them.
func TestPrometheusIsLocal(t *testing.T) {
	t.Parallel()
	p := musttest.Get(NewPrometheus(":0", "1.2.3", listen.Web{}, nil))(t)
	defer p.Close()
	require.True(t, p.Address().(*net.TCPAddr).IP.IsLoopback(), p.Address())
	all := musttest.Get(NewPrometheus("0.0.0.0:0", "1.2.3", listen.Web{}, nil))(t)
	defer all.Close()
	require.True(t, all.Address().(*net.TCPAddr).IP.IsUnspecified(), all.Address())
	for _, test := range []struct {
		p      *Prometheus
		host   string
		status int
	}{
		{p, "localhost", http.StatusOK},
		{p, "127.0.0.1:9400", http.StatusOK},
		{p, "evil.example", http.StatusMisdirectedRequest},
		{all, "scraped-by-name.example:9400", http.StatusOK}, // it listens for other machines
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(test.p.Address().(*net.TCPAddr).Port)+"/metrics", nil)
		require.NoError(t, err)
		r.Host, r.Close = test.host, true
		response := musttest.Get(http.DefaultTransport.RoundTrip(r))(t)
		require.NoError(t, response.Body.Close())
		require.Equal(t, test.status, response.StatusCode, test.host)
	}
}
