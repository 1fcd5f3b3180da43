package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/rendezvous"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/threshold"
)

// envPrefix begins the names of all variables that are ours.
const envPrefix = "PERFMQ_"

// Environment holds the variables that are ours and not empty, and [JobIndex].
type Environment map[string]string

// NewEnvironment keeps of an environment, as os.Environ returns it, the variables that are ours or that we read. It
// drops one line end at the end of a value: Kubernetes makes variables of whole files.
func NewEnvironment(environ []string) Environment {
	e := Environment{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
		if (strings.HasPrefix(name, envPrefix) || name == JobIndex) && value != "" {
			e[name] = value
		}
	}
	return e
}

// Lookup returns the variable that gives a setting and its values; a list is separated by commas.
func (e Environment) Lookup(s *Setting) (variable string, texts []string) {
	for _, variable := range s.Variables() {
		if value, ok := e[variable]; ok && s.List {
			return variable, strings.Split(value, ",")
		} else if ok {
			return variable, []string{value}
		}
	}
	return "", nil
}

// Unknown finds variables that begin like ours but set nothing: most likely mistyped.
func (e Environment) Unknown() (errs []error) {
	var known []string // without the prefix
	for _, s := range All() {
		for _, variable := range s.Variables() {
			known = append(known, strings.TrimPrefix(variable, envPrefix))
		}
	}
	// Kubernetes gives every pod such variables for a service named perfmq; the others are for the commands of
	// a scenario, which may call perfmq.
	foreign := regexp.MustCompile(`_SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?$|_PORT(_[0-9]+_[A-Z]+(_[A-Z]+)?)?$|` +
		`^PERFMQ_(CELL$|REPEAT$|TEST_)|^` + JobIndex + `$`)
	for _, name := range slices.Sorted(maps.Keys(e)) {
		short := strings.TrimPrefix(name, envPrefix)
		if !slices.Contains(known, short) && !foreign.MatchString(name) {
			hint := nearest.Hint(short, known, envPrefix+"%s", "unset it")
			errs = append(errs, plan.Wrong(hint, "unknown environment variable %s", name))
		}
	}
	return errs
}

// Given has the user's input for one command, before any of it is judged: all mistakes are reported at once, and
// variables fill in settings that the command line left out.
type Given struct {
	Environment Environment
	Flags       map[string][]string // texts by the name of the setting, in the order given
}

// NewGiven returns the input of an environment alone, without flags.
func NewGiven(e Environment) *Given {
	return &Given{Environment: e, Flags: map[string][]string{}}
}

// Has reports whether a variable or flag gives the setting.
func (g *Given) Has(s *Setting) bool {
	variable, _ := g.Environment.Lookup(s)
	return variable != "" || len(g.Flags[s.Name]) > 0
}

// Apply reads the variable and then the flag of a setting. Of a list both count, else the last text of the flag alone.
func (g *Given) Apply(s *Setting, read func(s *Setting, from Source, text string) error) (errs []error) {
	apply := func(from Source, label string, texts []string) {
		if !s.List && len(texts) > 0 {
			texts = texts[len(texts)-1:]
		}
		for _, text := range texts {
			if err := read(s, from, text); err != nil {
				errs = append(errs, wrongValue(s, label, text, err))
			}
		}
	}
	flags := g.Flags[s.Name]
	if variable, texts := g.Environment.Lookup(s); len(flags) == 0 || s.List {
		apply(Variable, variable, texts)
	}
	apply(CommandLine, "--"+s.Name, flags)
	return errs
}

// wrongValue is the mistake for a value of a variable or flag that its setting cannot have.
func wrongValue(s *Setting, label, text string, err error) *plan.Mistake {
	if s.Is("secret") {
		return plan.Wrong("", "%s=%s: %v", label, safetext.Hidden, err)
	}
	return plan.Wrong(nearest.Hint(text, s.Words(), label+"=%s", ""), "%s=%s: %v", label, Quoted(text), err)
}

// Values returns the given values, over the defaults.
func (g *Given) Values(table []Setting) (v *Values, errs []error) {
	v = Defaults()
	for i := range table {
		errs = append(errs, g.Apply(&table[i], v.Read)...)
	}
	return v, errs
}

// Fill reads the given values into the struct of a table that [TableOf] has made.
func (g *Given) Fill(table []Setting) (errs []error) {
	for i := range table {
		errs = append(errs, g.Apply(&table[i], (*Setting).readRow)...)
	}
	return errs
}

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
	Meeting rendezvous.Options    `in:"command"`
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
