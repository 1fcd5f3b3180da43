package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestNewSetting: a setting that is added in three places (its row, its check and one driver) is a flag, a variable, a
// key of scenarios and of their schema, and is in help, documentation, --dry-run and result. The program is built with
// it by an overlay.
func TestNewSetting(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := t.TempDir()
	overlay := map[string]string{}
	for file, edit := range map[string][2]string{
		"pkg/driver/spec.go": {
			"	// Persistent asks for", "	Sprinkle int `set:\"sprinkle\" roles:\"producer\" range:\"0..100\" default:\"0\" help:\"sprinkles on each message\"`\n",
		},
		"internal/plan/validate.go": {
			"	v.answers()\n", "	v.refuse(g.Sprinkle > 50 && !g.Persistent, \"add --persistent\", \"--sprinkle %d does not stay\", g.Sprinkle)\n",
		},
		"internal/drivers/mem/producer.go": {"	p.dest = b.destination(", "	println(\"mem has sprinkle\", spec.Sprinkle)\n"},
	} {
		path, err := filepath.Abs(filepath.Join("../..", file))
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), edit[0]), file)
		overlay[path] = filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(overlay[path], []byte(strings.Replace(string(text), edit[0], edit[1]+edit[0], 1)), 0o600))
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	replace, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "perfmq")
	require.NoError(t, os.WriteFile(replace, text, 0o600))
	said, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", replace, "-o", program, ".").CombinedOutput()
	require.NoError(t, err, string(said))
	require.NoError(t, os.Link(program, filepath.Join(dir, "tests"))) // as perfmq it is the program, see TestMain

	run := func(environ string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), environ)
		said, _ := cmd.CombinedOutput() // with the mistakes, if there are any
		return string(said)
	}
	folder, file := filepath.Join(dir, "result"), filepath.Join(dir, "s.yaml")
	require.NoError(t, os.WriteFile(file, []byte("broker: {protocol: mem}\ngroup: {role: client, sprinkle: 7, message-count: 3}\n"), 0o600))
	for name, c := range map[string]struct{ said, want string }{
		"flag":     {run("", "mem", "client", "--message-count", "3", "--sprinkle", "5", "--result", folder), "mem has sprinkle 5\n"},
		"variable": {run("PERFMQ_SPRINKLE=6", "mem", "client", "--message-count", "3"), "mem has sprinkle 6\n"},
		"key":      {run("", "run", file), "mem has sprinkle 7\n"},
		"over it":  {run("", "run", file, "--sprinkle", "8"), "--sprinkle applies to group"},
		"again":    {run("", "run", folder), "mem has sprinkle 5\n"},
		"dry run":  {run("", "mem", "client", "--sprinkle", "5", "--dry-run"), "\n  sprinkle: 5\n"},
		"schema":   {run("", "scenario", "schema"), `"sprinkle": {`},
		"help":     {run("", "mem", "producer", "--help-all"), "\n  --sprinkle N "},
		"range":    {run("", "mem", "client", "--sprinkle", "101"), "error: --sprinkle=101: must be a whole number from 0 to 100\n"},
		"check":    {run("PERFMQ_SPRINKLE=51", "mem", "client"), "error: PERFMQ_SPRINKLE 51 does not stay\nhint: add --persistent"},
		"role":     {run("", "mem", "consumer", "--sprinkle", "5"), "it is a flag of perfmq mem client and perfmq mem producer\n"},
	} {
		require.Contains(t, c.said, c.want, name)
	}
	one, err := result.Read(folder)
	require.NoError(t, err)
	require.Contains(t, string(one.Plan), `"sprinkle": 5`)
	said, _ = exec.CommandContext(t.Context(), filepath.Join(dir, "tests"), "-test.run", "^TestSettingsReference$").CombinedOutput()
	require.Contains(t, string(said), "`--sprinkle N` | `PERFMQ_SPRINKLE` | 0 | client, producer | a producer group | sprinkles on each message |",
		"the page of settings is made of the table")
}
