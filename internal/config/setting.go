// Package config makes plans of command lines, variables and scenario files.
//
//	defaults < file (its variables: --set) < PERFMQ_* < flags -> [Values] -> [plan.Plan]
//
// The one table of settings is made of the tags of the structs that the settings fill, in packages plan, driver,
// brokerside, verify, run, sweep and this one. Flags, PERFMQ_* variables, keys of scenario files, the JSON Schema,
// --dry-run, help, completion and docs/settings.md are made of the table. The tags of a field:
//
//	set      name, then options: command (perfmq run has no such flag), flag (no key of files), key (no flag), shape
//	         (of the file's own keys), daily (--help lists it, by the first part of its help), sweep, secret, pairs,
//	         relative, made (a plan is made with it, and does not have it), one (not a list), not (true means false),
//	         output (a file or folder that a run makes), short=LETTER, alias=NAME
//	needs    the setting without which this one is refused
//	roles    the roles of groups that have the setting, joined by commas, or all; by default producer,consumer
//	section  of the help, of this field and those that follow
//	arg      the name of the value in the help, if the type does not say it
//	default  the value if none is given; none: the help's text for it; unset: the field's value meanwhile
//	         (with none and range 1.., 0 in the field says that nothing is given)
//	range    LOWEST..HIGHEST; least: of a time, 0|TIME if it may be 0; unit: of a plain number, ms or bytes
//	words    the allowed values; check: of a text, see checkText
//	join     what joins the elements of a YAML list to one value
//	help     the description
package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Setting is a row of the table.
type Setting struct {
	plan.Row          // Name is of the flag, and of the key of scenario files
	Short    string   // flag of one letter, or empty
	Aliases  []string // other names that are understood but not listed
	Section  string   // of the help
	Arg      string   // the name of the value in the help, FILE and DIR for paths; empty for a switch
	Default  string   // as the help shows it; empty if there is nothing to say
	Help     string
	Roles    []plan.Role // commands that have it; empty for all
	Places   Scope       // where it may stand in a scenario file; 0 for nowhere
	List     bool        // may be given several times
	index    int         // among the rows of [Values]
}

// join is put between the elements of a YAML list to make them one value; empty if it takes no list.
func (s *Setting) join() string { return s.Tag.Get("join") }

// Sections returns the sections of the help, in its order.
func Sections() []string {
	return []string{
		"Broker", "Destinations and workers", "Load", "Message", "Consumer", "Verification", "Several load hosts",
		"The broker's side", "Output", "TLS",
	}
}

// Roles returns all roles.
func Roles() []plan.Role {
	return []plan.Role{
		plan.Client, plan.Producer, plan.Consumer, plan.Service, plan.Requester, plan.Responder, plan.Connections,
	}
}

// table is the whole table, made of the tags at its first use.
var table = sync.OnceValue(makeTable) //nolint:gochecknoglobals // it never changes

// settings returns the whole table.
func settings() []Setting { return slices.Clone(table()) }

func makeTable() []Setting {
	var list []Setting
	section := ""
	for _, row := range plan.Rows(&Values{}) {
		if s, ok := row.Tag.Lookup("section"); ok {
			section = s
		}
		list = append(list, newSetting(row, section, len(list)))
	}
	return list
}

func newSetting(row plan.Row, section string, index int) Setting {
	tag := row.Tag
	s := Setting{
		Row: row, Section: section, Arg: tag.Get("arg"), Help: tag.Get("help"),
		Default: tag.Get("default") + tag.Get("none"), index: index,
	}
	for _, option := range row.Options {
		if name, ok := strings.CutPrefix(option, "alias="); ok {
			s.Aliases = append(s.Aliases, name)
		}
		if letter, ok := strings.CutPrefix(option, "short="); ok {
			s.Short = letter
		}
	}
	switch kind := row.Value.Kind(); {
	case s.Arg != "":
	case kind == reflect.Bool && row.Words() == nil:
	case row.Value.Type() == reflect.TypeFor[time.Duration]():
		s.Arg = "TIME"
	case kind == reflect.String, row.Words() != nil:
		s.Arg = "NAME"
	default:
		s.Arg = "N"
	}
	s.List = row.Value.Kind() == reflect.Map ||
		row.Value.Kind() == reflect.Slice && tag.Get("join") == "" && !row.Is("one")
	s.Roles = rolesOf(&row)
	if !row.Is("flag") && !row.Is("shape") {
		s.Places = placesOf(&row)
	}
	switch s.Name {
	case "find-max": // also of a scenario, but no flag of perfmq run
		s.Places = InRun
	case "format":
		if row.In != "" { // of a run
			s.Default = "short on a terminal, else artemis"
		}
	case "body-template":
		s.Help += ": {{seq}}, {{uuid}}, {{now}}, {{int 1 1000}}, {{pick \"a\" \"b\"}}, {{hex 16}}"
	case "message-size":
		s.Help += "; or lognormal:MEDIAN:SIGMA[:MAX], by default at most 32 times the median"
	}
	return s
}

