package scenario

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	yaml "go.yaml.in/yaml/v4"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text := Schema(settingsTable())
	require.Equal(t, string(text), string(Schema(settingsTable())), "the same bytes each time")
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, c.AddResource(SchemaID, document))
	schema, err := c.Compile(SchemaID)
	require.NoError(t, err)
	return schema
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

// TestSchemaAccepts: the schema accepts what Parse accepts.
func TestSchemaAccepts(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	require.NoError(t, schema.Validate(asJSON(t, Skeleton())))
	for _, file := range filesOf(t, "valid") {
		if file == "testdata/valid/as-written.yaml" {
			continue // has dates, and infinity, which JSON has not
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, schema.Validate(asJSON(t, text)), file)
	}
}

// TestSchemaRefuses: the schema refuses mistakes of shape.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	for _, name := range []string{
		"list", "text", "unknown-keys", "misplaced", "misplaced-in-groups", "wrong-types", "steps-types", "no-values", "no-sections",
		"empty-sections", "no-groups", "no-broker", "only-name", "version", "brokers-both", "roles", "names", "refused", "switches", "until",
		"thresholds", "messages-keys", "messages-types", "messages-misplaced",
	} {
		text, err := os.ReadFile("testdata/garbled/" + name + ".yaml")
		require.NoError(t, err)
		require.Error(t, schema.Validate(asJSON(t, text)), name)
	}
	for _, text := range []string{
		"foo: 1", "duration: 3s\nsteps: [{name: a}]", "until: drained\nsteps: [{name: a}]", "steps: [{rate: 5}]", "defaults: {verify: true}",
		"brokers: {a: {}}", "vars: {a: [1]}", "steps: [{groups: {senders: {duration: 5s}}}]", "thresholds: [{abort: true}]",
	} {
		base := "broker: {protocol: amqp}\ngroups: {senders: {role: producer}}\n"
		require.NoError(t, schema.Validate(asJSON(t, []byte(base))))
		require.Error(t, schema.Validate(asJSON(t, []byte(base+text))), text)
	}
	for _, group := range []string{
		"{}", "{role: both}", "{role: producer, credit: 5}", "{role: consumer, rate: 5}", "{role: producer, persistent: 1}", "{role: producer, producers: [1]}",
		"{role: producer, messages: []}", "{role: producer, messages: [{}]}", "{role: producer, messages: [{weight: [1]}]}", "{role: producer, choose: turn}",
		"{role: consumer, messages: [{weight: 1}]}", "{role: producer, choose: both, messages: [{weight: 1}]}",
	} {
		require.Error(t, schema.Validate(asJSON(t, []byte("broker: {protocol: amqp}\ngroups: {senders: "+group+"}\n"))), group)
	}
}
