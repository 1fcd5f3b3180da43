package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
)

const (
	scalar   = yaml.ScalarNode
	sequence = yaml.SequenceNode
	mapping  = yaml.MappingNode
)

// node is a value with its position.
type node struct {
	kind   yaml.Kind
	text   string   // of a scalar, with the values of variables
	raw    string   // of a scalar, as it is written
	uses   []string // variables in a scalar
	null   bool     // a scalar without a value
	broken bool     // a mistake in it was reported, or it is absent
	absent bool     // there is no such key
	items  []*node
	pairs  []pair
	pos    Pos
}

// pair is a key, a scalar, with its value.
type pair struct{ key, value *node }

// get returns the value of a key. An absent one can be read like any other: it is empty, and no mistake.
func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return &node{absent: true, broken: true}
}

// what describes a value in messages.
func (n *node) what() string {
	switch {
	case n.kind == mapping && len(n.pairs) == 0:
		return "an empty map"
	case n.kind == mapping:
		return "a map"
	case n.kind == sequence && len(n.items) == 0:
		return "an empty list"
	case n.kind == sequence:
		return "a list"
	case n.null:
		return "nothing"
	default:
		return "a value"
	}
}

// Limits of a file. One of our format needs eight levels.
const (
	MaxSize  = 1 << 20 // bytes
	maxDepth = 32
	maxText  = 64 << 10 // bytes of one value
	maxTexts = 4 << 20  // bytes of all values of variables together
)

// reader reads a file, and collects its mistakes.
type reader struct {
	path     string
	secrets  *safetext.Secrets
	mistakes []Mistake
}

// bad adds a mistake, once.
func (r *reader) bad(pos Pos, hint, format string, args ...any) {
	if len(r.mistakes) > maxMistakes {
		return
	}
	pos.File = r.path
	m := Mistake{Pos: pos, Text: r.secrets.Line(fmt.Sprintf(format, args...)), Hint: r.secrets.Line(hint)}
	if !slices.Contains(r.mistakes, m) {
		r.mistakes = append(r.mistakes, m)
	}
}

// twice reports a key that was given before, elsewhere if that is known.
func (r *reader) twice(key *node, before Pos) {
	hint := ""
	if before != key.pos {
		hint = fmt.Sprintf("the first is in line %d", before.Line)
	}
	r.bad(key.pos, hint, "%s is given twice", key.text)
}

// tooLarge reports more of something than there may be.
func (r *reader) tooLarge(pos Pos, what string, most int, unit string) {
	r.bad(pos, "", "%s has more than %d %s", what, most, unit)
}

// lacks reports a part without what it must have.
func (r *reader) lacks(pos Pos, hint, what, missing string) {
	r.bad(pos, hint, "%s has no %s", what, missing)
}

// err returns the mistakes in the order of the file; nil if there are none.
func (r *reader) err() error {
	if len(r.mistakes) == 0 {
		return nil
	}
	slices.SortStableFunc(r.mistakes, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return Mistakes(r.mistakes)
}

// top is the place of mistakes that have no other.
func (r *reader) top() Pos { return Pos{Line: 1, Column: 1} }

const exampleHint = "perfmq scenario init writes an example"

// tree reads the only document. The root is nil if that cannot be: then there are mistakes, else there may be some.
func (r *reader) tree(text []byte) *node {
	if len(text) > MaxSize {
		r.tooLarge(r.top(), "the file", MaxSize, "bytes")
		return nil
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if at := bytes.IndexFunc(text, unreadable); at >= 0 {
		before := text[:at]
		r.bad(Pos{
			Line:   bytes.Count(before, []byte("\n")) + 1,
			Column: utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1,
		}, "save the file as UTF-8", "here is a character that no text has")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text), yaml.WithPlugin(loaderlimits.New(
		loaderlimits.DepthFunc(func(depth int, _ *loaderlimits.DepthContext) error {
			if depth > maxDepth {
				return fmt.Errorf("nested deeper than %d levels", maxDepth)
			}
			return nil
		}), loaderlimits.AliasNone(), // aliases are refused below
	)))
	var document, second yaml.Node
	if err == nil {
		err = loader.Load(&document)
	}
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0:
		r.bad(r.top(), exampleHint, "the file is empty")
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	root := r.read(document.Content[0])
	if err := loader.Load(&second); err == nil {
		r.bad(Pos{Line: second.Line, Column: second.Column}, "", "a second document begins: a file is one scenario")
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err)
	}
	if root.kind != mapping {
		r.bad(root.pos, exampleHint, "a scenario must be a map, KEY: VALUE, not %s", root.what())
		return nil
	}
	return root
}

// unreadable finds what YAML or a terminal could take for something else.
func unreadable(c rune) bool {
	return c == utf8.RuneError || c == '\ufeff' || c == '\u2028' || c == '\u2029' ||
		unicode.IsControl(c) && !strings.ContainsRune("\t\r\n", c)
}

const (
	hintQuotes  = "put it into quotes"
	unsupported = " are not supported"
)

