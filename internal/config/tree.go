package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

type kind uint8

const (
	scalar kind = iota
	sequence
	mapping
)

// node is a value with its position. Aliases are replaced by copies of their anchors.
type node struct {
	kind   kind
	text   string   // of a scalar, with the values of variables
	raw    string   // of a scalar, as it is written
	uses   []string // variables in a scalar
	null   bool     // a scalar without a value
	quoted bool
	broken bool // a mistake in it was reported
	items  []*node
	pairs  []pair
	pos    Pos
}

// pair is a key, a scalar, with its value.
type pair struct{ key, value *node }

// get returns the value of a key, nil if there is none.
func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return nil
}

// Limits of a tree. A file of our format needs eight levels.
const (
	maxDepth = 32
	maxNodes = 200_000
	maxText  = 64 << 10 // bytes of one value
	maxTexts = 4 << 20  // bytes of all values together, with variables and aliases replaced
)

var errDepth = errors.New("too deep")

// reader turns the library's tree into nodes.
type reader struct {
	source   *source
	mistakes []Mistake
	open     map[*yaml.Node]bool // being read: an alias of one stands in itself
	alias    Pos                 // the outermost being replaced; Line is 0 if none is
	nodes    int
	bytes    int
	full     bool
}

// readTree reads the only document. The root is nil if that cannot be: then there are mistakes, else there may be some.
func readTree(s *source) (*node, []Mistake) {
	deep := false
	limits := loaderlimits.New(
		loaderlimits.DepthFunc(func(depth int, _ *loaderlimits.DepthContext) error {
			if depth > maxDepth {
				deep = true
				return errDepth
			}
			return nil
		}),
		loaderlimits.AliasNone(), // they are counted here
	)
	loader, err := yaml.NewLoader(bytes.NewReader(s.text), yaml.WithPlugin(limits))
	if err != nil {
		return nil, []Mistake{s.syntax(err, false)}
	}
	var document, second yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		return nil, []Mistake{s.mistake(1, 1, "perfmq scenario init writes an example", "the file is empty")}
	} else if err != nil {
		return nil, []Mistake{s.syntax(err, deep)}
	}
	r := &reader{source: s, open: map[*yaml.Node]bool{}}
	root := r.read(document.Content[0], 0)
	if err := loader.Load(&second); err == nil {
		r.bad(s.pos(second.Line, second.Column), "make it a file of its own",
			"a second document begins: a file is one scenario")
	} else if !errors.Is(err, io.EOF) {
		r.mistakes = append(r.mistakes, s.syntax(err, deep))
	}
	switch {
	case root == nil || r.full:
		return nil, r.mistakes
	case root.null:
		return nil, []Mistake{s.mistake(1, 1, "perfmq scenario init writes an example", "the file is empty")}
	case root.kind != mapping:
		r.bad(root.pos, "perfmq scenario init writes an example", "a scenario must be a map, KEY: VALUE, not %s", root.what())
		return nil, r.mistakes
	}
	return root, r.mistakes
}

func (r *reader) bad(pos Pos, hint, format string, args ...any) {
	if len(r.mistakes) < maxMistakes {
		r.mistakes = append(r.mistakes, Mistake{Pos: pos, Text: fmt.Sprintf(format, args...), Hint: hint})
	}
}

