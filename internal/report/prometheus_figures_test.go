package report

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// scrapeNative scrapes over protobuf, as a Prometheus that wants native histograms does.
func scrapeNative(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	r.Close = true
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer response.Body.Close()
	decoder := expfmt.NewDecoder(response.Body, expfmt.ResponseFormat(response.Header))
	families := map[string]*dto.MetricFamily{}
	for {
		var f dto.MetricFamily
		if decoder.Decode(&f) != nil {
			return families
		}
		families[f.GetName()] = &f
	}
}

// nativeBuckets returns the counts of the buckets by their upper bounds.
func nativeBuckets(h *dto.Histogram) map[float64]int64 {
	buckets := map[float64]int64{}
	var index int32
	var count int64
	next := 0
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.GetPositiveDelta()[next]
			buckets[math.Exp2(float64(index)/math.Exp2(float64(h.GetSchema())))] = count
			next++
			index++
		}
	}
	return buckets
}

// TestPrometheusNative: each value is in the native bucket of its bar in the HdrHistogram, and classic buckets exist,
// too.
func TestPrometheusNative(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun(false))
	values := []time.Duration{0, time.Microsecond, 200 * time.Microsecond, 201 * time.Microsecond, time.Second, time.Second, 2 * time.Second, time.Hour, 24 * time.Hour}
	l := result.NewLatency()
	for _, v := range values {
		l.Record(v)
	}
	require.NoError(t, p.Interval(snapshot(stats.Measure, 0, stats.Counters{result.Sent: 9}, result.Latencies{result.Ack: l})))
	h := scrapeNative(t, url)["perfmq_send_ack_seconds"].GetMetric()[0].GetHistogram()
	require.EqualValues(t, 3, h.GetSchema())
	require.EqualValues(t, 1, h.GetZeroCount())
	require.EqualValues(t, len(values), h.GetSampleCount())
	require.Len(t, h.GetBucket(), 22, "and the classic ones")
	got := nativeBuckets(h)
	want := map[float64]int64{}
	for _, bar := range l.Histogram.Bars() {
		if bar.UpTo == 0 {
			return
		}
		v, found := float64(bar.UpTo)/1e6, false
		for bound := range got {
			if lower := bound * math.Exp2(-1.0/8); v <= bound && v > lower*(1+1e-12) {
				want[bound] += bar.Count
				found = true
			}
		}
		require.True(t, found, "%d us are in no bucket of %v", bar.UpTo, got)
	}
	require.Equal(t, want, got)
	require.EqualValues(t, 0, got[1], "a second is not exact in a histogram of two digits: it counts above")
	require.Less(t, len(h.GetPositiveSpan()), 8)

	l = result.NewLatency()
	for us := int64(1); us < int64(24*time.Hour/time.Microsecond); us += 1 + us/64 {
		l.Record(time.Duration(us) * time.Microsecond)
	}
	b := newBuckets()
	b.add(l)
	require.Less(t, len(b.native), 320, "the number of buckets is bounded")
}

// TestNativeIndex: bounds belong to the bucket below them.
func TestNativeIndex(t *testing.T) {
	t.Parallel()
	for us, want := range map[int64]int{1_000_000: 0, 1_000_001: 1, 2_000_000: 8, 2_000_001: 9, 500_000: -8, 500_001: -7, 125_000: -24, 4_000_000: 16} {
		require.Equal(t, want, nativeIndex(us), us)
	}
}

// TestPrometheusTester: counters of the tester's health add up over the intervals; gauges have the last value.
func TestPrometheusTester(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun(false))
	for i := range 3 {
		s := snapshot(stats.Measure, i, stats.Counters{}, closedLoop())
		s.Health.Memory, s.Health.Delay, s.Health.DelayKnown = uint64(1000*(3-i)), time.Second, true //nolint:gosec // small
		s.Health.Machine, s.Health.MachineAll, s.Health.WasCrowded = time.Second, 2*time.Second, i == 1
		s.Health.Pauses, s.Health.PauseMax = 1, time.Duration(3-i)*time.Second
		s.Health.ClockForward = []time.Duration{0, 5 * time.Second, 10 * time.Microsecond}[i]
		s.Health.Saturated = uint64(2 - min(i, 1))
		require.NoError(t, p.Interval(s))
	}
	scrape(t, url).require(t, map[string]float64{
		"tester_cpu_seconds_total": 0.9, "tester_memory_bytes": 1000, "tester_processor_wait_seconds_total": 3,
		"machine_cpu_busy_seconds_total": 3, "machine_cpu_seconds_total": 6, "machine_crowded_seconds_total": 1.01,
		"tester_pauses_total": 3, "tester_pause_max_seconds": 3, "tester_workers_saturated": 1,
		"tester_clock_step_seconds_total direction=forward": 5, "tester_clock_step_seconds_total direction=backward": 0,
	})
}

