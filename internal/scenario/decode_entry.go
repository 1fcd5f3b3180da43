package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
)

// entries reads settings of some places. Of names these, shape are the keys there that are no settings and were read
// before.
func (d *decoder) entries(pairs []pair, places Scope, of string, shape ...string) (list []Entry) {
	given := map[string]*node{}
	for _, p := range pairs {
		if slices.Contains(shape, p.key.text) {
			continue
		}
		k := d.keys.find(p.key.text, places)
		if k == nil {
			d.unknown(p.key, places, of, shape...)
			continue
		}
		if d.twice(given, k, p.key) {
			continue
		}
		if e, ok := d.entry(p.value, k); ok {
			list = append(list, e)
		}
	}
	return list
}

// twice tells whether a setting was given before under another name.
func (d *decoder) twice(given map[string]*node, k *Key, key *node) bool {
	before := given[k.Name]
	if before == nil {
		given[k.Name] = key
		return false
	}
	d.bad(key.pos, fmt.Sprintf("%s is in line %d", before.text, before.pos.Line), "%s is %s, which is given already",
		key.text, before.text)
	return true
}

// unknown reports a key that has no place where it stands.
func (d *decoder) unknown(key *node, places Scope, of string, shape ...string) {
	if len(d.mistakes) >= maxMistakes {
		return
	}
	name := key.text
	if elsewhere := d.keys.places(name); elsewhere != 0 {
		hint := "it belongs to " + elsewhere.String()
		switch {
		case elsewhere == InRun:
			hint = "it belongs to the top of the file"
		case of == "the file":
			hint += ", or under defaults:"
		}
		d.bad(key.pos, hint, "%s is no setting of %s", name, of)
		return
	}
	if place := shapePlace(name); place != "" {
		d.bad(key.pos, "it belongs to "+place, "%s is no setting of %s", name, of)
		return
	}
	hint := ""
	if strings.Trim(name, "0123456789") == "" {
		hint = "a comma in braces begins a new setting: write 10000, not 10,000"
	} else if name == "knee" { // of earlier versions
		hint = "leave it out: the table of the sweep and perfmq report have the rates over each axis"
	} else if n := d.keys.nearest(name, places, shape); n != "" {
		hint = "did you mean " + n + "?"
	} else if n := d.keys.nearest(name, ^Scope(0), nil); n != "" {
		hint = fmt.Sprintf("did you mean %s, of %s?", n, d.keys.places(n))
	} else if len(shape) > 0 && places == 0 {
		hint = "known are " + strings.Join(shape, ", ")
	}
	d.bad(key.pos, hint, "unknown setting %s of %s", printable(name), of)
}

// entry reads the value of a setting.
func (d *decoder) entry(n *node, k *Key) (Entry, bool) {
	e := Entry{Key: k.Name, Pos: n.pos}
	ok := true
	check := func(item *node, text string) {
		if err := k.judge(text); err != nil {
			ok = false
			d.refuse(item, k, text, err)
		}
		e.Texts = append(e.Texts, text)
	}
	switch {
	case n.kind == mapping && k.Pairs:
		for _, p := range d.fields(n, k.Name, "KEY: VALUE") {
			text, good := d.text(p.value, k.Name+" "+p.key.text)
			if strings.Contains(p.key.text, "=") {
				d.bad(p.key.pos, "", "%s: a key cannot hold =", k.Name)
				good = false
			}
			if !good {
				ok = false
				continue
			}
			check(p.value, p.key.text+"="+text)
		}
	case n.kind == sequence && (k.List || k.Join != ""):
		var texts []string
		for _, item := range d.oneOrMore(n, k.Name) {
			text, good := d.text(item, k.Name)
			switch {
			case !good:
				ok = false
			case k.Join != "":
				texts = append(texts, text)
			default:
				check(item, text)
			}
		}
		if k.Join != "" && ok && len(texts) > 0 {
			check(n, strings.Join(texts, k.Join))
		}
	default:
		text, good := d.text(n, k.Name)
		if !good {
			return e, false
		}
		check(n, text)
	}
	return e, ok && len(e.Texts) > 0
}

// wordError is for a value that is not one of a few.
type wordError struct{ words []string }

func (e *wordError) Error() string { return "must be " + strings.Join(e.words, " or ") }

// judge returns an error for a value that the setting cannot have.
func (k *Key) judge(text string) error {
	words := k.Words
	if k.Switch {
		words = []string{"true", "false"}
	}
	if len(words) > 0 && !slices.Contains(words, text) {
		return &wordError{words}
	}
	if len(text) > maxText {
		return fmt.Errorf("is longer than %d bytes", maxText)
	}
	if k.Check != nil {
		return k.Check(text)
	}
	return nil
}

// refuse reports a value that a setting cannot have.
func (d *decoder) refuse(n *node, k *Key, text string, err error) {
	hint := ""
	var we *wordError
	if errors.As(err, &we) && !k.Secret {
		hint = nearest.Hint(text, we.words, "%s", "")
	}
	if hint == "" && !k.Secret {
		if meant := nearest.Spelling(text, func(t string) bool { return k.judge(t) == nil }); meant != "" {
			hint = "did you mean " + meant + "?"
		}
	}
	written := ""
	if n.kind == scalar && len(n.uses) > 0 && !k.Secret {
		written = fmt.Sprintf("; with its variables it is %s", quote(text))
	}
	d.bad(n.pos, hint, "%s: %v%s", k.Name, err, written)
}
