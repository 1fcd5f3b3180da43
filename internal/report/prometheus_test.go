package report

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokerside"
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
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
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
		response, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, test.status, response.StatusCode, test.host)
	}
}

// TestPrometheusTester: counters of the tester's health add up over the intervals; gauges have the last value.
func TestPrometheusTester(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun())
	for i := range 3 {
		s := snapshot(stats.Measure, i, stats.Counters{}, closedLoop())
		s.Tester.Memory, s.Tester.Delay, s.Tester.DelayKnown = uint64(1000*(3-i)), 1_000_000, true //nolint:gosec // small
		s.Tester.MachineBusy, s.Tester.MachineAll = 1_000_000, 2_000_000
		s.Tester.Pauses, s.Tester.PauseMax = 1, int64(3-i)*1_000_000
		s.Tester.ClockForward = []int64{0, 5_000_000, 0}[i]
		require.NoError(t, p.Interval(s))
	}
	scrape(t, url).require(t, map[string]float64{
		"tester_cpu_seconds_total": 0.9, "tester_memory_bytes": 1000, "tester_processor_wait_seconds_total": 3,
		"machine_cpu_busy_seconds_total": 3, "machine_cpu_seconds_total": 6,
		"tester_pauses_total": 3, "tester_pause_max_seconds": 3,
		"tester_clock_step_seconds_total direction=forward": 5, "tester_clock_step_seconds_total direction=backward": 0,
	})
}

// TestPrometheusOutages: an outage while it lasts, and after it.
func TestPrometheusOutages(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun())
	s := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	require.NoError(t, p.Interval(s))
	require.NotContains(t, scrape(t, url).values, "perfmq_outages_total", "without --reconnect")
	s.Outage = &stats.OutageProgress{Count: 2, Down: 3, Since: time.Second, Length: 5 * time.Second, Reconnects: 4, InDoubt: 6}
	s.Outage.Attempts[driver.ClassTimeout] = 7
	require.NoError(t, p.Interval(s))
	want := map[string]float64{
		"outages_total": 2, "outage_seconds_total": 5, "outage_age_seconds": 1, "workers_disconnected": 3, "reconnects_total": 4,
		"messages_in_doubt_total": 6, "reconnect_failures_total class=timeout": 7, "reconnect_failures_total class=connect": 0,
	}
	scrape(t, url).require(t, want)
	require.NoError(t, p.Summary(&stats.Summary{}))
	want["outage_age_seconds"], want["workers_disconnected"] = 0, 0
	scrape(t, url).require(t, want)
}

// TestPrometheusStalls: stalls are counted by side and phase; a run that only sends has no receiving side.
func TestPrometheusStalls(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun())
	s := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	s.Stalls = []stats.PartStalls{
		{Side: stats.SendSide, Whole: true, Count: [2]uint64{1, 2}, Length: [2]time.Duration{time.Second, 3 * time.Second}},
		{Side: stats.ReceiveSide, Whole: true, Count: [2]uint64{0, 1}, Length: [2]time.Duration{0, 2 * time.Second}},
	}
	require.NoError(t, p.Interval(s))
	scrape(t, url).require(t, map[string]float64{
		"stalls_total phase=warmup side=send": 1, "stall_seconds_total phase=warmup side=send": 1,
		"stalls_total phase=measure side=send": 2, "stall_seconds_total phase=measure side=send": 3,
		"stalls_total phase=measure side=receive": 1, "stall_seconds_total phase=measure side=receive": 2,
		"stalls_total phase=warmup side=receive": 0,
	})
	run := clientRun()
	run.Consuming = false
	_, url = startPrometheus(t, run)
	require.NotContains(t, scrape(t, url).values, "perfmq_stalls_total phase=measure side=receive")
}

// TestPrometheusStallsOfParts: stalls are counted by group and broker if there are several, with names of one line.
func TestPrometheusStallsOfParts(t *testing.T) {
	t.Parallel()
	parts := []stats.PartStalls{
		{Broker: "h:1", Side: stats.SendSide, Count: [2]uint64{0, 2}, Length: [2]time.Duration{0, 5 * time.Second}},
		{Group: "a\n", Broker: "b", Side: stats.ReceiveSide, Count: [2]uint64{1, 0}, Length: [2]time.Duration{3 * time.Second, 0}},
	}
	for _, groups := range []int{1, 2} {
		run := clientRun()
		run.Groups = []stats.RunGroup{{Name: "a\n"}, {Name: "c"}}[:groups]
		p, url := startPrometheus(t, run)
		s := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
		s.Stalls = parts
		require.NoError(t, p.Interval(s))
		got := scrape(t, url)
		got.require(t, map[string]float64{
			"group_stalls_total broker=h:1 group= phase=measure side=send": 2, "group_stall_seconds_total broker=h:1 group= phase=measure side=send": 5,
			"group_stalls_total broker=h:1 group= phase=warmup side=send": 0,
		})
		require.EqualValues(t, groups-1, got.sum("perfmq_group_stalls_total")-2)
	}
}

