package config

import (
	"encoding/json"
	"maps"
	"strings"
)

// SchemaID is the identifier of the JSON Schema of this version of the format.
const SchemaID = "https://github.com/perfmq/perfmq/scenario/v1/schema.json"

type object = map[string]any

// Schema returns the JSON Schema (2020-12) of a scenario file, for editors. Rules that the schema cannot express,
// such as that names exist and which values a setting has, are left to [Maker.Parse].
func Schema(protocols []string) []byte {
	keys := newKeys()
	protocol := *keys["protocol"]
	protocol.Default, protocol.Help = "that of url", "the protocol: "+strings.Join(protocols, ", ")
	keys["protocol"] = &protocol
	root, message := rootSchema(keys), closedObject(keys, InMessage, object{})
	message["minProperties"] = 1
	maps.Copy(root, object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SchemaID, "title": "A scenario of perfmq",
		"$defs": object{
			"value": object{"type": []string{"string", "number", "boolean"}},
			"variable": object{"anyOf": []any{
				ref("value"), closedObject(keys, 0, object{"default": ref("value"), "description": ref("value")}),
			}},
			"broker":   closedObject(keys, InBroker, object{}),
			"group":    groupSchema(keys),
			"message":  message,
			"override": withMessages(closedObject(keys, inGroup, object{})),
			"step":     stepSchema(keys),
			"threshold": object{"anyOf": []any{
				object{"type": "string"},
				closedObject(keys, 0, object{"threshold": object{"type": "string"}, "abort": object{"type": "boolean"}},
					"threshold"),
			}},
		},
	})
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil { // maps of texts always marshal
		return nil
	}
	return append(text, '\n')
}

// rootSchema is of the top of the file.
func rootSchema(keys keys) object {
	root := closedObject(keys, InRun|InStep, object{
		"version":     object{"enum": []any{1, "1"}},
		"name":        ref("value"),
		"description": ref("value"),
		"vars": note("variables, used as ${NAME}; --set NAME=VALUE overrides them", object{
			"type": "object", "propertyNames": object{"pattern": variableName.String()}, "additionalProperties": ref("variable"),
		}),
		"labels": note("free text for outputs",
			object{"type": "object", "additionalProperties": ref("value")}),
		"defaults": note("settings of brokers, groups and steps that do not give them",
			closedObject(keys, inDefaults, object{})),
		"broker":     note("the only broker", ref("broker")),
		"brokers":    note("brokers by name", named(ref("broker"))),
		"group":      note("the only group", ref("group")),
		"groups":     note("groups by name", named(ref("group"))),
		"steps":      note("steps, one after the other", nonEmpty(ref("step"))),
		"until":      untilSchema(),
		"before":     commandsSchema("before the run"),
		"after":      commandsSchema("after the run"),
		"thresholds": note("demands, METRIC OPERATOR VALUE or STEP: METRIC OPERATOR VALUE", oneOrMore(ref("threshold"))),
		keyMatrix: note("a run for each combination", object{
			"type": "object", "minProperties": 1, "additionalProperties": oneOrMore(ref("value")), "properties": object{
				keyExclude: note("excluded combinations", oneOrMore(object{
					"type": "object", "minProperties": 1, "additionalProperties": oneOrMore(ref("value")),
				})),
			},
		}),
	})
	root["allOf"] = []any{oneRequired("broker", "brokers"), oneRequired("group", "groups")}
	return root
}

// oneRequired wants one of two keys.
func oneRequired(a, b string) object {
	return object{"oneOf": []any{object{"required": []string{a}}, object{"required": []string{b}}}}
}

func groupSchema(keys keys) object {
	return withMessages(closedObject(keys, inGroup, object{
		"role":            object{"enum": Roles()},
		"broker":          note("name of a broker", ref("value")),
		"consumer-broker": note("the consumers' broker", ref("value")),
		"destination": note("queue://NAME, topic://NAME or ADDRESS::QUEUE",
			oneOrMore(ref("value"))),
		"destinations": oneOrMore(ref("value")),
	}, "role"))
}

// withMessages adds the kinds of messages to the schema of a group.
func withMessages(schema object) object {
	messages := nonEmpty(ref("message"))
	messages["maxItems"] = maxMessages
	schema["properties"].(object)[keyMessages] = //nolint:forcetypeassert // closedObject has made it
		note("kinds of messages", messages)
	return schema
}

func stepSchema(keys keys) object {
	return closedObject(keys, InStep, object{
		"name": note("unique name", ref("value")),
		"groups": note("groups of the step (default: all)", object{"anyOf": []any{
			oneOrMore(ref("value")), named(object{"anyOf": []any{object{"type": "null"}, ref("override")}}),
		}}),
		"until":      untilSchema(),
		"before":     commandsSchema("before the step"),
		"after":      commandsSchema("after the step"),
		"thresholds": note("demands, METRIC OPERATOR VALUE", oneOrMore(ref("threshold"))),
	})
}

func commandsSchema(when string) object {
	return note("commands "+when, oneOrMore(ref("value")))
}

func untilSchema() object {
	return note("what ends the step",
		object{"enum": []string{untilDrained, untilCount}})
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func note(text string, schema object) object {
	schema["description"] = text
	return schema
}

func nonEmpty(item object) object { return object{"type": "array", "items": item, "minItems": 1} }

func oneOrMore(item object) object { return object{"anyOf": []any{item, nonEmpty(item)}} }

// named is a map by names of brokers, groups or steps.
func named(value object) object {
	names := object{"pattern": plainName.String()}
	return object{"type": "object", "propertyNames": names, "additionalProperties": value, "minProperties": 1}
}

// closedObject is a map with the settings of some places and further keys, and nothing else.
func closedObject(keys keys, places Scope, more object, required ...string) object {
	properties := ofPlaces(keys, places)
	maps.Copy(properties, more)
	o := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// ofPlaces returns the schemas of the settings of some places by their names.
func ofPlaces(keys keys, places Scope) object {
	all := object{}
	if places == 0 {
		return all
	}
	for _, name := range keys.names(places) {
		all[name] = keys.find(name, places).schema()
	}
	return all
}

// schema returns the schema of a setting's value.
func (s *Setting) schema() object {
	value := object{"$ref": "#/$defs/value"}
	variable := object{"type": "string", "pattern": `\$\{`} // its value is not known
	switch {
	case s.Arg == "":
		value = object{"anyOf": []any{object{"type": "boolean"}, object{"enum": []string{"true", "false"}}, variable}}
	case len(s.Words) > 0:
		value = object{"anyOf": []any{object{"enum": s.Words}, variable}}
	}
	forms := []any{value}
	if s.List || s.join() != "" {
		forms = append(forms, nonEmpty(value))
	}
	if s.Pairs {
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
