package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/pkg/driver"
)

// realApp is the program with its real protocols.
func realApp() *app {
	a := &app{}
	a.Factories, a.libraries = byClient(drivers.All())
	return a
}

// documented is a setting as all roles have it together.
type documented struct {
	definition
	flags  []string // commands
	places scenario.Scope
}

func allSettings(a *app) (list []documented) {
	for _, role := range roles() {
		for _, d := range definitions(role, &a.Factories[0]) {
			i := slices.IndexFunc(list, func(o documented) bool { return o.name == d.name })
			if i < 0 {
				list = append(list, documented{definition: d, places: a.places(&d)})
				i = len(list) - 1
			}
			list[i].flags = append(list[i].flags, string(role))
			list[i].places |= a.places(&d)
		}
	}
	return list
}

// The reference page is made of the table.
func TestSettingsReference(t *testing.T) {
	a := realApp()
	var b strings.Builder
	b.WriteString(`# Settings

All settings, made from the one table of the program by a test (` + "`go test ./internal/cli -run TestSettingsReference -update`" + `). Each is a flag
of the commands in the column "commands" and of ` + "`perfmq run`" + `, a variable of the environment, and, where the column "in a scenario" names
places, a key of scenario files with the flag's name (` + "[docs/scenarios.md](scenarios.md)" + `; the JSON Schema is printed by
` + "`perfmq scenario schema`" + `). Flags win over variables, those over ` + "`--set`" + `, that over the file, and the file over the defaults.

`)
	for _, group := range groups() {
		fmt.Fprintf(&b, "## %s\n\n| flag | variable | default | commands | in a scenario | |\n| --- | --- | --- | --- | --- | --- |\n", group)
		for _, d := range allSettings(a) {
			if d.group != group {
				continue
			}
			flag := "--" + d.name
			if d.short != "" {
				flag = "-" + d.short + ", " + flag
			}
			if d.arg != "" {
				flag += " " + d.arg
			}
			commands := strings.Join(d.flags, ", ")
			if len(d.flags) == len(roles()) {
				commands = "all"
			}
			places := ""
			if d.places != 0 {
				places = d.places.String()
			}
			def := d.def
			switch d.name {
			case "url":
				def = "the protocol's"
			case "protocol":
				def = "that of the command, or of the URL"
			}
			cells := []string{"`" + flag + "`", "`" + variables(&d.definition)[0] + "`", def, commands, places, d.help}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", "\\|")
			}
			b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		}
		b.WriteString("\n")
	}
	b.WriteString("## Options of the protocols\n\n`-o KEY=VALUE`; in a scenario, `options:` of a broker.\n\n")
	for i := range a.Factories {
		f := &a.Factories[i]
		fmt.Fprintf(&b, "### %s\n\n| option | default | |\n| --- | --- | --- |\n", f.Title)
		for _, o := range driver.Describe(newOptions(f)) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", o.Name, o.Default, strings.ReplaceAll(o.Help, "|", "\\|"))
		}
		b.WriteString("\n")
	}
	const path = "../../docs/settings.md"
	text := strings.TrimRight(b.String(), "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // a page of the documentation
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(have), text)
}

// Each setting is written down once, and reaches flags, variables, help, the keys and the schema of scenario files, and the plan that
// --dry-run prints.
func TestSettingsReachEverything(t *testing.T) {
	a := realApp()
	var schema struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	text := scenario.Schema(a.scenarioKeys())
	require.NoError(t, json.Unmarshal(text, &schema))
	run := newInput(a.runDefinitions())
	known := a.variables()
	for _, d := range allSettings(a) {
		for _, role := range d.flags {
			var help strings.Builder
			a.roleHelp(&help, &a.Factories[0], plan.Role(role))
			flag := "--" + d.name
			if d.name == "option" {
				flag = "-o"
			}
			require.True(t, strings.Contains(help.String(), flag+" "), "the help of %s has no %s", role, flag)
		}
		require.Contains(t, known, variables(&d.definition)[0])
		if d.places != 0 {
			require.Contains(t, string(text), `"`+d.name+`"`, "the schema")
			require.True(t, slices.ContainsFunc(a.scenarioKeys(), func(k scenario.Key) bool { return k.Name == d.name && k.Scopes&d.places != 0 }), d.name)
		}
		switch d.name {
		case "consumer-url", "consumer-protocol", "consumer-connections", "protocol": // of a broker or group of the file
		default:
			require.True(t, slices.ContainsFunc(run.definitions, func(o definition) bool { return o.name == d.name }), "perfmq run has no --%s", d.name)
		}
	}
}
