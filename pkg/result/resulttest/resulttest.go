// Package resulttest checks folders of results with an independent validator of JSON Schema.
package resulttest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// Schemas are the compiled schemas of result.json and of the two kinds of lines in rows.jsonl.
type Schemas struct{ Result, Head, Row *jsonschema.Schema }

// Compile compiles the schema of package result, which has the identifier id.
func Compile(t testing.TB, schema []byte, id string) Schemas {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource(id, document))
	compile := func(at string) *jsonschema.Schema {
		s, err := compiler.Compile(id + at)
		require.NoError(t, err)
		return s
	}
	return Schemas{Result: compile(""), Head: compile("#/$defs/Head"), Row: compile("#/$defs/Row")}
}

// Validate fails the test unless the schemas describe the files in a folder. result.json may be missing, as after a
// kill, and the last line of rows.jsonl may be cut off.
func (s Schemas) Validate(t testing.TB, dir string) {
	t.Helper()
	check := func(schema *jsonschema.Schema, text []byte) {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(value))
	}
	if text, err := os.ReadFile(filepath.Join(dir, "result.json")); !os.IsNotExist(err) {
		require.NoError(t, err)
		check(s.Result, text)
	}
	text, err := os.ReadFile(filepath.Join(dir, "rows.jsonl"))
	require.NoError(t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines[:len(lines)-1] {
		if i == 0 {
			check(s.Head, line)
		} else {
			check(s.Row, line)
		}
	}
}
