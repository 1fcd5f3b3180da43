package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/result"
)

// foundEverything returns a verification with every kind of finding and different numbers.
func foundEverything() *verify.Result {
	first := func(producer int64, numbers ...uint64) (list []verify.Message) {
		for _, n := range numbers {
			list = append(list, verify.Message{Run: 1, Producer: producer, Number: n})
		}
		return list
	}
	counts := result.Verified{
		Expected: 1_000_000, Received: 999_970, Once: 999_950, Lost: 30, Left: 21, Early: 22, Duplicates: 20, Redelivered: 15,
		Disordered: 12, DisorderedRedelivered: 4, Damaged: 7, Illegible: 2, Foreign: 5, UnconfirmedArrived: 3, UnconfirmedMissing: 1,
		RefusedArrived: 6, WithheldArrived: 8, Gaps: 9,
	}
	return &verify.Result{
		Verification: result.Verification{Known: true, Sent: 500_010, Total: counts, Notes: []string{"a note"}},
		Scopes: []verify.Scope{
			{
				Subscription: scope("topic://A", "consumer-0", result.Verified{Expected: 500_000, Lost: 30, Duplicates: 20}),
				Examples: map[verify.Kind][]verify.Message{
					verify.Lost: append(first(0, 17, 18), first(3, 5)...), verify.Duplicated: first(1, 1, 2, 3, 4, 5),
				},
			},
			{Subscription: scope("topic://A", "consumer-1", result.Verified{Expected: 500_000})},
			{
				Subscription: scope("topic://B", "me:\x1bsub",
					result.Verified{Disordered: 12, Damaged: 7, Left: 21, RefusedArrived: 6, WithheldArrived: 8}),
				Examples: map[verify.Kind][]verify.Message{verify.Disordered: first(0, 99), verify.Damaged: first(0, 98), verify.Lost: first(9, 9, 10, 11)},
			},
		},
	}
}

func scope(destination, name string, v result.Verified) result.Subscription {
	return result.Subscription{Destination: destination, Name: name, Known: true, Verified: v}
}

func TestVerification(t *testing.T) {
	t.Parallel()
	golden(t, "verification-everything.txt", Verification(foundEverything(), []string{"a problem"}))
	golden(t, "verification-nothing.txt", Verification(&verify.Result{
		Verification: result.Verification{
			Known: true, Sent: 100, Total: result.Verified{Expected: 100, Received: 100, Once: 100},
		},
		Scopes: []verify.Scope{{Subscription: scope("queue://A", "", result.Verified{})}},
	}, nil))
	golden(t, "verification-unknown.txt", Verification(&verify.Result{
		Verification: result.Verification{Total: result.Verified{Received: 100, Once: 100, Gaps: 3}},
		Scopes:       []verify.Scope{{Subscription: scope("queue://A", "", result.Verified{})}},
	}, nil))
}

func verifiedRun() *stats.Summary {
	s := summary(stats.Counters{result.Sent: 10, result.Completed: 10, result.Received: 10}, closedLoop())
	s.Verified = foundEverything()
	s.Verification = s.Verified.Verified()
	return s
}

func TestVerificationInTheSummary(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := NewConsole(&out, ConsoleOptions{})
	require.NoError(t, c.Start(clientRun()))
	require.NoError(t, c.Summary(verifiedRun()))
	golden(t, "console-verified.txt", out.String())

	producer := summary(stats.Counters{result.Sent: 10, result.Completed: 10}, result.Latencies{})
	producer.Verified = &verify.Result{Verification: result.Verification{Sent: 10}}
	out.Reset()
	require.NoError(t, c.Summary(producer))
	require.NotContains(t, out.String(), "verified")
}

func TestVerificationInMetrics(t *testing.T) {
	t.Parallel()
	found := func(c *collector) map[string]float64 { return verifiedMetrics(t, c) }
	c := newCollector("v")
	c.start(clientRun())
	require.Empty(t, found(c))
	snap := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	snap.Verified = &result.Progress{Received: 1, Duplicates: 2, Redelivered: 3, AfterOutage: 7, Resent: 9, Disordered: 4, Damaged: 5, Foreign: 6}
	c.interval(snap)
	require.Equal(t, map[string]float64{
		"received": 1, "duplicates": 2, "redelivered": 3, "duplicates_after_outage": 7, "duplicates_resent": 9, "out_of_order": 4, "damaged": 5, "foreign": 6,
	}, found(c))
	c.summary(verifiedRun())
	require.Equal(t, map[string]float64{
		"received": 999_970, "duplicates": 20, "redelivered": 15, "duplicates_after_outage": 0, "duplicates_resent": 0, "out_of_order": 12, "damaged": 7, "foreign": 5,
		"expected": 1_000_000, "lost": 30, "arrived_late": 0, "left": 21, "unconfirmed_arrived": 3, "unconfirmed_missing": 1,
		"refused_arrived": 6, "rolled_back_arrived": 8,
	}, found(c))
}

