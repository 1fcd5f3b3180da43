package config

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
)

type object = map[string]any

// schemaText is the JSON Schema (2020-12) of a scenario file without the settings.
//
//go:embed schema.json
var schemaText []byte

// readSchema returns that schema.
func readSchema() (root object) {
	_ = json.Unmarshal(schemaText, &root) // TestSchema reads it, too
	return root
}

// properties returns the keys of a part of the schema: of the object at that path, by default of the file.
func properties(of object, path ...string) object {
	for _, key := range append(path, "properties") {
		of = of[key].(object) //nolint:forcetypeassert // schema.json has these objects
	}
	return of
}

// Schema returns the JSON Schema of a scenario file, for editors. Rules that the schema cannot express, such as that
// names exist and which values a setting has, are left to [Maker.Parse].
func Schema(protocols []string) []byte {
	keys, root := newKeys(), readSchema()
	protocol := *keys["protocol"]
	protocol.Default, protocol.Help = "that of url", "the protocol: "+strings.Join(protocols, ", ")
	keys["protocol"] = &protocol
	for _, part := range []struct {
		places Scope
		keys   object
	}{
		{InRun | InStep, properties(root)},
		{inDefaults, properties(root, "properties", "defaults")},
		{InBroker, properties(root, "$defs", "broker")},
		{inGroup, properties(root, "$defs", "group")},
		{inGroup, properties(root, "$defs", "override")},
		{InMessage, properties(root, "$defs", "message")},
		{InStep, properties(root, "$defs", "step")},
	} {
		for _, name := range keys.names(part.places) {
			of := keys[name].schema()
			if shape := part.keys[name]; shape != nil { // of groups of another role
				of = object{"anyOf": []any{shape, of}}
			}
			part.keys[name] = of
		}
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil { // maps of texts always marshal
		return nil
	}
	return append(text, '\n')
}

// schema returns the schema of a setting's value.
func (s *Setting) schema() object {
	value := object{"$ref": "#/$defs/value"}
	variable := object{"type": "string", "pattern": `\$\{`} // its value is not known
	switch words := s.Words(); {
	case s.Arg == "":
		value = object{"anyOf": []any{object{"type": "boolean"}, object{"enum": []string{"true", "false"}}, variable}}
	case len(words) > 0:
		value = object{"anyOf": []any{object{"enum": words}, variable}}
	}
	forms := []any{value}
	if s.List || s.join() != "" {
		forms = append(forms, object{"type": "array", "items": value, "minItems": 1})
	}
	if s.Is("pairs") {
		forms = append(forms, object{"type": "object", "additionalProperties": value, "minProperties": 1})
	}
	if len(forms) > 1 {
		value = object{"anyOf": forms}
	}
	value["description"] = help(s)
	return value
}

// help describes a setting.
func help(s *Setting) string {
	text := s.Help
	if s.Arg != "" {
		text = s.Arg + ": " + text
	}
	if s.Default != "" {
		text += " (default: " + s.Default + ")"
	}
	return text
}

//go:embed skeleton.yaml
var skeleton []byte

// Skeleton returns an example to begin with: a scenario file with comments.
func Skeleton() []byte { return slices.Clone(skeleton) }