func (r *reader) read(n *yaml.Node) *node {
	out := &node{kind: n.Kind, pos: Pos{Line: n.Line, Column: n.Column}}
	if n.Tag == "!" || n.Style&yaml.TaggedStyle != 0 { // it may be meant as a password
		r.bad(out.pos, hintQuotes, "YAML tags"+unsupported)
		out.broken = true
	}
	switch n.Kind {
	case yaml.AliasNode:
		r.bad(out.pos, "use ${NAME} with vars:", "YAML aliases"+unsupported)
		out.broken = true
	case sequence:
		for _, c := range n.Content {
			out.items = append(out.items, r.read(c))
		}
	case mapping:
		r.readPairs(out, n)
	default:
		out.text, out.raw = n.Value, n.Value
		const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
		out.null = n.Tag == "!!null" && n.Style&quoted == 0
		if len(n.Value) > maxText {
			r.tooLarge(out.pos, "the value", maxText, "bytes")
			out.broken = true
		}
	}
	return out
}

// readPairs reads the keys and values of a map.
func (r *reader) readPairs(out *node, n *yaml.Node) {
	first := map[string]Pos{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := r.read(n.Content[i]), r.read(n.Content[i+1])
		switch before, twice := first[key.text]; {
		case key.broken:
		case key.kind != scalar || key.null:
			r.bad(key.pos, hintQuotes, "a key must be a text, not %s", key.what())
		case twice:
			r.twice(key, before)
		default:
			first[key.text] = key.pos
			out.pairs = append(out.pairs, pair{key, value})
		}
	}
}

// syntax reports an error of the library.
func (r *reader) syntax(err error) {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		r.bad(r.top(), "", "the file is not YAML: %v", err)
		return
	}
	text := le.Message
	if strings.HasPrefix(text, "unknown anchor") { // its name may be meant as a password
		text = "unknown anchor"
	}
	if le.ContextMsg != "" {
		text += ", " + le.ContextMsg
	}
	const hint = "look at indentation, quotes and brackets, also above"
	r.bad(Pos{Line: max(1, le.Mark.Line), Column: max(1, le.Mark.Column)}, hint, "not YAML: %s", text)
}

const (
	maxSecrets = 50   // in a file; to find them in a text takes as long as there are many
	maxSecret  = 1024 // bytes of one
)

// learn makes secrets of the values of secret keys, of the variables in them, and of the passwords in URLs, before any
// value is printed. It returns false if there are more of them than can be kept out of messages.
func (d *decoder) learn(root *node) bool {
	known, long := map[string]bool{}, false
	add := func(text string) {
		text = strings.TrimSpace(text)
		long = long || len(text) > maxSecret
		if text != "" && len(known) <= maxSecrets && !known[text] {
			known[text] = true
			d.secrets.Add("", text)
		}
	}
	addVariable := func(v *variable) {
		v.secret = true
		add(v.value)
		add(v.fallback)
	}
	var walk func(n *node, secret bool)
	walk = func(n *node, secret bool) {
		if secret && !n.null {
			add(n.text)
			add(n.raw)
			for _, name := range n.uses {
				if v := d.vars[name]; v != nil {
					addVariable(v)
				}
			}
		}
		if password := plan.Password(n.text); password != "" && len(known) <= maxSecrets {
			add(password)
			d.secrets.AddURL(n.text, false)
		}
		for _, item := range n.items {
			walk(item, secret)
		}
		for _, p := range n.pairs {
			if _, password, ok := strings.Cut(p.value.text, ":"); ok && p.key.text == "user" { // name:password
				add(password)
			}
			walk(p.value, secret || d.keys.isSecret(p.key.text))
		}
	}
	walk(root, false)
	for _, v := range d.vars {
		if d.keys.isSecret(v.name) {
			addVariable(v)
		}
	}
	if len(known) > maxSecrets || long {
		d.mistakes = nil
		d.tooLarge(d.top(), "the file", maxSecrets, "passwords, or a long one: use password-file")
		return false
	}
	return true
}

// Pos is a place in a file. Line and Column count from 1; Column counts characters.
type Pos struct {
	File         string
	Line, Column int
}

// Mistake is a reason why a file cannot be used. It holds no secret and nothing that steers a terminal.
type Mistake struct {
	Pos  Pos
	Text string
	Hint string // the suggestion, "" if there is none
}

// Mistakes are all mistakes of a file, by their places.
type Mistakes []Mistake

// maxMistakes limits the work on a file that has nothing but mistakes. Further ones are not looked for.
const maxMistakes = 30

// Error returns the mistakes, each with its position and a suggestion.
func (m Mistakes) Error() string {
	var b strings.Builder
	for i := range m {
		if i == maxMistakes {
			b.WriteString("and more\n")
			break
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s\n", safetext.Line(m[i].Pos.File), m[i].Pos.Line, m[i].Pos.Column, m[i].Text)
		if m[i].Hint != "" {
			fmt.Fprintf(&b, "  hint: %s\n", m[i].Hint)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
