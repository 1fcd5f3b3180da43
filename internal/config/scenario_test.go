package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	yaml "go.yaml.in/yaml/v4"

	"github.com/perfmq/perfmq/internal/safetext"
)

//go:generate go test . -short -count=1 -update

var update = flag.Bool("update", false, "write the golden files")

func testMaker() *Maker { return &Maker{Secrets: new(safetext.Secrets)} }

// setFor returns the variables that a file is parsed with: its comments "# set NAME=VALUE".
func setFor(text []byte) map[string]string {
	set := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "# set "); ok {
			name, value, _ := strings.Cut(strings.TrimSpace(rest), "=")
			set[name] = value
		}
	}
	return set
}

func filesOf(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// TestGarbled: each file of testdata/garbled is refused with the messages beside it.
func TestGarbled(t *testing.T) {
	t.Parallel()
	files := filesOf(t, "garbled")
	require.GreaterOrEqual(t, len(files), 60)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := filepath.Base(file)
		_, err = testMaker().Parse(name, text, setFor(text))
		var mistakes Mistakes
		require.ErrorAs(t, err, &mistakes, file)
		require.NotEmpty(t, mistakes, file)
		requireSound(t, name, text, mistakes)
		golden := strings.TrimSuffix(file, ".yaml") + ".txt"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600))
		}
		want, readErr := os.ReadFile(golden)
		require.NoError(t, readErr)
		require.Equal(t, string(want), err.Error()+"\n", file)
	}
}

// requireSound: mistakes are within the file, in order, without control characters, and hold no secret of the files.
func requireSound(t *testing.T, name string, text []byte, mistakes Mistakes) {
	t.Helper()
	lines := strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n")
	last := Pos{Line: 1}
	for i := range mistakes {
		m := &mistakes[i]
		require.Equal(t, name, m.Pos.File)
		require.GreaterOrEqual(t, m.Pos.Line, 1)
		require.LessOrEqual(t, m.Pos.Line, len(lines)+1)
		require.GreaterOrEqual(t, m.Pos.Column, 1)
		require.False(t, m.Pos.Line < last.Line || m.Pos.Line == last.Line && m.Pos.Column < last.Column, "in order")
		last = m.Pos
		require.NotEmpty(t, m.Text)
		for _, shown := range []string{m.Text, m.Hint} {
			require.False(t, strings.ContainsFunc(shown, unicode.IsControl), "%q", shown)
			require.Less(t, len(shown), 2000)
			for _, secret := range testSecrets() {
				require.NotContains(t, shown, secret)
			}
		}
	}
}

func testSecrets() []string {
	return []string{"hunter", "swordfish", "letmein", "opensesame", "secret1"}
}

const minimal = "broker: {protocol: amqp}\ngroups: {senders: {role: producer}}\n"

// TestSkeleton: the scenario to begin with is valid, also with a variable.
func TestSkeleton(t *testing.T) {
	t.Parallel()
	s, err := testMaker().Parse("new.yaml", Skeleton(), map[string]string{"size": "4KiB"})
	require.NoError(t, err)
	require.Len(t, s.file.groups, 2)
	require.Len(t, s.file.steps, 2)
	require.Len(t, s.file.steps[1].thresholds, 1)
}

// TestLimits: what would take long, or much memory, is refused.
func TestLimits(t *testing.T) {
	t.Parallel()
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ text, want string }{
		"size":             {minimal + strings.Repeat("#", MaxSize), "more than 1048576 bytes"},
		"flow":             {strings.Repeat("[", 500_000), "deeper than 32 levels"},
		"flow maps":        {strings.Repeat("{a: ", 200_000), "deeper than 32 levels"},
		"block":            {strings.Repeat("- ", 500_000), "deeper than 32 levels"},
		"questions":        {strings.Repeat("? ", 500_000), "deeper than 32 levels"},
		"groups":           {"broker: {}\ngroups: {" + many("a%d: {role: producer}, ", 300) + "}\n", "more than 256 groups"},
		"brokers":          {"groups: {a: {role: producer}}\nbrokers: {" + many("a%d: {protocol: amqp}, ", 300) + "}\n", "more than 256 brokers"},
		"steps":            {minimal + "steps:\n" + many("- name: a%d\n", 1100), "more than 1024 steps"},
		"messages":         {strings.Replace(minimal, "producer", "producer, messages: ["+many("{weight: 1%d}, ", 1025)+"]", 1), "more than 1024 messages"},
		"unknown keys":     {minimal + many("key%d: 1\n", 20_000), "and more"},
		"one line":         {"{" + many(`"key%d": 1, `, 20_000) + `"broker": {}}`, "and more"},
		"undefined":        {minimal + "before: [" + many(`"${a%d}", `, 20_000) + "x]\n", "and more"},
		"undefined in one": {minimal + "before: '" + many("${a%d}", 8_000) + "'\n", "and more"},
		"secrets on lines": {minimal + many("password%d: 'secret%[1]d'\n", 3_000), "more than 50 passwords"},
	} {
		_, err := testMaker().Parse("x.yaml", []byte(c.text), nil)
		require.ErrorContains(t, err, c.want, name)
		require.Less(t, len(err.Error()), 100_000, name)
	}
}

