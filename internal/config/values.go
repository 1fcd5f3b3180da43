package config

import (
	"reflect"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Values are the values of settings, each read by itself; the plan judges their meaning together. The tag `in` says
// where the settings of a part may stand in a scenario.
type Values struct {
	Broker   plan.Broker       `in:"broker"`
	Consumer consumerBroker    `in:"command"`
	Group    plan.Group        `in:"group"`
	Workers  workers           `in:"group"`
	Bodies   bodies            `in:"message"`
	Message  driver.Variant    `in:"message"`
	Weight   weight            `in:"weight"`
	Step     plan.Step         `in:"step"`
	Plan     plan.Plan         `in:"run"`
	Sweep    Sweep             `in:"run"`
	Command  command           `in:"command"`
	Side     brokerside.Config `in:"command"`
	Outputs  run.Outputs       `in:"command"`

	sources map[string]Source // of the settings that are not at their default
}

// consumerBroker is the broker of the consumers of a client.
type consumerBroker struct {
	URL      string `set:"consumer-url,command" roles:"client" section:"Broker" arg:"URL" check:"address" none:"as --url" help:"the broker of the consumers; it may be of another protocol"`
	Protocol string `set:"consumer-protocol,command" roles:"client" arg:"NAME" none:"that of --consumer-url" help:"the protocol of the consumers"`
}

// workers are settings of groups that become other fields of the plan.
type workers struct {
	NumDestinations int  `set:"num-destinations" section:"Destinations and workers" range:"1.." default:"1" help:"destinations per name: above 1, 0 to N-1 is added to it"`
	Tx              bool `set:"tx" roles:"consumer" section:"Consumer" help:"receive in transactions"`
	MaxMessageSize  int  `set:"max-message-size" roles:"consumer" arg:"SIZE" unit:"bytes" range:"1.." default:"16MiB" help:"largest message to accept from the broker, unless the run sends larger ones"`
}

// bodies are settings of messages that become their bodies.
type bodies struct {
	Sizes []Sized   `set:"message-size,one,daily" roles:"producer" section:"Message" arg:"SIZE" default:"1024" help:"bytes, such as 1024 or 64KiB; several by weight, such as 1KiB/80:64KiB/20"`
	File  string    `set:"body-file" roles:"producer" arg:"FILE" help:"file that is the body of every message; of a folder, each file in turn"`
	Fill  plan.Fill `set:"fill" roles:"producer" words:"random,compressible,zeros" default:"random" help:"content of the bodies: random (text), compressible (text that gzip halves), zeros"`
}

// Sized is one of the sizes of --message-size.
type Sized struct{ Size, Weight int }

type weight struct {
	Weight int `set:"weight,key" range:"1..1000000" default:"1" help:"share of the message, against the weights of the others"`
}

// Sweep are the settings of a sweep, which only scenario files have.
type Sweep struct {
	Repeats     int           `set:"repeats,key,sweep" range:"1..1000" default:"1" help:"runs of each cell of the matrix"`
	Shuffled    bool          `set:"order,key,sweep" words:"in-turn,shuffled" default:"in-turn" help:"in-turn: all cells once, then all again; shuffled: in another order each time"`
	Settle      time.Duration `set:"settle,key,sweep" default:"0s" help:"pause between two runs of a sweep"`
	BetweenRuns string        `set:"between-runs,key,sweep" words:"keep,fresh" default:"keep" help:"destinations of runs"`
	Stop        bool          `set:"on-failure,key,sweep" words:"continue,stop" default:"continue" help:"whether a sweep continues after a failed run"`
}

// command are settings that only command lines have.
type command struct {
	FindMax []threshold.Threshold `set:"find-max,command" roles:"producer" section:"Load" arg:"\"METRIC OP VALUE\"" help:"search for the highest rate that passes this threshold, such as 'transfer.p99 < 10ms', by loads of --duration (default 6s) from --rate (default 1000) on; may be repeated"`
	RunID   string                `set:"run-id" section:"Several load hosts" arg:"NAME" check:"run-id" none:"made of --start-at and the plan" help:"name that the shards of this run share and no other run has, such as that of a job"`
	StartAt plan.Moment           `set:"start-at" arg:"MOMENT" none:"when connected" help:"moment at which the load begins: 2026-03-01T12:00:00Z, seconds since 1970, or +10s from now"`
	DryRun  bool                  `set:"dry-run" section:"Output" help:"check everything without connecting, and print the plan as a scenario"`
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
	for i, row := range v.rows() {
		if unset, err := strconv.Atoi(row.Tag.Get("unset")); err == nil {
			row.Value.SetInt(int64(unset))
		}
		if text, ok := row.Tag.Lookup("default"); ok {
			s := Setting{Name: row.Name, Words: row.Words(), row: row, index: i}
			_ = s.read(row.Value.Addr().Interface(), text) // the tests read all defaults
		}
	}
	v.Plan.Allow.Disorder = true
	return v
}

// rows returns the fields of all settings, in the order of the table.
func (v *Values) rows() (list []plan.Row) {
	all := reflect.ValueOf(v).Elem()
	for i := range all.NumField() {
		if _, ok := all.Type().Field(i).Tag.Lookup("in"); ok {
			list = append(list, plan.Rows(all.Field(i).Addr().Interface())...)
		}
	}
	return list
}

// Has reports whether a setting was given, in whatever way.
func (v *Values) Has(name string) bool { return v.sources[name] > Default }

// Source returns where the value of a setting comes from.
func (v *Values) Source(name string) Source { return v.sources[name] }

// Read takes a value from a source. The error describes the mistake in the value, without naming the setting.
func (v *Values) Read(s *Setting, from Source, text string) error {
	v.sources[s.Name] = from
	return v.set(s, text)
}

func (v *Values) set(s *Setting, text string) error {
	return s.read(v.rows()[s.index].Value.Addr().Interface(), text)
}

// MaxRepeats bounds the repeats of a cell.
const MaxRepeats = 1000