// read returns nil if it cannot go on.
func (r *reader) read(n *yaml.Node, depth int) *node {
	pos := r.source.pos(n.Line, n.Column)
	if r.nodes, r.bytes = r.nodes+1, r.bytes+len(n.Value); r.nodes > maxNodes || r.bytes > maxTexts || depth > 2*maxDepth {
		if !r.full {
			if r.alias.Line > 0 {
				pos = r.alias
			}
			r.bad(pos, "make it several files", "the file has more than %d values, or %d bytes of them, with all aliases "+
				"replaced",
				maxNodes, maxTexts)
		}
		r.full = true
		return nil
	}
	if n.Kind == yaml.AliasNode {
		if n.Alias == nil || r.open[n.Alias] {
			r.bad(pos, "", "the alias *%s stands within its own anchor", n.Value)
			return &node{pos: pos, broken: true}
		}
		if r.alias.Line == 0 {
			r.alias = pos
			defer func() { r.alias = Pos{} }()
		}
		return r.read(n.Alias, depth+1)
	}
	r.open[n] = true
	defer delete(r.open, n)
	out := &node{pos: pos}
	if n.Style&yaml.TaggedStyle != 0 {
		r.bad(pos, "leave it out; put a text that looks like something else into quotes", "a tag such as %s has no use here",
			n.Tag)
		out.broken = true
	}
	switch n.Kind {
	case yaml.SequenceNode:
		out.kind = sequence
		for _, c := range n.Content {
			item := r.read(c, depth+1)
			if item == nil {
				return nil
			}
			out.items = append(out.items, item)
		}
	case yaml.MappingNode:
		out.kind = mapping
		if !r.readPairs(out, n, depth) {
			return nil
		}
	default:
		out.text, out.raw = n.Value, n.Value
		out.quoted = n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
		out.null = n.Tag == "!!null" && !out.quoted
		if len(n.Value) > maxText {
			r.bad(pos, "", "the value is longer than %d bytes", maxText)
			out.broken = true
		}
	}
	return out
}

// readPairs reads the keys and values of a map; false if it cannot go on.
func (r *reader) readPairs(out *node, n *yaml.Node, depth int) bool {
	first := map[string]Pos{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := r.read(n.Content[i], depth+1), r.read(n.Content[i+1], depth+1)
		if key == nil || value == nil {
			return false
		}
		switch before, twice := first[key.text]; {
		case key.broken:
		case key.kind != scalar:
			r.bad(key.pos, "put a text with { or [ into quotes", "a key must be a text, not %s", key.what())
		case key.null:
			r.bad(key.pos, "", "a key is missing before the colon")
		case !key.quoted && key.text == "<<":
			r.bad(key.pos, "put settings that several have under defaults:", "merge keys (<<) are not supported")
			out.broken = true
		case len(key.text) > maxKey:
			r.bad(key.pos, "", "the key is longer than %d bytes", maxKey)
		case twice:
			r.bad(key.pos, fmt.Sprintf("the first is in line %d", before.Line), "%s is given twice", key.text)
		default:
			first[key.text] = key.pos
			out.pairs = append(out.pairs, pair{key, value})
		}
	}
	return true
}

const maxKey = 256

// what returns the kind of a value, for messages.
func (n *node) what() string {
	switch n.kind {
	case sequence:
		return "a list"
	case mapping:
		return "a map"
	default:
		return "a value"
	}
}

// syntax makes a mistake of an error of the library. Deep tells that it is about the depth.
func (s *source) syntax(err error, deep bool) Mistake {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return s.mistake(1, 1, "", "the file is not YAML: %v", err)
	}
	if deep {
		return s.mistake(le.Mark.Line, le.Mark.Column, "", "the file is nested deeper than %d levels", maxDepth)
	}
	pos := s.pos(le.Mark.Line, le.Mark.Column)
	line := s.line(pos.Line)
	if indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(indent, "\t") {
		column := utf8.RuneCountInString(indent[:strings.Index(indent, "\t")]) + 1
		return s.mistake(pos.Line, column, "indent with spaces", "a tab cannot indent")
	}
	text := le.Message
	if le.ContextMsg != "" {
		text += ", " + le.ContextMsg
		if begin := s.pos(le.ContextMark.Line, 1).Line; le.ContextMark.Line > 0 && begin != pos.Line {
			text += fmt.Sprintf(" that begins in line %d", begin)
		}
	}
	return Mistake{Pos: pos, Text: "not YAML: " + text, Hint: "look at indentation, quotes and brackets here and in the " +
		"lines before: a value with ${NAME} in braces, with one of @`%*&! " +
		"at its beginning, or with a colon and a blank needs quotes"}
}