// TestSecretValues: the value of a secret setting is in no message, however it is written.
func TestSecretValues(t *testing.T) {
	t.Parallel()
	for _, broker := range []string{
		"{password: hunter2, ulr: x}", "{ulr: x, password: 'hun''ter2'}", `{"password": "hunter2", ulr: x}`,
		"\n  password: hunter2\n  ulr: hunter2", "\n  password:\n    hunter2\n    more\n  ulr: 5", "\n  password: >\n    hunter2\n\n    hunter2\n  ulr: 5",
		"\n  password: &p hunter2\n  ulr: *p", "{password: *hunter2}", "{password: !hunter2 }", "{password: !hunter2 x}", "{url: ! hunter2}",
		"\n  password: &hunter2 x\n  ulr: *hunter2", "{password: !hunter2!x y}", "{password: !<hunter2> x}", "{options: !hunter2 {a: 5}}", "{!hunter2 url: x}",
		"\n  ? password\n  : hunter2\n  ulr: hunter2", "{pasword: hunter2}", "{my-secret: hunter2}",
		"{url: 'amqp://a:hunter2@h', ulr: 'amqp://a:hunter2@h'}", "{user: 'me:hunter2', ulr: hunter2}", "{option: {password: hunter2}, ulr: hunter2}",
	} {
		text := "broker: " + broker + "\ngroups: {senders: {role: producer, credit: 5}}\n"
		_, err := testMaker().Parse("x.yaml", []byte(text), nil)
		require.Error(t, err, broker)
		require.NotContains(t, err.Error(), "ter2", broker)
		require.NotContains(t, err.Error(), "more", broker)
	}
	for _, name := range []string{"AWS_CREDENTIALS", "apiKey", "my-api-key", "API_KEY", "sasl.passwd"} {
		require.True(t, SecretName(name), name)
	}
}

// asJSON reads YAML as an editor does that validates it.
func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	require.NoError(t, yaml.Load(text, &v))
	return jsonValue(v)
}

// jsonValue makes texts of keys that are numbers, as JSON has them.
func jsonValue(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = jsonValue(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = jsonValue(v[k])
		}
	case map[any]any:
		texts := map[string]any{}
		for k, value := range v {
			texts[fmt.Sprint(k)] = jsonValue(value)
		}
		return texts
	}
	return v
}

// TestSchema: the schema accepts what Parse accepts, and refuses mistakes of shape.
func TestSchema(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema([]string{"amqp", "stomp"})))
	require.NoError(t, err)
	for _, limit := range []string{plainName.String(), variableName.String(), fmt.Sprintf(`"maxItems": %d`, maxMessages)} {
		require.Contains(t, string(schemaText), limit)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, c.AddResource("schema.json", document))
	schema, err := c.Compile("schema.json")
	require.NoError(t, err)
	require.NoError(t, schema.Validate(asJSON(t, Skeleton())))
	for _, file := range filesOf(t, "valid") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = testMaker().Parse(file, text, setFor(text))
		require.NoError(t, err)
		if filepath.Base(file) != "as-written.yaml" { // has dates, and infinity, which JSON has not
			require.NoError(t, schema.Validate(asJSON(t, text)), file)
		}
	}
	for _, name := range []string{
		"list", "text", "unknown-keys", "misplaced", "wrong-types", "steps-types", "no-values", "no-sections", "empty-sections", "no-groups",
		"no-broker", "only-name", "version", "brokers-both", "roles", "names", "switches", "until", "thresholds", "messages-keys", "messages-types",
	} {
		text, err := os.ReadFile("testdata/garbled/" + name + ".yaml")
		require.NoError(t, err)
		require.Error(t, schema.Validate(asJSON(t, text)), name)
	}
}

// TestDefaults: each default of the table is a value of its setting.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, s := range settings() {
		if text, ok := s.Tag.Lookup("default"); ok {
			require.NoError(t, s.Check(text), s.Name)
		}
	}
}

// FuzzParse: no file makes Parse panic or point outside of the file.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"valid", "garbled"} {
		for _, file := range filesOf(f, folder) {
			text, err := os.ReadFile(file)
			require.NoError(f, err)
			if len(text) < 4096 {
				f.Add(text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if slicesContain(text, testSecrets()) {
			return
		}
		_, err := testMaker().Parse("fuzz.yaml", text, map[string]string{"a": "1"})
		if err == nil {
			return
		}
		var mistakes Mistakes
		require.ErrorAs(t, err, &mistakes)
		requireSound(t, "fuzz.yaml", text, mistakes)
	})
}

func slicesContain(text []byte, list []string) bool {
	for _, s := range list {
		if bytes.Contains(text, []byte(s)) {
			return true
		}
	}
	return false
}
