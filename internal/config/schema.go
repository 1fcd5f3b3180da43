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
	root, message := keys.closedObject(InRun|InStep, rootShape()), keys.closedObject(InMessage, nil)
	message["minProperties"] = 1
	root["properties"].(object)["defaults"] = //nolint:forcetypeassert // closedObject has made it
		note("defaults of brokers, groups and steps", keys.closedObject(inDefaults, nil))
	root["allOf"] = []any{oneRequired("broker", "brokers"), oneRequired("group", "groups")}
	maps.Copy(root, object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SchemaID, "title": "A scenario of perfmq",
		"$defs": object{
			"value":    object{"type": []string{"string", "number", "boolean"}},
			"variable": object{"anyOf": []any{ref("value"), keys.closedObject(0, variableShape())}},
			"broker":   keys.closedObject(InBroker, nil),
			"group":    keys.closedObject(inGroup, groupShape(), "role"),
			"message":  message,
			"override": keys.closedObject(inGroup, withMessages(object{})),
			"step":     keys.closedObject(InStep, stepShape()),
			"threshold": object{"anyOf": []any{
				object{"type": "string"}, keys.closedObject(0, thresholdShape(), "threshold"),
			}},
		},
	})
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil { // maps of texts always marshal
		return nil
	}
	return append(text, '\n')
}

// The shapes have the keys of places that are no settings, with their schemas.

func variableShape() object { return object{"default": ref("value"), "description": ref("value")} }

func thresholdShape() object {
	return object{"threshold": object{"type": "string"}, "abort": object{"type": "boolean"}}
}

// rootShape is of the top of the file.
func rootShape() object {
	return object{
		"version":     object{"enum": []any{1, "1"}},
		"name":        ref("value"),
		"description": ref("value"),
		"vars": note("variables, as ${NAME}; --set NAME=VALUE overrides them", object{
			"type": "object", "propertyNames": object{"pattern": variableName.String()}, "additionalProperties": ref("variable"),
		}),
		"labels": note("free text for outputs",
			object{"type": "object", "additionalProperties": ref("value")}),
		"defaults":   object{},
		"broker":     note("the only broker", ref("broker")),
		"brokers":    note("brokers by name", mapOf(ref("broker"))),
		"group":      note("the only group", ref("group")),
		"groups":     note("groups by name", mapOf(ref("group"))),
		"steps":      note("steps, one after the other", nonEmpty(ref("step"))),
		"until":      untilSchema(),
		"before":     commandsSchema("before the run"),
		"after":      commandsSchema("after the run"),
		"thresholds": note("METRIC OPERATOR VALUE or STEP: METRIC OPERATOR VALUE", oneOrMore(ref("threshold"))),
		keyMatrix: note("a run for each combination", object{
			"type": "object", "minProperties": 1, "additionalProperties": oneOrMore(ref("value")), "properties": object{
				keyExclude: note("excluded combinations", oneOrMore(object{
					"type": "object", "minProperties": 1, "additionalProperties": oneOrMore(ref("value")),
				})),
			},
		}),
	}
}

// oneRequired wants one of two keys.
func oneRequired(a, b string) object {
	return object{"oneOf": []any{object{"required": []string{a}}, object{"required": []string{b}}}}
}

func groupShape() object {
	return withMessages(object{
		"role":            object{"enum": Roles()},
		"broker":          note("name of a broker", ref("value")),
		"consumer-broker": note("the consumers' broker", ref("value")),
		"destination": note("queue://NAME, topic://NAME or ADDRESS::QUEUE",
			oneOrMore(ref("value"))),
		"destinations": oneOrMore(ref("value")),
	})
}

// withMessages adds the kinds of messages to the shape of a group.
func withMessages(shape object) object {
	messages := nonEmpty(ref("message"))
	messages["maxItems"] = maxMessages
	shape[keyMessages] = note("kinds of messages", messages)
	return shape
}

func stepShape() object {
	return object{
		"name": note("unique name", ref("value")),
		"groups": note("groups of the step (default: all)", object{"anyOf": []any{
			oneOrMore(ref("value")), mapOf(object{"anyOf": []any{object{"type": "null"}, ref("override")}}),
		}}),
		"until":      untilSchema(),
		"before":     commandsSchema("before the step"),
		"after":      commandsSchema("after the step"),
		"thresholds": note("demands, METRIC OPERATOR VALUE", oneOrMore(ref("threshold"))),
	}
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

// mapOf is a map by names of brokers, groups or steps.
func mapOf(value object) object {
	names := object{"pattern": plainName.String()}
	return object{"type": "object", "propertyNames": names, "additionalProperties": value, "minProperties": 1}
}

// closedObject is a map with the settings of some places and further keys, and nothing else.
func (k keys) closedObject(places Scope, shape object, required ...string) object {
	properties := object{}
	for _, name := range k.names(places) {
		properties[name] = k[name].schema()
	}
	maps.Copy(properties, shape)
	o := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
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
