// Package setting is the one table of all settings of a load: names, units, defaults, ranges, places, roles and help.
// Flags, PERFMQ_* variables, keys of scenario files, the JSON Schema, --dry-run, help, completion and docs/settings.md
// are made of it.
//
//	defaults < file < --set < PERFMQ_* < flags -> [Values]
//
// A [Setting] reads one value by itself; the plan judges the meaning of values together. The package knows no library
// of command lines.
package setting

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Setting is a row of the table.
type Setting struct {
	Name    string   // of the flag, and of the key of scenario files
	Short   string   // flag of one letter, or empty
	Aliases []string // other names that are understood but not listed
	// FlagAliases are other names of the flag alone.
	FlagAliases []string
	Section     string // of the help
	Arg         string // the name of the value in the help; empty for a switch
	Default     string // as the help shows it; empty if there is nothing to say
	Help        string
	Brief       string         // one line, of a flag of daily use: --help lists these, --help-all all
	Roles       []plan.Role    // commands that have it; empty for all
	Places      scenario.Scope // where it may stand in a scenario file; 0 for nowhere
	// OneProtocol tells that perfmq run has no such flag: it depends on the protocol of a command.
	OneProtocol bool
	List        bool     // may be given several times
	Pairs       bool     // values are KEY=VALUE
	Join        string   // put between the elements of a YAML list to make them one value
	Relative    bool     // the value may be a share of the rate that an earlier step reached
	Words       []string // the allowed values, nil for any
	Secret      bool     // never printed
	Files       bool     // a path; completion offers files
	Folders     bool     // completion offers folders
	// Set reads a value.
	Set func(*Values, string) error
	// Suggest returns the offers of completion; nil for the words, if there are some.
	Suggest func(*Context) []string
}

// The sections of the help, in its order.
const (
	SectionBroker       = "Broker"
	SectionDestination  = "Destinations and workers"
	SectionLoad         = "Load"
	SectionMessage      = "Message"
	SectionConsumer     = "Consumer"
	SectionVerification = "Verification"
	SectionHosts        = "Several load hosts"
	SectionSide         = "The broker's side"
	SectionOutput       = "Output"
	SectionTLS          = "TLS"
)

// Sections returns the sections of the help, in its order.
func Sections() []string {
	return []string{
		SectionBroker, SectionDestination, SectionLoad, SectionMessage, SectionConsumer, SectionVerification, SectionHosts,
		SectionSide, SectionOutput, SectionTLS,
	}
}

// Places of scenario files.
const (
	inRun       = scenario.InRun
	inBroker    = scenario.InBroker
	inProducers = scenario.InProducerGroup
	inConsumers = scenario.InConsumerGroup
	inGroups    = inProducers | inConsumers
	inStep      = scenario.InStep
	inMessage   = scenario.InMessage
)

// Names of values in the help.
const (
	argNumber = "N"
	argTime   = "TIME"
	argSize   = "SIZE"
	argFile   = "FILE"
	argFolder = "DIR"
	argText   = "TEXT"
	argName   = "NAME"
)

// Roles returns all roles.
func Roles() []plan.Role { return []plan.Role{plan.Client, plan.Producer, plan.Consumer} }

func client() []plan.Role   { return []plan.Role{plan.Client} }
func sending() []plan.Role  { return []plan.Role{plan.Client, plan.Producer} }
func reading() []plan.Role  { return []plan.Role{plan.Client, plan.Consumer} }
func consumer() []plan.Role { return []plan.Role{plan.Consumer} }

// Table returns the settings of a role with a protocol; nil is any protocol.
func Table(role plan.Role, f *driver.Factory) []Setting {
	all := slices.Concat(
		brokerRows(f), clientRows(), embeddedRows(f), workerRows(), loadRows(role), messageRows(role), consumerRows(),
		verifyRows(), shardRows(), sideRows(), outputRows(),
		servedRows(), plainRows(),
		tlsRows(),
	)
	return slices.DeleteFunc(all, func(s Setting) bool { return !s.In(role) })
}

// All returns the settings of all roles, of any protocol, each once, with the roles that have it.
func All() (list []Setting) {
	for _, role := range Roles() {
		for _, s := range Table(role, nil) {
			i := slices.IndexFunc(list, func(o Setting) bool { return o.Name == s.Name })
			if i < 0 {
				s.Roles = nil
				list, i = append(list, s), len(list)
			}
			list[i].Roles = append(list[i].Roles, role)
		}
	}
	return list
}

// Accepts reports whether the setting can have a value.
func (s *Setting) Accepts(text string) bool { return s.Set(Defaults(), text) == nil }

// In tells whether a role has the setting.
func (s *Setting) In(role plan.Role) bool { return len(s.Roles) == 0 || slices.Contains(s.Roles, role) }

// Variables returns the names under which the environment may give the setting, the usual one first:
// PERFMQ_MESSAGE_SIZE for
// --message-size, PERFMQ_CLIENT_ID for --clientID.
func (s *Setting) Variables() []string {
	var names []string
	for _, name := range append([]string{s.Name}, s.Aliases...) {
		if strings.ToLower(name) == name { // camel case has an alias with a hyphen
			names = append(names, envPrefix+strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
		}
	}
	return names
}

// Variables returns the names of all variables that mean something, for any protocol and role.
func Variables() (names []string) {
	for _, s := range All() {
		for _, name := range s.Variables() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