// TestPrometheusOutages: an outage while it goes on, and after it.
func TestPrometheusOutages(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun(false))
	s := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	require.NoError(t, p.Interval(s))
	require.NotContains(t, scrape(t, url).values, "perfmq_outages_total", "without --reconnect")
	s.Outages = &stats.OutageProgress{Count: 2, Down: 3, Since: time.Second, Length: 5 * time.Second, Reconnects: 4, InDoubt: 6}
	s.Outages.Attempts[driver.ClassTimeout] = 7
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

// TestPrometheusHosts: the messages at each host, of a URL that names several; of many hosts the last ones together.
func TestPrometheusHosts(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun(false))
	s := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	require.NoError(t, p.Interval(s))
	require.NotContains(t, scrape(t, url).values, "perfmq_host_messages_sent_total host=a:1", "one host")
	s.Hosts = []result.BrokerHost{
		{Name: "a:1", Sent: 10, Completed: 8, Received: 5}, {Name: "b:\x1b2"},
	}
	require.NoError(t, p.Interval(s))
	scrape(t, url).require(t, map[string]float64{
		"host_messages_sent_total host=a:1": 10, "host_messages_completed_total host=a:1": 8, "host_messages_received_total host=a:1": 5,
		`host_messages_sent_total host=b:\x1b2`: 0,
	})
	var many []result.BrokerHost
	for i := range uint64(23) {
		many = append(many, result.BrokerHost{Name: fmt.Sprintf("h%d", i), Sent: i})
	}
	require.NoError(t, p.Summary(&stats.Summary{Hosts: many}))
	got := scrape(t, url)
	got.require(t, map[string]float64{
		"host_messages_sent_total host=h19": 19, "host_messages_sent_total host=(others)": 20 + 21 + 22,
	})
	require.NotContains(t, got.values, "perfmq_host_messages_sent_total host=h20")
}

// TestPrometheusStalls: stalls are counted by side and phase; a run that only sends has no receiving side.
func TestPrometheusStalls(t *testing.T) {
	t.Parallel()
	p, url := startPrometheus(t, clientRun(false))
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
	run := clientRun(false)
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
		run := clientRun(false)
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
	p, url := startPrometheus(t, clientRun(true))
	before := scrape(t, url)
	for _, name := range []string{"run_success", "run_problems", "messages_expected", "run_rate", "run_end_time_seconds"} {
		require.Zero(t, before.sum("perfmq_"+name), name)
	}
	s := numbersRun()
	s.ExpectedKnown, s.Expected, s.Missing = true, 8900, 900
	s.Brokers = []result.Broker{{Protocol: "amqp", Product: "Artemis", Version: "2.56"}, {Protocol: "amqp", Product: "Artemis", Version: "2.56"}}
	s.BrokerCount = &result.BrokerCount{Destinations: []result.DestinationCount{counted("queue://A", 10, 10, 0, 13, 10, 0, 9)}}
	s.Thresholds, s.Findings = fakeThresholds(), append(s.Findings, said([]string{"a", "b"}, "c")...)
	s.Limit = result.Limit{Kind: result.LimitMaxPending}
	require.NoError(t, p.Summary(s))
	scrape(t, url).require(t, map[string]float64{
		"run_success": 1, "messages_expected": 8900, "messages_missing": 900, "run_problems": 2, "run_warnings": 1,
		"run_end_time_seconds":                      float64(s.End.UnixMilli()) / 1000,
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

// TestPrometheusBounds: the number of series is bounded for any number and length of destinations and steps.
func TestPrometheusBounds(t *testing.T) {
	t.Parallel()
	run := clientRun(false)
	run.Destinations = nil
	for i := range 1000 {
		run.Destinations = append(run.Destinations, fmt.Sprintf("queue://%d", i))
		run.Steps = append(run.Steps, fmt.Sprintf("step-%d", i))
	}
	run.Steps[7] = strings.Repeat("é", 500)
	run.Steps[8] = run.Steps[7] + "2"
	p, url := startPrometheus(t, run)
	for i, name := range run.Steps {
		s := snapshot(stats.Measure, i, stats.Counters{result.Sent: 1, result.Completed: 1}, closedLoop())
		s.Step = name
		require.NoError(t, p.Interval(s))
	}
	m := scrape(t, url)
	require.EqualValues(t, 1000, m.sum("perfmq_messages_sent_total"))
	m.require(t, map[string]float64{
		"messages_sent_total step=step-6": 1, "messages_sent_total step=" + strings.Repeat("é", 32): 2, "messages_sent_total step=others": 950,
	})
	series := 0
	for name := range m.values {
		if strings.HasPrefix(name, "perfmq_messages_sent_total") {
			series++
		}
		if strings.HasPrefix(name, "perfmq_run_info") {
			require.Contains(t, name, ",queue://19 and 980 more ")
		}
	}
	require.Equal(t, 50, series)
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
	require.EqualValues(t, namedGroups+1, m.sum("perfmq_group_info"), "others may have any")
}
