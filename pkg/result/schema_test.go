package result

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

// object is a JSON object with sorted keys.
type object = map[string]any

// generator makes the schema from the types and their comments.
type generator struct {
	comments map[string]string // by "Type" and "Type.Field"
	defs     object
}

// TestSchemaIsThatOfTheTypes: schema.json agrees with the types.
func TestSchemaIsThatOfTheTypes(t *testing.T) {
	t.Parallel()
	g := generator{comments: comments(t), defs: object{}}
	root := g.of(reflect.TypeFor[Result]())
	g.of(reflect.TypeFor[Row]())
	g.of(reflect.TypeFor[Head]())
	text, err := json.MarshalIndent(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SchemaID, "title": "The result of a run of perfmq",
		"description": "result.json. $defs/Head is the first line of rows.jsonl, $defs/Row are the others. Times are in microseconds.",
		"$ref":        root["$ref"], "$defs": g.defs,
	}, "", "  ")
	require.NoError(t, err)
	text = append(text, '\n')
	if *update {
		require.NoError(t, os.WriteFile("schema.json", text, 0o600))
		schema = text
	}
	require.Equal(t, string(text), string(Schema()), "run the test with -update to write it")
}

// comments returns the comments of the package's types and fields.
func comments(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	sources := musttest.Get(filepath.Glob("*.go"))(t)
	for _, source := range sources {
		file := musttest.Get(parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments))(t)
		for _, d := range file.Decls {
			declaration, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range declaration.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				found[spec.Name.Name] = oneLine(declaration.Doc)
				body, ok := spec.Type.(*ast.StructType)
				if !ok {
					continue
				}
				last := ""
				for _, field := range body.Fields.List {
					text := oneLine(field.Doc) + oneLine(field.Comment)
					if text == "" {
						text = last // several fields share a comment
					}
					last = text
					for _, name := range field.Names {
						found[spec.Name.Name+"."+name.Name] = text
					}
				}
			}
		}
	}
	return found
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// of returns the schema of a type.
func (g *generator) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case t == reflect.TypeFor[Difference]():
		return object{"type": "integer"}
	case t == reflect.TypeFor[Latencies]():
		if g.defs[t.Name()] == nil {
			properties := object{}
			g.defs[t.Name()] = object{
				"type": "object", "description": g.comments[t.Name()], "properties": properties, "required": []string{},
				"additionalProperties": false,
			}
			for _, k := range Kinds() {
				s := g.of(reflect.TypeFor[Latency]())
				s["description"] = k.Help
				properties[k.Name] = s
			}
		}
		return object{"$ref": "#/$defs/" + t.Name()}
	case t == reflect.TypeFor[Histogram]():
		return object{"type": "string", "contentEncoding": "base64", "description": g.comments["Histogram"]}
	}
	switch t.Kind() {
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Float64 { // a value that may not be known
			return object{"type": []string{"number", "null"}}
		}
		return g.of(t.Elem())
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return object{"type": "array", "items": g.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		if g.defs[t.Name()] == nil {
			properties, required := object{}, []string{}
			g.defs[t.Name()] = object{}
			g.fields(t, properties, &required, true)
			g.defs[t.Name()] = object{
				"type": "object", "description": g.comments[t.Name()], "properties": properties, "required": required, "additionalProperties": false,
			}
		}
		return object{"$ref": "#/$defs/" + t.Name()}
	}
	panic(fmt.Sprintf("there is no schema for %s", t))
}

// fields adds the fields of a struct, including embedded ones.
func (g *generator) fields(t reflect.Type, properties object, required *[]string, must bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			embedded, optional := f.Type, false
			if embedded.Kind() == reflect.Pointer {
				embedded, optional = embedded.Elem(), true
			}
			g.fields(embedded, properties, required, must && !optional)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		s := g.of(f.Type)
		comment := g.comments[t.Name()+"."+f.Name]
		if comment == "" {
			panic(t.Name() + "." + f.Name + " has no comment")
		}
		s["description"] = comment
		switch t.Name() + "." + f.Name {
		case "Head.Format":
			s["const"] = Format
		case "Head.Version":
			s["const"] = Version
		case "Row.Phase":
			s["enum"] = []string{Warmup, Measure, Drain}
		case "Row.Length":
			s["minimum"] = 1
		}
		properties[name] = s
		if must && options != "omitempty" && options != "omitzero" {
			*required = append(*required, name)
		}
	}
}

// The schema takes a written result, and refuses it with another key, type, phase or version.
func TestSchemaValidates(t *testing.T) {
	t.Parallel()
	dir := write(t, sample(t, 3, 3, 10))
	schemas := resulttest.Compile(t, Schema(), SchemaID)
	schemas.Validate(t, dir)
	outage := sample(t, 3, 3, 10)
	outage.Outages = []Outage{{Time: 1, Elapsed: 1, Workers: []string{"p"}, Class: "connect", Error: "x"}} // before any message
	outage.Workers[0].BrokerHosts = []string{"a:1", "b:1"}
	schemas.Validate(t, write(t, outage))
	text := musttest.Get(os.ReadFile(filepath.Join(dir, ResultFile)))(t)
	for _, change := range []struct{ old, with string }{
		{`"complete": true`, `"complete": "true"`},
		{`"complete": true`, `"complete": true, "other": 1`},
		{`"complete": true,`, ``},
		{`"version": 1`, `"version": 2`},
		{`"format": "perfmq result"`, `"format": "other"`},
		{`"count": `, `"count": -`},
		{`"sent": `, `"sent": 0.`},
	} {
		changed := strings.Replace(string(text), change.old, change.with, 1)
		require.NotEqual(t, string(text), changed)
		value := musttest.Get(jsonschema.UnmarshalJSON(strings.NewReader(changed)))(t)
		require.Error(t, schemas.Result.Validate(value), change.with)
	}
}
