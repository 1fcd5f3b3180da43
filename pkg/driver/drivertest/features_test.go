package drivertest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// TestFeaturesAreRecorded: what the suite found out is in the file, and only when all of it ran.
func TestFeaturesAreRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	t.Setenv(drivertest.FeaturesEnv, dir)
	b := mem.New()
	cfg := memConfig(b, b.Factory())
	cfg.Broker = "Memory 1/2"
	cfg.Factory.Title = "The Protocol"
	cfg.Lacks = map[drivertest.Feature]string{drivertest.Selector: "it understands only equality"}
	cfg.Selector = "color > 'blue'"
	all := t.Run("suite", func(t *testing.T) { drivertest.Run(t, cfg) })
	require.True(t, all)

	text, err := os.ReadFile(filepath.Join(dir, "the-protocol-memory-1-2.json"))
	require.NoError(t, err)
	var r drivertest.Results
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, "The Protocol", r.Protocol)
	require.Equal(t, "Memory 1/2", r.Broker)
	states := map[drivertest.Feature]drivertest.FeatureResult{}
	for _, f := range r.Features {
		require.NotContains(t, states, f.Feature, "each feature once")
		states[f.Feature] = f
	}
	require.Len(t, states, len(drivertest.Features()))
	require.Equal(t, drivertest.Works, states[drivertest.Queues].State)
	require.Equal(t, drivertest.Works, states[drivertest.Topics].State)
	require.Equal(t, drivertest.FeatureResult{
		Feature: drivertest.Selector, State: drivertest.BrokerLacks, Reason: "it understands only equality",
	}, states[drivertest.Selector])
	for _, c := range r.Checks {
		require.True(t, c.Passed, c.Name)
	}
	require.Greater(t, len(r.Checks), 30)
}

// TestFeatureStates: what becomes of checks that fail, or are not made.
func TestFeatureStates(t *testing.T) {
	f := driver.Factory{Title: "P"}
	type check struct {
		feature     drivertest.Feature
		refused     bool
		byBroker    bool
		ran, passed bool
	}
	for name, c := range map[string]struct {
		checks []check
		want   []drivertest.FeatureResult
	}{
		"works":    {[]check{{feature: "TTL", ran: true, passed: true}}, []drivertest.FeatureResult{{Feature: "TTL", State: drivertest.Works}}},
		"basic":    {[]check{{ran: true, passed: true}}, nil},
		"one of 2": {[]check{{feature: "TTL", ran: true, passed: true}, {feature: "TTL", ran: true}}, []drivertest.FeatureResult{{Feature: "TTL", State: drivertest.Broken}}},
		"other":    {[]check{{feature: "TTL", ran: true}, {feature: "TTL", ran: true, passed: true}}, []drivertest.FeatureResult{{Feature: "TTL", State: drivertest.Broken}}},
		"refused":  {[]check{{feature: "TTL", refused: true, ran: true, passed: true}}, []drivertest.FeatureResult{{Feature: "TTL", State: drivertest.ProtocolRefuses}}},
		"lacks": {
			[]check{{feature: "TTL", refused: true, byBroker: true, ran: true, passed: true}},
			[]drivertest.FeatureResult{{Feature: "TTL", State: drivertest.BrokerLacks, Reason: "why"}},
		},
		"not refused": {[]check{{feature: "TTL", refused: true, byBroker: true, ran: true}}, []drivertest.FeatureResult{{Feature: "TTL", State: drivertest.Broken}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := drivertest.NewRecord(&drivertest.Config{Factory: f, Broker: "B"})
			for _, k := range c.checks {
				r.Add("check", k.feature, k.refused, k.byBroker, k.ran, k.passed)
			}
			require.Equal(t, c.want, r.Results().Features)
			dir := t.TempDir()
			require.NoError(t, r.Write(dir))
			require.FileExists(t, filepath.Join(dir, "p-b.json"))

			r.Add("filtered", "TTL", false, false, false, true)
			require.NoError(t, r.Write(filepath.Join(dir, "filtered")))
			require.NoDirExists(t, filepath.Join(dir, "filtered"), "not all checks were made")
		})
	}
	r := drivertest.NewRecord(&drivertest.Config{Factory: f})
	r.Add("check", "TTL", false, false, true, true)
	require.NoError(t, r.Write(t.TempDir()), "a broker without a name is not recorded")
}
