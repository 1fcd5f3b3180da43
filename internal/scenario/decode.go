package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
)

// decoder makes a File of a tree.
type decoder struct {
	file     *File
	keys     *table
	mistakes []Mistake
	vars     map[string]*variable
	order    []*variable // as in the file

	groups map[string]bool // that some step uses, or was meant to
}

func (d *decoder) bad(pos Pos, hint, format string, args ...any) {
	if len(d.mistakes) < maxMistakes {
		d.mistakes = append(d.mistakes, Mistake{Pos: pos, Text: fmt.Sprintf(format, args...), Hint: hint})
	}
}

func topShape() []string {
	return []string{
		"version", "name", "description", "vars", "labels", "defaults", "broker", "brokers", "groups", "steps", "thresholds",
		"before", "after", keyMatrix, keySearch,
	}
}

func groupShape() []string {
	return []string{"role", "broker", "destination", "destinations", "messages", "choose"}
}

func stepShape() []string {
	return []string{"name", "groups", "until", "before", "after", "thresholds"}
}

// shapePlace says where a key of the file's shape stands, "" if it is none.
func shapePlace(name string) string {
	switch {
	case name == "until":
		return "a step"
	case name == "messages", name == "choose":
		return "a producer group"
	case slices.Contains(topShape(), name):
		return "the top of the file"
	case slices.Contains(stepShape(), name):
		return "a step"
	case slices.Contains(groupShape(), name):
		return "a group"
	default:
		return ""
	}
}

// decode reads everything but the variables.
func (d *decoder) decode(root *node) {
	if d.tooMany(root) {
		return
	}
	d.groups = map[string]bool{}
	d.brokers(root)
	d.allGroups(root)
	places, shape := InRun, topShape()
	steps := root.get("steps")
	if steps == nil {
		places, shape = InRun|InStep, append(shape, "until")
	}
	var entries []Entry // of the only step
	given := map[string]*node{}
	for _, p := range root.pairs {
		switch p.key.text {
		case "vars", "broker", "brokers", "groups", "steps", "until", keyMatrix, keySearch:
			if p.key.text == "until" && steps != nil {
				d.unknown(p.key, places, "the file", shape...)
			}
		case "version":
			if text, ok := d.text(p.value, "version"); ok && text != Version {
				d.bad(p.value.pos, "version: "+Version, "version %s of the format is not known", quote(text))
			}
		case "name":
			d.file.Name, _ = d.text(p.value, "name")
		case "description":
			d.file.Description, _ = d.text(p.value, "description")
		case "labels":
			for _, l := range d.fields(p.value, "labels", "NAME: TEXT") {
				if text, ok := d.text(l.value, "the label "+l.key.text); ok {
					d.file.Labels = append(d.file.Labels, Label{l.key.text, text, l.key.pos})
				}
			}
		case "defaults":
			d.file.Defaults = d.entries(d.fields(p.value, "defaults", "SETTING: VALUE"), inDefaults, "the defaults")
		case "before":
			d.file.Before = d.commands(p.value, "before")
		case "after":
			d.file.After = d.commands(p.value, "after")
		case "thresholds":
		default:
			switch k := d.keys.find(p.key.text, places); {
			case k == nil:
				d.unknown(p.key, places, "the file", shape...)
			case d.twice(given, k, p.key):
			default:
				e, ok := d.entry(p.value, k)
				if ok && k.Scopes&InRun != 0 {
					d.file.Settings = append(d.file.Settings, e)
				} else if ok {
					entries = append(entries, e)
				}
			}
		}
	}
	d.steps(root, entries)
	if n := root.get("thresholds"); n != nil {
		d.file.Thresholds = d.thresholds(n, "")
	}
	if n := root.get(keyMatrix); n != nil {
		d.matrix(n)
	}
	if n := root.get(keySearch); n != nil {
		d.search(n)
	}
	d.relatives()
}

// tooMany reports more parts than a file may have: each step may have all groups.
func (d *decoder) tooMany(root *node) bool {
	for _, limit := range []struct {
		key  string
		most int
	}{{"brokers", 256}, {"groups", 256}, {"steps", 1024}} {
		if n := root.get(limit.key); n != nil && len(n.pairs)+len(n.items) > limit.most {
			d.bad(n.pos, "", "there are more than %d %s", limit.most, limit.key)
			return true
		}
	}
	return false
}

// fields returns the pairs of a map. The parameter what names the map, and form is how to write it.
func (d *decoder) fields(n *node, what, form string) []pair {
	switch {
	case n.broken:
	case n.null:
		d.bad(n.pos, form, "%s has no value", what)
	case n.kind != mapping:
		d.bad(n.pos, form, "%s must be a map, not %s", what, n.what())
	case len(n.pairs) == 0:
		d.bad(n.pos, form, "%s is empty", what)
	}
	return n.pairs
}

// text returns one value.
func (d *decoder) text(n *node, what string) (text string, ok bool) {
	switch {
	case n.broken:
	case n.null:
		hint := "give one, or remove the key"
		if n.raw != "" {
			hint = fmt.Sprintf("put %s into quotes if it is meant as a text", n.raw)
		}
		d.bad(n.pos, hint, "%s has no value", what)
	case n.kind != scalar:
		d.bad(n.pos, "", "%s must be one value, not %s", what, n.what())
	default:
		return n.text, true
	}
	return "", false
}

// oneOrMore returns the elements of a list, or the only value.
func (d *decoder) oneOrMore(n *node, what string) []*node {
	if n.kind != sequence {
		return []*node{n}
	}
	if len(n.items) == 0 {
		d.bad(n.pos, "give one, or remove the key", "%s has no value", what)
	}
	return n.items
}

var plainName = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

const maxName = 64

// goodName reports a name that cannot be used in metrics and thresholds.
func (d *decoder) goodName(pos Pos, what, name string) {
	if plainName.MatchString(name) {
		return
	}
	hint := "use a-z, 0-9, -, _ and ., at most 64 of them"
	if lower := strings.ReplaceAll(strings.ToLower(name), " ", "-"); plainName.MatchString(lower) {
		hint = "write " + lower + ": names have a-z, 0-9, -, _ and ."
	}
	d.bad(pos, hint, "%s cannot be the name of %s", quote(name), what)
}

// missing is the hint for an unknown name: the nearest known name, or a list of them.
func missing(name string, known []string) string {
	const most = 10
	others := "known are " + strings.Join(known[:min(most, len(known))], ", ")
	switch {
	case len(known) == 0:
		others = "there is none"
	case len(known) > most:
		others += fmt.Sprintf(" and %d more", len(known)-most)
	}
	return nearest.Hint(name, known, "%s", others)
}

// commands reads shell commands.
func (d *decoder) commands(n *node, what string) (list []Command) {
	for _, item := range d.oneOrMore(n, what) {
		text, ok := d.text(item, what)
		if ok && strings.TrimSpace(text) == "" {
			d.bad(item.pos, "", "%s is an empty command", what)
			continue
		}
		if ok {
			list = append(list, Command{text, item.pos})
		}
	}
	return list
}

// quote puts a text of a file into quotes. Control characters and secrets are dealt with when a mistake is finished.
func quote(text string) string { return `"` + text + `"` }

// printable quotes a name with blanks or quotes.
func printable(name string) string {
	if name == "" || strings.ContainsAny(name, " \t\n\"") {
		return quote(name)
	}
	return name
}
