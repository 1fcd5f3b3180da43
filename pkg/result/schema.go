package result

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// SchemaID is the identifier of the JSON Schema of this version.
const SchemaID = "https://github.com/perfmq/perfmq/pkg/result/v1/schema.json"

// Schema returns the JSON Schema (2020-12) of result.json. $defs/Head describes the first line of rows.jsonl, $defs/Row
// the others.
func Schema() []byte { return slices.Clone(schema) }