// rolesOf returns the commands that have a setting of groups, nil for all.
func rolesOf(row *plan.Row) []plan.Role {
	if row.OfRole("all") || row.In != "group" && row.In != "message" && row.Tag.Get("roles") == "" {
		return nil
	}
	return slices.DeleteFunc(Roles(), func(role plan.Role) bool { return !row.OfRole(role) })
}

// placesOf returns where a setting may stand.
func placesOf(row *plan.Row) Scope {
	switch {
	case row.In == "group":
		var places Scope
		for _, role := range Roles() {
			if of, _ := placesOfRole(role); role.Side() != plan.Client && row.OfRole(role) {
				places |= of
			}
		}
		return places
	case row.In == "message" && !row.Is("key"): // else it is of several messages
		return InMessage | InProducerGroup
	default:
		return map[string]Scope{"broker": InBroker, "message": InMessage, "step": InStep, "run": InRun}[row.In]
	}
}

// helpRole leaves out of a help what is of other roles; perfmq run, without a role, has all.
func (s *Setting) helpRole(role plan.Role) {
	general, connections, _ := strings.Cut(s.Help, ". Connections: ")
	switch {
	case role == "":
	case role == plan.Connections && connections != "":
		s.Help, s.Default = connections, ""
	case role == plan.Connections:
		if _, forms, ok := strings.Cut(s.Help, " of all producers (connections: openings)"); ok {
			s.Help = "openings per second" + forms
		}
	default:
		s.Help = strings.Replace(general, " (connections: openings)", "", 1)
	}
}

// Table returns the flags of a role with a protocol; nil is any protocol.
func Table(role plan.Role, f *driver.Factory) []Setting {
	list := slices.DeleteFunc(settings(), func(s Setting) bool {
		return s.Is("key") || !s.In(role) || f != nil && !CanEmbed(f) && strings.HasPrefix(s.Name, "embedded")
	})
	for i := range list {
		s := &list[i]
		if s.Name == "commit-interval" && role == plan.Producer { // where it can mean nothing else
			s.Aliases = append(s.Aliases, "tx-size")
		}
		s.helpRole(role)
		if f == nil {
			continue
		}
		switch s.Name {
		case "url":
			s.Default = f.DefaultURL
			s.Help = strings.Replace(s.Help, "PROTOCOL", f.Schemes[0], 1)
		case "protocol":
			s.Default, s.Help = f.Name, "for scripts of artemis perf; must agree with the command"
		}
	}
	return list
}

// TableOf returns the settings of another struct, with the options of a command, and gives them their defaults.
func TableOf(of any) (list []Setting) {
	for i, row := range plan.Rows(of) {
		s := newSetting(row, "", i)
		s.setDefault()
		list = append(list, s)
	}
	return list
}

// readRow reads a value into the field that the table was made of.
func (s *Setting) readRow(_ Source, text string) error {
	return s.read(s.Value.Addr().Interface(), text)
}

// setDefault gives that field its default.
func (s *Setting) setDefault() {
	if text, ok := s.Tag.Lookup("default"); ok {
		_ = s.readRow(Default, text) // the tests read all defaults
	}
}

// RunTable returns the flags of perfmq run: the flags of all roles that do not need the protocol of a command.
func RunTable() []Setting {
	return slices.DeleteFunc(All(), func(s Setting) bool { return s.Is("command") })
}

// All returns the flags of all roles, of any protocol.
func All() []Setting {
	return slices.DeleteFunc(settings(), func(s Setting) bool { return s.Is("key") })
}

// Verdicts are the flags that say which outcomes of the verification fail a run, also of perfmq verify.
func Verdicts() []Setting {
	return slices.DeleteFunc(All(), func(s Setting) bool {
		return !strings.HasPrefix(s.Name, "allow-") && !strings.HasPrefix(s.Name, "fail-on-")
	})
}

// In reports whether a role has the setting.
func (s *Setting) In(role plan.Role) bool { return len(s.Roles) == 0 || slices.Contains(s.Roles, role) }

// Check returns the mistake of a value.
func (s *Setting) Check(text string) error {
	return s.read(reflect.New(s.Value.Type()).Interface(), text)
}

// Variables returns the names under which the environment may give the setting, the usual one first:
// PERFMQ_MESSAGE_SIZE for --message-size, PERFMQ_CLIENT_ID for --clientID.
func (s *Setting) Variables() []string {
	var names []string
	for _, name := range append([]string{s.Name}, s.Aliases...) {
		if strings.ToLower(name) == name { // camel case has an alias with a hyphen
			names = append(names, envPrefix+strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
		}
	}
	return names
}

// find returns the setting of a name, or nil.
func find(table []Setting, name string) *Setting {
	return first(table, func(s *Setting) bool { return s.Name == name })
}