// TestPrometheusEnd tests the metrics of the summary.
func TestPrometheusEnd(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun())
	before := scrape(t, url)
	for _, name := range []string{"run_success", "run_problems", "messages_expected", "run_rate", "run_end_time_seconds"} {
		require.Zero(t, before.sum("perfmq_"+name), name)
	}
	s := numbersRun()
	s.Expected, s.Missing = new(uint64(8900)), new(uint64(900))
	s.Brokers = []result.Broker{{Protocol: "amqp", Product: "Artemis", Version: "2.56"}, {Protocol: "amqp", Product: "Artemis", Version: "2.56"}}
	s.BrokerCount = &result.BrokerCount{Destinations: []result.DestinationCount{counted("queue://A", 10, 10, 0, 13, 10, 0, 9)}}
	s.Thresholds, s.Findings = fakeThresholds(), append(s.Findings, said([]string{"a", "b"}, "c")...)
	s.Limit = &result.Limit{Kind: result.LimitMaxPending}
	require.NoError(t, p.Summary(s))
	scrape(t, url).require(t, map[string]float64{
		"run_success": 1, "messages_expected": 8900, "messages_missing": 900, "run_problems": 2, "run_warnings": 1,
		"run_end_time_seconds":                      float64(s.End/1000) / 1000,
		"run_rate messages=sent value=average":      880,
		"run_rate messages=completed value=average": 879,
		"run_rate messages=received value=average":  800,
		"run_rate messages=completed value=minimum": 870, "run_rate messages=completed value=maximum": 1012.4,
		"run_rate messages=received value=maximum": 999.6,
		"run_rate_missed_ratio":                    0.01, "run_limit_info limit=max-pending": 1,
		"broker_info broker= product=Artemis protocol=amqp side= version=2.56": 1,
		"broker_counted_messages count=added":                                  13, "broker_count_difference count=added": 3,
		"broker_counted_messages count=acknowledged": 9, "broker_count_difference count=acknowledged": -1,
		"threshold_kept step= threshold=ack.p99 < 50ms": 1, "threshold_kept step= threshold=failed == 0": 0,
		"run_findings kind=stall": 5,
	})
}

// TestPrometheusThresholds: of many thresholds, all that fail have a series; of two with one name, the failed one
// has it.
func TestPrometheusThresholds(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun())
	s := numbersRun()
	passes, fails := fakeThresholds()[0], fakeThresholds()[1]
	for i := range 5*namedSeries + 10 {
		passes.Step = fmt.Sprint(i)
		s.Thresholds = append(s.Thresholds, passes)
	}
	for range 2 * namedSeries {
		s.Thresholds = append(s.Thresholds, fails)
	}
	passes.Step, fails.Step = strings.Repeat("s", maxLabel)+"1", strings.Repeat("s", maxLabel)+"2"
	fails.Threshold = passes.Threshold
	s.Thresholds = append(s.Thresholds, passes, fails)
	require.NoError(t, p.Summary(s))
	got := scrape(t, url)
	got.require(t, map[string]float64{
		"threshold_kept step= threshold=failed == 0": 0, "threshold_kept step=0 threshold=ack.p99 < 50ms": 1,
		"threshold_kept step=" + strings.Repeat("s", maxLabel) + " threshold=ack.p99 < 50ms": 0,
	})
	require.EqualValues(t, 5*namedSeries-2, got.sum("perfmq_threshold_kept"))
}

// TestPrometheusBounds: the number of series is bounded for any number and length of destinations and steps.
func TestPrometheusBounds(t *testing.T) {
	t.Parallel()
	run := clientRun()
	run.Destinations = nil
	for i := range 1000 {
		run.Destinations = append(run.Destinations, fmt.Sprintf("queue://%d", i))
		run.Steps = append(run.Steps, fmt.Sprintf("step-%d", i))
	}
	p, url := startPrometheus(t, run)
	s := snapshot(stats.Measure, 0, stats.Counters{result.Sent: 1, result.Completed: 1}, closedLoop())
	s.Step = strings.Repeat("é", 500)
	require.NoError(t, p.Interval(s))
	m := scrape(t, url)
	m.require(t, map[string]float64{"messages_sent_total": 1, "step_info step=" + strings.Repeat("é", 32): 1})
	for name := range m.values {
		if strings.HasPrefix(name, "perfmq_run_info") {
			require.Contains(t, name, ",queue://19 and 980 more ")
		}
	}
}

// TestPrometheusGroupInfo: perfmq_group_info maps groups to roles and protocols.
func TestPrometheusGroupInfo(t *testing.T) {
	t.Parallel()
	f := groupRun(30)
	for i := range f.run.Groups {
		g := &f.run.Groups[i]
		g.Protocol, g.Client = "amqp", "native"
		g.ConsumerProtocol, g.ConsumerClient = "stomp", "go-stomp"
	}
	f.run.Groups[1].Receives = true
	_, url := startPrometheus(t, f.run)
	m := scrape(t, url)
	m.require(t, map[string]float64{
		"group_info client=native group=senders-0 protocol=amqp role=producer":    1,
		"group_info client=native group=senders-1 protocol=amqp role=producer":    1,
		"group_info client=go-stomp group=senders-1 protocol=stomp role=consumer": 1,
	})
	require.EqualValues(t, result.MaxRowGroups+1, m.sum("perfmq_group_info"), "one of them has both roles")
}

