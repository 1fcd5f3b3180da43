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
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/driver"
)

// realApp returns the program with its real protocols.
func realApp() *app {
	a := &app{}
	a.Factories, a.libraries = byClient(drivers.All())
	return a
}

// The reference page is generated from the table of settings.
func TestSettingsReference(t *testing.T) {
	a := realApp()
	var b strings.Builder
	b.WriteString(`# Settings

All settings, made from the one table of the program by a test (` + "`go test ./internal/cli -run TestSettingsReference -update`" + `). Each is a flag
of the commands in the column "commands" and of ` + "`perfmq run`" + `, a variable of the environment, and, where the column "in a scenario" names
places, a key of scenario files with the flag's name (` + "[docs/scenarios.md](scenarios.md)" + `; the JSON Schema is printed by
` + "`perfmq scenario schema`" + `). Flags win over variables, those over ` + "`--set`" + `, that over the file, and the file over the defaults.

`)
	for _, group := range setting.Sections() {
		fmt.Fprintf(&b, "## %s\n\n| flag | variable | default | commands | in a scenario | |\n| --- | --- | --- | --- | --- | --- |\n", group)
		for _, d := range setting.All() {
			if d.Section != group {
				continue
			}
			flag := "--" + d.Name
			if d.Short != "" {
				flag = "-" + d.Short + ", " + flag
			}
			if d.Arg != "" {
				flag += " " + d.Arg
			}
			commands := join(d.Roles)
			if len(d.Roles) == len(setting.Roles()) {
				commands = "all"
			}
			places := ""
			if d.Places != 0 {
				places = d.Places.String()
			}
			cells := []string{"`" + flag + "`", "`" + d.Variables()[0] + "`", d.Default, commands, places, d.Help}
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
		for _, o := range driver.Describe(setting.NewOptions(f)) {
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

// Each setting is written down once, and reaches flags, variables, help, the keys and the schema of scenario files, and
// the plan that
// --dry-run prints.
func TestSettingsReachEverything(t *testing.T) {
	a := realApp()
	var schema struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	keys := setting.Keys(setting.Names(a.Factories))
	text := scenario.Schema(keys)
	require.NoError(t, json.Unmarshal(text, &schema))
	run := runTable()
	known := setting.Variables()
	page, err := os.ReadFile("../../docs/settings.md")
	require.NoError(t, err)
	for _, d := range setting.All() {
		for _, role := range d.Roles {
			var help strings.Builder
			a.roleHelp(&help, &a.Factories[0], role)
			flag := "--" + d.Name
			if d.Name == "option" {
				flag = "-o"
			}
			require.True(t, strings.Contains(help.String(), flag+" "), "the help of %s has no %s", role, flag)
		}
		require.Contains(t, known, d.Variables()[0])
		listed := "--" + d.Name
		if d.Name == "option" { // described in a chapter of its own
			listed = "-o KEY=VALUE"
		}
		require.Contains(t, string(page), "`"+listed, "the reference page")
		given := setting.NewGiven(setting.Environment{d.Variables()[0]: "x"})
		_, list, _ := given.Values([]setting.Setting{d})
		require.Equal(t, []string{d.Name, "environment " + d.Variables()[0]}, []string{list[0].Name, list[0].String()}, "what --dry-run lists")
		if d.Places != 0 {
			require.Contains(t, string(text), `"`+d.Name+`"`, "the schema")
			require.True(t, slices.ContainsFunc(keys, func(k scenario.Key) bool { return k.Name == d.Name && k.Scopes&d.Places != 0 }), d.Name)
		}
		require.Equal(t, !d.OneProtocol, slices.ContainsFunc(run, func(o setting.Setting) bool { return o.Name == d.Name }), "perfmq run and --%s", d.Name)
	}
}

func join(roles []plan.Role) string {
	texts := make([]string, len(roles))
	for i, role := range roles {
		texts[i] = string(role)
	}
	return strings.Join(texts, ", ")
}
