//go:build unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/scenarios"
)

// TestLongOnes: names that no scenario has would leave nothing out.
func TestLongOnes(t *testing.T) {
	t.Parallel()
	shipped, err := scenario.Shipped(scenarios.FS())
	require.NoError(t, err)
	var names []string
	for _, info := range shipped {
		names = append(names, info.Name)
	}
	require.Subset(t, names, longOnes())
}

func TestPage(t *testing.T) {
	t.Parallel()
	measured := 41.7
	kept := &result.Result{
		Total:      result.Counts{Producers: &result.Producers{Sent: 10}, Consumers: &result.Consumers{Received: 9}},
		Thresholds: []result.Threshold{{Threshold: "lost == 0", Measured: new(float64), Kept: true}},
		BrokerCount: &result.BrokerCount{Destinations: []result.DestinationCount{{
			Added: &result.Compared{Count: 10, Least: 10, Most: 10}, Acknowledged: &result.Compared{Count: 9, Least: 9, Most: 9},
		}}},
	}
	missed := &result.Result{
		Thresholds:  []result.Threshold{{Step: "one", Threshold: "ack.p99 < 5ms", Measured: &measured}, {Threshold: "x.min > 1"}},
		BrokerCount: &result.BrokerCount{Destinations: []result.DestinationCount{{Added: &result.Compared{Count: 13, Least: 10, Most: 10}}}},
	}
	outcomes := []outcome{
		{scenario: "smoke/a", broker: "B 1", took: 1900 * time.Millisecond, result: kept},
		{scenario: "smoke/b", broker: "B 1", status: 3, result: missed},
		{scenario: "smoke/c", broker: "B 1", status: 4, output: "error: no broker"},
		{scenario: "smoke/d", broker: "B 1", status: 130, limited: true},
	}
	rows := strings.Split(page(outcomes, "1", ""), "\n")
	require.Contains(t, rows, "| smoke/a | B 1 | 2s | 10 | 9 | passed | 1 of 1 | 2 equal |")
	require.Contains(t, rows, "| smoke/b | B 1 | 0s | 0 | 0 | a threshold was not kept | "+
		"0 of 2; not kept: one: ack.p99 < 5ms (measured 42), x.min > 1 (nothing measured) | 1 of 1 DIFFER |")
	require.Contains(t, rows, "| smoke/c | B 1 | 0s | 0 | 0 | failed, status 4 |  | not asked |")
	require.Contains(t, rows, "| smoke/d | B 1 | 0s | 0 | 0 | not finished: -limit ended it |  | not asked |")
	err := failures(outcomes)
	require.ErrorContains(t, err, "smoke/b")
	require.ErrorContains(t, err, "smoke/c on B 1: failed, status 4\nerror: no broker")
	require.NotContains(t, err.Error(), "smoke/a")
}
