package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/drivers"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// realApp returns the program with its real protocols.
func realApp() *app {
	a := &app{}
	a.Factories, _ = config.ByClient(drivers.All())
	return a
}

// realHelp returns the help of a command of the program with its real protocols.
func realHelp(t *testing.T, args ...string) string {
	t.Helper()
	got := callReal(args...)
	require.Zero(t, got.status, got.stderr)
	return got.stdout
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
	for _, group := range config.Sections() {
		fmt.Fprintf(&b, "## %s\n\n| flag | variable | default | commands | in a scenario | |\n| --- | --- | --- | --- | --- | --- |\n", group)
		for _, d := range config.All() {
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
			if len(d.Roles) == 0 {
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
		for _, o := range driver.Describe(config.NewOptions(f)) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", o.Name, o.Default, strings.ReplaceAll(o.Help, "|", "\\|"))
		}
		b.WriteString("\n")
	}
	const path = "../../docs/settings.md"
	text := strings.TrimRight(b.String(), "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // a page of the documentation
	}
	have := musttest.Get(os.ReadFile(path))(t)
	require.True(t, string(have) == text, "docs/settings.md is stale: -update renews it")
}

func join(roles []plan.Role) string {
	texts := make([]string, len(roles))
	for i, role := range roles {
		texts[i] = string(role)
	}
	return strings.Join(texts, ", ")
}