// TestPrometheusLabels: all series have the labels of the user, also if two names become one.
func TestPrometheusLabels(t *testing.T) {
	t.Parallel()
	run := clientRun()
	run.Labels = map[string]string{"a-b": "1", "a_b": "2"}
	_, url := startPrometheus(t, run)
	require.Contains(t, scrape(t, url).values, "perfmq_workers label_a_b=1 label_a_b_2=2")
}

// everything returns the registry of a run with every metric, and the metrics of its last interval.
func everything(t *testing.T) (*prometheus.Registry, []*dto.MetricFamily) {
	t.Helper()
	f := fakeSteps(t, 3, 2, 1)
	f.run.Transacted, f.run.Opening = true, true
	f.run.Requests, f.run.Responds = true, true
	f.run.Labels = nil
	f.run.Groups = []stats.RunGroup{{Name: "a", Sends: true, Protocol: "amqp", Client: "native"}, {Name: "b", Receives: true, ConsumerProtocol: "stomp", ConsumerClient: "native"}}
	p := musttest.Get(NewPrometheus("127.0.0.1:0", "1.2.3", listen.Web{}, nil))(t)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	p.collector.remote = &RemoteWrite{}
	require.NoError(t, p.Start(f.run))
	for _, s := range f.snapshots {
		s.Protocol = []driver.Counter{{Name: "tx-checks", Value: 1}}
		s.Verified = &result.Progress{Received: 1}
		s.Depths = []brokerside.Depth{{Destination: "queue://TEST", Messages: 7}}
		s.Outage = &stats.OutageProgress{}
		side := use(1, time.Second)
		s.BrokerSide = &side
		s.Stalls = []stats.PartStalls{{Side: stats.SendSide, Whole: true}, {Group: "a", Broker: "b"}}
		s.Tester.Delay, s.Tester.MachineBusy, s.Tester.MachineAll, s.Tester.Memory = 1, 1, 2_000_000, 1<<20
		l := latency(10, time.Millisecond)
		for i := range s.Latencies {
			s.Latencies[i] = l
		}
		s.Total.Consumers.Delayed, s.Total.Consumers.Rejected = 1, 1
		for _, g := range f.run.Groups {
			s.Groups = append(s.Groups, result.RowGroup{Name: g.Name, Latencies: &s.Latencies})
		}
		require.NoError(t, p.Interval(s))
	}
	during := musttest.Get(p.registry.Gather())(t)
	s := numbersRun()
	s.Expected, s.Missing = new(uint64), new(uint64)
	s.Total.Consumers.Delayed, s.Total.Consumers.Rejected = 1, 1
	s.Verification = &result.Verification{Known: true}
	s.Brokers = []result.Broker{{Name: "b", Protocol: "amqp", Product: "Artemis", Version: "2.56"}, {Name: "b", Protocol: "amqp", Product: "Artemis", Version: "2.56"}}
	s.BrokerCount = &result.BrokerCount{Destinations: []result.DestinationCount{counted("queue://A", 10, 10, 0, 13, 10, 0, 9)}}
	s.BrokerCount.Destinations[0].Depth = new(uint64(4))
	s.Thresholds = slices.Concat(fakeThresholds(), fakeThresholds())
	s.Limit, s.Counters = &result.Limit{Kind: result.LimitNone}, []driver.Counter{{Name: "tx-checks", Value: 1}}
	require.NoError(t, p.Summary(s))
	return p.registry, during
}

// TestMetricNames holds the names, types and labels of all metrics against docs/prometheus.md. Renaming or removing a
// metric or a label breaks the dashboards and alerts of users: it needs a line under Changed in CHANGELOG.md.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	registry, during := everything(t)
	families := musttest.Get(registry.Gather())(t)
	for _, f := range during {
		if f.GetName() == "perfmq_step_info" { // after the end there is no present step
			families = append(families, f)
		}
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "perfmq_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		kind := strings.ToLower(f.GetType().String())
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.GetName(), kind, strings.Join(labels, ", "), strings.ReplaceAll(f.GetHelp(), "|", "\\|"))
	}
	documented(t, "metrics", table.String())
	problems := musttest.Get(testutil.GatherAndLint(registry))(t)
	require.Empty(t, problems)
}

// documented compares the part of docs/prometheus.md between two marks.
func documented(t *testing.T, mark, want string) {
	t.Helper()
	const page = "../../docs/prometheus.md"
	text := musttest.Get(os.ReadFile(page))(t)
	before, rest, ok := strings.Cut(string(text), "<!-- "+mark+" -->\n")
	require.True(t, ok)
	got, after, ok := strings.Cut(rest, "<!-- end -->\n")
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+"<!-- "+mark+" -->\n"+want+"<!-- end -->\n"+after), 0o644)) //nolint:gosec // a page of the project
		return
	}
	require.Equal(t, want, got, "after a change that is meant: go test ./internal/report -run TestMetricNames -update")
}
