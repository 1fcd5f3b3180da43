package config

import (
	"strconv"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/threshold"
)

// Values are the values of settings, each read by itself; the plan judges their meaning together. The tag `in` says
// where the settings of a part may stand in a scenario.
type Values struct {
	Broker plan.Broker `in:"broker"`
	// ConsumerURL and ConsumerProtocol are of the broker of the consumers of a client.
	ConsumerURL      string       `set:"consumer-url,command" roles:"client" section:"Broker" arg:"URL" check:"address" none:"as --url" help:"the consumers' broker, also of another protocol" in:"command"`
	ConsumerProtocol string       `set:"consumer-protocol,command" roles:"client" arg:"NAME" none:"that of --consumer-url" help:"the consumers' protocol" in:"command"`
	Group            plan.Group   `in:"group"`
	Message          plan.Variant `in:"message"`
	Step             plan.Step    `in:"step"`
	Plan             plan.Plan    `in:"run"`
	Sweep            sweep.Sweep  `in:"run"`

	FindMax []threshold.Threshold `set:"find-max,command" roles:"producer" section:"Load" arg:"\"METRIC OP VALUE\"" help:"search for the highest rate that passes this, such as 'transfer.p99 < 10ms', by loads of --duration (default 6s) from --rate (default 1000); may be repeated" in:"command"`
	RunID   string                `set:"run-id" section:"Several load hosts" arg:"NAME" check:"run-id" none:"made of --start-at and the plan" help:"name of this run, the same in all its shards" in:"command"`
	StartAt plan.Moment           `set:"start-at" arg:"MOMENT" none:"when connected" help:"start of the load: 2026-03-01T12:00:00Z, seconds since 1970, or +10s from now" in:"command"`
	DryRun  bool                  `set:"dry-run" section:"Output" help:"check all without connecting, and print the plan as a scenario" in:"command"`
	Side    brokerside.Config     `in:"command"`
	Outputs run.Outputs           `in:"command"`

	sources map[string]Source // of the settings that are not at their default
}

// Source is where a value comes from. The greater one wins.
type Source int

// The sources.
const (
	Default     Source = iota
	File               // a scenario file
	Variable           // PERFMQ_...
	CommandLine        // a flag
)

// Defaults returns the values of a run for which nothing is given.
func Defaults() *Values {
	v := &Values{sources: map[string]Source{}}
	for _, row := range plan.Rows(v) {
		if unset, err := strconv.Atoi(row.Tag.Get("unset")); err == nil {
			row.Value.SetInt(int64(unset))
		}
		s := Setting{Row: row}
		s.setDefault()
	}
	v.Plan.Allow.Disorder = true
	return v
}

// Has reports whether a setting was given, in whatever way.
func (v *Values) Has(name string) bool { return v.sources[name] > Default }

// Source returns where the value of a setting comes from.
func (v *Values) Source(name string) Source { return v.sources[name] }

// Read takes a value from a source. The error describes the mistake in the value, without naming the setting.
func (v *Values) Read(s *Setting, from Source, text string) error {
	v.sources[s.Name] = from
	return s.read(plan.Rows(v)[s.index].Value.Addr().Interface(), text)
}

// MaxRepeats bounds the repeats of a cell.
const MaxRepeats = 1000
