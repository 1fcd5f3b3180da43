package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

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