// verifiedMetrics returns the verification's metrics of a scrape.
func verifiedMetrics(t *testing.T, c *collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families := musttest.Get(registry.Gather())(t)
	found := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "perfmq_verified_messages_total" {
			for _, m := range f.GetMetric() {
				found[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return found
}

// counted returns a destination with the broker's counts.
func counted(name string, sent, accepted, unconfirmed, added, received, again, acknowledged uint64) result.DestinationCount {
	return result.DestinationCount{
		Destination: name, Sent: sent, Received: received,
		Added:        &result.Compared{Count: added, Least: accepted, Most: accepted + unconfirmed},
		Acknowledged: &result.Compared{Count: acknowledged, Least: received - again, Most: received},
	}
}

func TestBrokerCountInWords(t *testing.T) {
	t.Parallel()
	unknown := result.DestinationCount{Destination: "queue://U", Sent: 5, Why: "broken"}
	check := func(name, want string, notes []string, list ...result.DestinationCount) {
		var b strings.Builder
		writeBrokerCount(&b, &result.BrokerCount{Destinations: list, Notes: notes})
		assert.Equal(t, want, strings.ReplaceAll(b.String(), "--- broker's count: ", ""), name)
	}
	check("nothing", "", nil)
	check("equal", "added 320000, sent 320000: equal\nacknowledged 320000, received 320000: equal\n",
		nil, counted("queue://A", 320000, 320000, 0, 320000, 320000, 0, 320000))
	check("differs", "added 320003, sent 320000: DIFFERS by 3\nacknowledged 319998, received 320000: DIFFERS by -2\n",
		nil, counted("queue://A", 320000, 320000, 0, 320003, 320000, 0, 319998))
	check("some were refused", "added 300, accepted 300: equal\nacknowledged 300, received 300: equal\n",
		nil, counted("queue://A", 320, 300, 0, 300, 300, 0, 300))
	check("in doubt", "added 318, accepted 315 to 320: possible\nacknowledged 318, received 318 to 320: possible\n",
		nil, counted("queue://A", 320, 315, 5, 318, 320, 2, 318))
	check("beyond doubt", "added 323, accepted 315 to 320: DIFFERS by 3\nacknowledged 317, received 318 to 320: DIFFERS by -1\n",
		nil, counted("queue://A", 320, 315, 5, 323, 320, 2, 317))
	check("one more and one less", "added 30, sent 30: DIFFERS by 0 (queue://A by 2, queue://B by -2)\nacknowledged 0, received 0: equal\n",
		nil, counted("queue://A", 10, 10, 0, 12, 0, 0, 0), counted("queue://B", 10, 10, 0, 8, 0, 0, 0), counted("queue://C", 10, 10, 0, 10, 0, 0, 0))
	check("partly known", "added 10, sent 10: equal (of 1 of 2 destinations)\nacknowledged 10, received 10: equal (of 1 of 2 destinations)\nbroken\n",
		[]string{"broken"}, counted("queue://A", 10, 10, 0, 10, 10, 0, 10), unknown)
	check("a note", "no \\x1b[2J\n", []string{"no \x1b[2J"})
	var b strings.Builder
	writeBrokerCount(&b, nil)
	require.Empty(t, b.String())
}

// The counts are in all outputs; a difference is a finding that does not fail the run.
func TestBrokerCountInOutputs(t *testing.T) {
	t.Parallel()
	r, dir := newTestResult(t, ResultOptions{})
	path := filepath.Join(t.TempDir(), "json")
	j := musttest.Get(NewJSON(path, ResultOptions{}))(t)
	metrics := musttest.Get(NewPrometheus("127.0.0.1:0", "1.2.3", listen.Web{}, nil))(t)
	var console bytes.Buffer
	f := NewFan(r, j, NewConsole(&console, ConsoleOptions{}), metrics)
	f.Secrets.Add("u", "hunter2")
	require.NoError(t, f.Start(clientRun()))
	interval := snapshot(stats.Measure, 0, stats.Counters{}, closedLoop())
	for i := range 25 {
		interval.Depths = append(interval.Depths, brokerside.Depth{Destination: "queue://" + string(rune('a'+i)), Messages: uint64(i)}) //nolint:gosec // small
	}
	interval.Depths[0].Destination = "queue://hunter2"
	interval.Backlog = brokerside.Backlog(interval.Depths)
	require.NoError(t, f.Interval(interval))
	_, scraped := request(t, "GET", "http://"+metrics.Address().String()+"/metrics")
	require.Contains(t, scraped, `perfmq_destination_depth{destination="queue://t"} 19`)
	require.Contains(t, scraped, "perfmq_backlog_messages 300")
	require.Equal(t, 20, strings.Count(scraped, "\nperfmq_destination_depth{"))

	s := summary(stats.Counters{}, closedLoop())
	s.BrokerCount = &result.BrokerCount{
		Destinations: []result.DestinationCount{counted("queue://A", 10, 10, 0, 13, 10, 0, 9)}, Notes: []string{"hunter2"},
	}
	s.BrokerCount.Destinations[0].Depth = new(uint64(4))
	require.NoError(t, f.Summary(s))
	_, scraped = request(t, "GET", "http://"+metrics.Address().String()+"/metrics")
	require.Contains(t, scraped, `perfmq_destination_depth{destination="queue://A"} 4`)
	require.NoError(t, f.Close())
	got := musttest.Get(result.Read(dir))(t)
	require.True(t, got.Outcome.Success)
	require.EqualValues(t, 300, *got.Rows[0].Backlog)
	depth := uint64(4)
	require.Equal(t, &result.BrokerCount{Notes: []string{"***"}, Destinations: []result.DestinationCount{{
		Destination: "queue://A", Sent: 10, Received: 10, Added: &result.Compared{Count: 13, Least: 10, Most: 10},
		Acknowledged: &result.Compared{Count: 9, Least: 10, Most: 10}, Depth: &depth,
	}}}, got.BrokerCount)
	text := musttest.Get(os.ReadFile(path))(t)
	require.Contains(t, string(text), `"backlog":300`)
	require.Contains(t, string(text), `"brokerCount":{"destinations":[{"destination":"queue://A","sent":10,"added":{"count":13,"least":10,"most":10},`)
	for _, out := range []string{string(text), console.String(), scraped} {
		require.NotContains(t, out, "hunter2")
	}
}
