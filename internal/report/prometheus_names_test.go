package report

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// everything returns the registry of a run with every metric, and the metrics of its last interval.
func everything(t *testing.T) (*prometheus.Registry, []*dto.MetricFamily) {
	t.Helper()
	f := fakeSteps(t, 3, 2, 1)
	f.run.Transacted = true
	f.run.Labels = nil
	f.run.Groups = []stats.RunGroup{{Name: "a", Sends: true, Protocol: "amqp", Client: "native"}, {Name: "b", Receives: true, ConsumerProtocol: "stomp", ConsumerClient: "native"}}
	p := musttest.Get(NewPrometheus("127.0.0.1:0", "1.2.3", listen.Web{}, nil))(t)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	require.NoError(t, p.Start(f.run))
	for _, s := range f.snapshots {
		s.Protocol = []driver.Counter{{Name: "tx-checks", Value: 1}}
		s.Verified = &result.Progress{Received: 1}
		s.Depths = []brokerside.Depth{{Destination: "queue://TEST", Messages: 7}}
		s.Outage = &stats.OutageProgress{}
		side := use(1, time.Second)
		s.BrokerSide = &side
		s.Stalls = []stats.PartStalls{{Side: stats.SendSide, Whole: true}, {Group: "a", Broker: "b"}}
		s.Tester.DelayKnown, s.Tester.MachineAll, s.Tester.Memory = true, 2_000_000, 1<<20
		l := latency(10, time.Millisecond)
		s.Latencies = result.Latencies{result.Delay: l, result.Ack: l, result.Response: l, result.Transfer: l, result.B2C: l, result.S2C: l, result.Commit: l, result.Lateness: l}
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
