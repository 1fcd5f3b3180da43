package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
)

// variable is a variable while a file is read.
type variable struct {
	name, value, fallback, description string
	used, secret                       bool
	missing                            bool // without a default, until --set gives a value
	pos                                Pos
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// reference is a variable in a value, or an escaped dollar sign.
var reference = regexp.MustCompile(`\$\$|\$\{[^}]*\}?`)

// variables reads the variables, including the axes of the matrix, and replaces them in all values of the file.
func (d *decoder) variables(root *node, set map[string]string) {
	d.vars, d.left = map[string]*variable{}, maxTexts
	for _, p := range d.fields(root.get("vars"), "vars", "NAME: VALUE") {
		d.variable(p)
	}
	for _, p := range root.get(keyMatrix).pairs {
		if d.vars[p.key.text] != nil {
			continue
		}
		if p.value.kind == sequence { // the axis reports that it is empty
			p.value = append(p.value.items, &node{kind: scalar, broken: true})[0]
		}
		d.variable(p)
	}
	known := slices.Sorted(maps.Keys(d.vars))
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if v := d.vars[name]; v != nil {
			v.value, v.missing = set[name], false
		} else {
			d.noSuch(&node{pos: d.top()}, "variable", name, known)
		}
	}
	for _, p := range root.pairs {
		if p.key.text != "vars" {
			d.expandAll(p.value)
		}
	}
	for _, v := range d.order {
		switch {
		case v.missing:
			hint := strings.TrimSuffix("--set "+v.name+"=VALUE, "+v.description, ", ")
			d.lacks(v.pos, hint, "the variable "+v.name, "value")
		case !v.used:
			d.bad(v.pos, "use it as ${"+v.name+"}", "the variable %s is not used", v.name)
		}
	}
}

// variable reads NAME: VALUE or NAME: {default: VALUE, description: TEXT}. Without a default, --set must give a value.
func (d *decoder) variable(p pair) {
	name := p.key.text
	v := &variable{name: name, pos: p.key.pos}
	d.vars[name], d.order = v, append(d.order, v)
	v.used = !d.goodName(variableName, v.pos, "variables", name) // one mistake is enough
	value := p.value
	if value.kind == mapping {
		value = p.value.get("default")
		v.missing = value.absent
		for _, p := range p.value.pairs {
			if shape := (object{"default": true, "description": true}); shape[p.key.text] == nil {
				d.unknown(p.key, 0, "a variable", shape)
				v.missing = false // it may be the default
			}
		}
		v.description = d.optional(p.value, "description", "the description of "+name)
	}
	v.fallback, _ = d.text(value, "the variable "+name)
	v.value = v.fallback
	if strings.Contains(v.fallback, "${") {
		d.bad(value.pos, "", "the value of the variable %s has a variable", name)
	}
}

// expandAll replaces the variables in all values below a node.
func (d *decoder) expandAll(n *node) {
	if n.kind == scalar && !n.null && !n.broken {
		n.text = reference.ReplaceAllStringFunc(n.raw, func(text string) string { return d.expand(n, text) })
	}
	for _, item := range n.items {
		d.expandAll(item)
	}
	for _, p := range n.pairs {
		d.expandAll(p.value)
	}
}

// expand returns the variable's value for ${NAME}, and $ for $$.
func (d *decoder) expand(n *node, text string) string {
	if text == "$$" {
		return "$"
	}
	name, closed := strings.CutSuffix(text[len("${"):], "}")
	v := d.vars[name]
	switch {
	case !closed:
		d.bad(n.pos, "write ${NAME} or $${", "${ has no }")
	case v == nil:
		known := slices.Sorted(maps.Keys(d.vars))
		meant := nearest.Nearest(name, known)
		if meant != "" {
			d.vars[meant].used = true // as far as one can tell
		}
		d.bad(n.pos, nearest.Hint(name, known, "${%s}", "define it under vars:, or write $${"),
			"the variable %s is not defined", quote(name))
	default:
		v.used = true
		n.uses = append(n.uses, name)
		n.broken = n.broken || v.missing
		if d.left -= len(v.value); d.left >= 0 {
			return v.value
		}
		d.tooLarge(d.top(), "the file with its variables", maxTexts, "bytes")
	}
	n.broken = true
	return ""
}

// Limits of a matrix.
const (
	maxAxes  = 16
	maxCells = 10_000
)

const (
	keyMatrix  = "matrix"
	formMatrix = "matrix: {VARIABLE: [VALUE, VALUE]}"
)

// Axis is a variable with the values that it has in turn.
type Axis struct {
	Name   string
	Values []string
	Pos    Pos
}

// sweep reads `matrix` and the settings of a sweep. All else has been read.
func (d *decoder) sweep(root *node, s *Scenario) {
	v := Defaults()
	for _, e := range d.entries {
		if e.Is("sweep") {
			_ = v.Read(e.Setting, File, e.texts[len(e.texts)-1]) // it was judged
		}
	}
	s.Sweep, s.Axes = v.Sweep, nil
	if n := root.get(keyMatrix); !n.absent {
		s.Axes = d.matrix(n)
	}
}

// matrix reads the axes: each combination of their values is a cell.
func (d *decoder) matrix(n *node) (axes []Axis) {
	cells := 1
	for _, p := range d.fields(n, keyMatrix, formMatrix) {
		a := d.axis(p)
		axes = append(axes, a)
		if cells *= max(1, len(a.Values)); cells > maxCells || len(axes) > maxAxes {
			d.bad(p.key.pos, "", "the matrix has more than %d axes, or %d cells", maxAxes, maxCells)
			break
		}
	}
	return axes
}

// axis reads NAME: [VALUE, ...]. The variables include it.
func (d *decoder) axis(p pair) Axis {
	a := Axis{Name: p.key.text, Pos: p.key.pos}
	if v := d.vars[a.Name]; v != nil && v.secret {
		d.bad(a.Pos, "", "%s is a secret, and outputs show the values of an axis", a.Name)
	}
	for _, item := range d.oneOrMore(p.value, "the axis "+quote(a.Name)) {
		text, ok := d.text(item, "a value of "+quote(a.Name))
		if slices.Contains(a.Values, text) {
			d.twice(item, item.pos)
		} else if ok {
			a.Values = append(a.Values, text)
		}
	}
	return a
}
