package drivertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// FeaturesEnv is the environment variable that names the folder where [Run] writes its [Results], one file
// PROTOCOL-BROKER.json for each [Config] that has a Broker. If it is empty, or if a filter left out some checks,
// nothing is written.
const FeaturesEnv = "PERFMQ_TEST_FEATURES"

// Results are the findings of the suite about one protocol on one broker.
type Results struct {
	// Protocol is the full name of the protocol, [driver.Factory.Title].
	Protocol string `json:"protocol"`
	// Client is the implementation of the protocol, [driver.Factory.Client].
	Client string `json:"client,omitempty"`
	// Broker is [Config.Broker].
	Broker string `json:"broker"`
	// Features are the features of the kinds of destinations, each once for each of its kinds.
	Features []FeatureResult `json:"features"`
	// Checks are the sub-tests that were made.
	Checks []CheckResult `json:"checks"`
}

// FeatureResult is the sum of the checks of one feature of one kind of destination.
type FeatureResult struct {
	Feature Feature `json:"feature"`
	// Kind is "queue" or "topic".
	Kind  string `json:"kind"`
	State State  `json:"state"`
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
	return &record{results: Results{Protocol: cfg.Factory.Title, Client: cfg.Factory.Client, Broker: cfg.Broker}}
}

func (r *record) add(i instance, ran, passed bool) {
	if r == nil {
		return
	}
	if !ran {
		r.filtered = true
		return
	}
	r.results.Checks = append(r.results.Checks, CheckResult{i.name, passed})
	if i.feature == "" {
		return
	}
	result := FeatureResult{Feature: i.feature, Kind: i.kind.String(), State: Works}
	switch {
	case !passed:
		result.State = Broken
	case i.refused != nil && i.refused.byBroker:
		result.State, result.Reason = BrokerLacks, i.refused.reason
	case i.refused != nil:
		result.State = ProtocolRefuses
	}
	r.note(result)
}

// note adds the result of a check to the result of its feature.
func (r *record) note(result FeatureResult) {
	for i := range r.results.Features {
		if known := &r.results.Features[i]; known.Feature == result.Feature && known.Kind == result.Kind {
			if result.State == Broken {
				*known = result
			}
			return
		}
	}
	r.results.Features = append(r.results.Features, result)
}

// addUntested adds the missing features that a caller cannot ask for: there is nothing to refuse.
func (r *record) addUntested(cfg *Config) {
	if r == nil {
		return
	}
	for _, t := range traits() {
		for _, kind := range cfg.kinds() {
			works, brokerLacks := cfg.works(t.feature, kind)
			switch {
			case works || t.ask != nil:
			case brokerLacks:
				r.note(FeatureResult{t.feature, kind.String(), BrokerLacks, cfg.reason(t.feature, kind)})
			default:
				r.note(FeatureResult{Feature: t.feature, Kind: kind.String(), State: ProtocolRefuses})
			}
		}
	}
}

// Title is the protocol and, unless it is our own data path, the client library: "STOMP (go-stomp)".
func (r *Results) Title() string {
	if r.Client == "" || r.Client == driver.Native {
		return r.Protocol
	}
	return r.Protocol + " (" + r.Client + ")"
}

// Result returns the finding about a feature of a kind of destination, and whether there is one.
func (r *Results) Result(f Feature, kind driver.Kind) (FeatureResult, bool) {
	for _, found := range r.Features {
		if found.Feature == f && found.Kind == kind.String() {
			return found, true
		}
	}
	return FeatureResult{}, false
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
	}, strings.ToLower(r.results.Title()+"-"+r.results.Broker))
	return os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o600)
}
