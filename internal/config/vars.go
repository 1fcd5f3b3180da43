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

// variables reads the variables and replaces them in all values of the file.
func (d *decoder) variables(root *node, set map[string]string) {
	d.vars = map[string]*variable{}
	at := d.source.pos(1, 1)
	if vars := root.get("vars"); vars != nil {
		at = vars.pos
		for _, p := range d.fields(vars, "vars", "NAME: VALUE") {
			d.variable(p)
		}
	}
	known := slices.Sorted(maps.Keys(d.vars))
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if v := d.vars[name]; v != nil {
			v.value, v.missing = set[name], false
			if len(v.value) > maxText {
				d.bad(v.pos, "", "the value of --set %s is longer than %d bytes", name, maxText)
				v.value = ""
			}
			continue
		}
		hint := "the file has none"
		if len(known) > 0 {
			hint = "known are " + strings.Join(known, ", ")
		}
		d.bad(at, nearest.Hint(name, known, "%s", hint), "--set %s: there is no such variable", name)
	}
	for _, v := range d.order {
		if v.missing {
			hint := "--set " + v.name + "=VALUE"
			if v.description != "" {
				hint += ", " + v.description
			}
			d.bad(v.pos, hint, "the variable %s has no value", v.name)
		}
	}
	left := maxTexts
	for _, p := range root.pairs {
		if p.key.text != "vars" {
			d.expandAll(p.value, &left)
		}
	}
	for _, v := range d.order {
		if !v.used {
			d.bad(v.pos, "remove it, or use it as ${"+v.name+"}", "the variable %s is not used", v.name)
		}
	}
}

// variable reads NAME: VALUE or NAME: {default: VALUE, description: TEXT}. Without a default, --set must give a value.
func (d *decoder) variable(p pair) {
	name := p.key.text
	v := &variable{name: name, pos: p.key.pos}
	d.vars[name], d.order = v, append(d.order, v)
	if !variableName.MatchString(name) {
		v.used = true // one mistake is enough
		d.bad(p.key.pos, "use letters, digits, _, . and -, at most 64 of them", "%s cannot be the name of a variable",
			quote(name))
	}
	value := p.value
	if value.kind == mapping {
		value, v.missing = nil, true
		for _, p := range p.value.pairs {
			switch p.key.text {
			case "default":
				value = p.value
			case "description":
				v.description, _ = d.text(p.value, "the description of "+name)
			default:
				d.unknown(p.key, 0, "a variable", "default", "description")
				v.missing = false // it may be the default
			}
		}
		if v.missing = v.missing && value == nil; value == nil {
			return
		}
	}
	v.fallback, _ = d.text(value, "the variable "+name)
	v.value = v.fallback
	if strings.Contains(v.fallback, "${") {
		d.bad(value.pos, "", "the variable %s cannot have a variable in its value", name)
	}
}

// expandAll replaces the variables in all values below a node.
func (d *decoder) expandAll(n *node, left *int) {
	if n.kind == scalar && !n.null && !n.broken {
		d.expand(n, left)
	}
	for _, item := range n.items {
		d.expandAll(item, left)
	}
	for _, p := range n.pairs {
		d.expandAll(p.value, left)
	}
}

// expand replaces ${NAME} by the variable's value and $$ by $. A $ before anything else stays. Left is how many bytes
// the values of all together may still get.
func (d *decoder) expand(n *node, left *int) {
	var b strings.Builder
	rest := n.raw
	for {
		if len(d.mistakes) >= maxMistakes {
			return
		}
		i := strings.IndexByte(rest, '$')
		if i < 0 || i+1 == len(rest) {
			break
		}
		b.WriteString(rest[:i])
		rest = rest[i+1:]
		switch rest[0] {
		case '$':
			b.WriteByte('$')
			rest = rest[1:]
			continue
		case '{':
		default:
			b.WriteByte('$')
			continue
		}
		name, after, ok := strings.Cut(rest[1:], "}")
		if !ok {
			d.bad(n.pos, "write ${NAME}, or $${ for these two characters", "${ has no }")
			n.broken = true
			return
		}
		rest = after
		v := d.vars[name]
		if v == nil {
			d.bad(n.pos, d.undefined(name), "the variable %s is not defined", quote(name))
			n.broken = true
			continue
		}
		v.used = true
		n.uses = append(n.uses, name)
		n.broken = n.broken || v.missing
		b.WriteString(v.value)
		before := *left
		if *left -= len(v.value); *left < 0 || b.Len() > maxText {
			n.broken = true
			if b.Len() > maxText {
				d.bad(n.pos, "", "the value is longer than %d bytes with its variables replaced", maxText)
			} else if before >= 0 {
				d.bad(n.pos, "", "the values are longer than %d bytes together with their variables replaced", maxTexts)
			}
			return
		}
	}
	b.WriteString(rest)
	n.text = b.String()
}

// undefined is the hint for an unknown variable.
func (d *decoder) undefined(name string) string {
	if n := nearest.Nearest(name, slices.Sorted(maps.Keys(d.vars))); n != "" {
		d.vars[n].used = true // as far as one can tell
		return "did you mean ${" + n + "}?"
	}
	return "define it under vars:, or write $${ for a ${ that is no variable"
}
