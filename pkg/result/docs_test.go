package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

const guide, reference = "../../docs/results.md", "../../docs/result-reference.md"

// TestReferenceHasAllFields: the tables of docs/result-reference.md are made of the comments.
func TestReferenceHasAllFields(t *testing.T) {
	const from, to = "-update -->\n", "<!-- end of fields -->"
	text := musttest.Get(os.ReadFile(reference))(t)
	before, rest, ok := strings.Cut(string(text), from)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, to)
	require.True(t, ok)
	var b strings.Builder
	g := generator{comments: comments(t)}
	seen := map[reflect.Type]bool{}
	g.tables(&b, seen, reflect.TypeFor[Result]())
	g.tables(&b, seen, reflect.TypeFor[Row]())
	want := before + from + b.String() + "\n" + to + after
	if *update {
		require.NoError(t, os.WriteFile(reference, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "run the test with -update to write it")
}

// tables writes a table of a struct's keys, then a table for each struct in it.
func (g *generator) tables(b *strings.Builder, seen map[reflect.Type]bool, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t == reflect.TypeFor[Latencies]() && !seen[t] {
		seen[t] = true
		fmt.Fprintf(b, "\n### %s\n\n%s\n\n| key | type | meaning |\n| --- | --- | --- |\n", t.Name(), g.comments[t.Name()])
		for _, k := range Kinds() {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", k.Name, typeName(t.Elem()), k.Help)
		}
		g.tables(b, seen, t.Elem())
		return
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[Histogram]() || seen[t] {
		return
	}
	seen[t] = true
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n| key | type | meaning |\n| --- | --- | --- |\n", t.Name(), g.comments[t.Name()])
	var inner []reflect.Type
	var rows func(reflect.Type)
	rows = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-":
			case f.Anonymous && f.Type.Kind() == reflect.Pointer:
				rows(f.Type.Elem())
			case f.Anonymous:
				fmt.Fprintf(b, "| | | and the keys of %s |\n", f.Type.Name())
				inner = append(inner, f.Type)
			default:
				fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, typeName(f.Type), g.comments[t.Name()+"."+f.Name])
				inner = append(inner, f.Type)
			}
		}
	}
	rows(t)
	for _, t := range inner {
		g.tables(b, seen, t)
	}
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return "any"
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem())
	case t.Kind() == reflect.Map:
		return "object of " + typeName(t.Elem())
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64, t.Kind() == reflect.Uint64:
		return "integer"
	case t == reflect.TypeFor[Histogram]():
		return "text"
	case t.Kind() == reflect.Struct, t == reflect.TypeFor[Latencies]():
		return "[" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
	}
	return t.Kind().String()
}

// TestExamplesOfTheGuide runs each jq command of docs/results.md.
func TestExamplesOfTheGuide(t *testing.T) {
	t.Parallel()
	text := musttest.Get(os.ReadFile(guide))(t)
	dir := write(t, sample(t, 12, 4, 50))
	var out strings.Builder
	commands := 0
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "jq ") {
			commands++
			out.WriteString("$ " + line + "\n" + jq(t, dir, line))
		}
	}
	require.GreaterOrEqual(t, commands, 8)
	require.NotContains(t, out.String(), "null")
	path := filepath.Join("testdata", "jq.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(out.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	require.Equal(t, string(want), out.String())
}

// jq runs a command as jq does: jq [-r] [-c] [-s] 'QUERY' run/FILE.
func jq(t *testing.T, dir, command string) (out string) {
	t.Helper()
	parts := strings.Split(command, "'")
	require.Len(t, parts, 3, command)
	flags := strings.Fields(parts[0])[1:]
	name, ok := strings.CutPrefix(strings.TrimSpace(parts[2]), "run/")
	require.True(t, ok, command)
	query, err := gojq.Parse(parts[1])
	require.NoError(t, err, command)
	text := musttest.Get(os.ReadFile(filepath.Join(dir, name)))(t)
	var values []any
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var value any
		require.NoError(t, decoder.Decode(&value))
		values = append(values, value)
	}
	if slices.Contains(flags, "-s") {
		values = []any{values}
	}
	for _, value := range values {
		for results := query.Run(value); ; {
			v, ok := results.Next()
			if !ok {
				break
			}
			if err, failed := v.(error); failed {
				require.NoError(t, err, command)
			}
			if text, ok := v.(string); ok && slices.Contains(flags, "-r") {
				out += text + "\n"
				continue
			}
			line := musttest.Get(gojq.Marshal(v))(t)
			out += string(line) + "\n"
		}
	}
	require.NotEmpty(t, out, command)
	return out
}
