package drivertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// FeaturesEnv is the environment variable that names the folder where [Run] writes its [Results], one file
// PROTOCOL-BROKER.json for each [Config] that has a Broker. Empty writes nothing. A run that was filtered, so that not
// all checks were made, writes nothing either.
const FeaturesEnv = "PERFMQ_TEST_FEATURES"

// Results are what the suite found out about one protocol on one broker.
type Results struct {
	// Protocol is the full name of the protocol, [driver.Factory.Title].
	Protocol string `json:"protocol"`
	// Broker is [Config.Broker].
	Broker string `json:"broker"`
	// Features are in the order in which the suite has them, each once.
	Features []FeatureResult `json:"features"`
	// Checks are the sub-tests that were made.
	Checks []CheckResult `json:"checks"`
}

// FeatureResult is the sum of the checks of one feature.
type FeatureResult struct {
	Feature Feature `json:"feature"`
	State   State   `json:"state"`
	// Reason is why the broker lacks the feature, from [Config.Lacks]; empty otherwise.
	Reason string `json:"reason,omitempty"`
}

// CheckResult is the result of one sub-test.
type CheckResult struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
}

// State says whether a feature works.
type State string

// The states of a feature.
const (
	Works           State = "works"            // all checks of it passed
	BrokerLacks     State = "broker lacks"     // the driver has it, the broker does not, and it was refused or failed
	ProtocolRefuses State = "protocol refuses" // the driver does not have it, and refused it beforehand
	Broken          State = "broken"           // a check failed
)

// record collects results; a nil one ignores them.
type record struct {
	results  Results
	filtered bool
}

func newRecord(cfg *Config) *record {
	if cfg.Broker == "" {
		return nil
	}
	return &record{results: Results{Protocol: cfg.Factory.Title, Broker: cfg.Broker}}
}

func (r *record) add(c check, ran, passed bool) {
	if r == nil {
		return
	}
	if !ran {
		r.filtered = true
		return
	}
	r.results.Checks = append(r.results.Checks, CheckResult{c.name, passed})
	if c.feature == "" {
		return
	}
	result := FeatureResult{Feature: c.feature, State: Works}
	switch {
	case !passed:
		result.State = Broken
	case c.refused != nil && c.refused.byBroker:
		result.State, result.Reason = BrokerLacks, c.refused.reason
	case c.refused != nil:
		result.State = ProtocolRefuses
	}
	for i := range r.results.Features {
		if known := &r.results.Features[i]; known.Feature == c.feature {
			if result.State == Broken {
				*known = result
			}
			return
		}
	}
	r.results.Features = append(r.results.Features, result)
}

// write saves the results in the folder, which is made if need be.
func (r *record) write(dir string) error {
	if r == nil || r.filtered || dir == "" {
		return nil
	}
	text, err := json.MarshalIndent(r.results, "", "  ")
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the folder of %s: %w", FeaturesEnv, err)
	}
	name := strings.Map(func(c rune) rune {
		if c == ' ' || c == '/' {
			return '-'
		}
		return c
	}, strings.ToLower(r.results.Protocol+"-"+r.results.Broker))
	return os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o600)
}
