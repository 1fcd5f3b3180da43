package report

import (
	"bytes"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

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
		"expected": 1_000_000, "lost": 30, "left": 21, "unconfirmed_arrived": 3, "unconfirmed_missing": 1,
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
