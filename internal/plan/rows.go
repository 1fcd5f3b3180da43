package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Row is a field with a tag `set:"NAME"`: a setting. The other tags describe it; see package config.
type Row struct {
	Name    string
	Options []string // what follows the name in the tag
	In      string   // the nearest tag `in`, of a struct around the field
	Tag     reflect.StructTag
	Value   reflect.Value
}

// Rows returns the settings of the struct behind a pointer, and of the structs in it.
func Rows(of any) []Row { return rowsOf(reflect.ValueOf(of).Elem(), "", nil) }

func rowsOf(v reflect.Value, around string, list []Row) []Row {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		in := cmp.Or(f.Tag.Get("in"), around)
		switch set, ok := f.Tag.Lookup("set"); {
		case ok:
			options := strings.Split(set, ",")
			list = append(list, Row{Name: options[0], Options: options[1:], In: in, Tag: f.Tag, Value: v.Field(i)})
		case f.IsExported() && f.Type.Kind() == reflect.Struct:
			list = rowsOf(v.Field(i), in, list)
		}
	}
	return list
}

// Is reports whether the tag has an option.
func (r *Row) Is(option string) bool { return slices.Contains(r.Options, option) }

// OfRole reports whether groups of a role have the setting. The tag `roles` names the roles that have it; without one,
// producers and consumers have it. A role has the settings of its parts.
func (r *Row) OfRole(role Role) bool {
	switch roles := r.Tag.Get("roles"); roles {
	case "all":
		return true
	case "":
		return role.Produces() || role.Consumes()
	default:
		return slices.ContainsFunc(strings.Split(roles, ","), func(of string) bool { return role.has(Role(of)) })
	}
}

// Words returns the allowed values of a setting that has only a few.
func (r *Row) Words() []string {
	if words := r.Tag.Get("words"); words != "" {
		return strings.Split(words, ",")
	}
	return nil
}

// given reports whether the value is not the one of a setting that is left out.
func (r *Row) given() bool { return r.Value.IsZero() == r.Is("not") }

// Unmet returns the mistakes of settings that are given without the one that their tag `needs` names.
func Unmet(of any) (list []*Mistake) {
	rows, given := Rows(of), map[string]bool{}
	for _, r := range rows {
		given[r.Name] = r.given()
	}
	for _, r := range rows {
		if other := r.Tag.Get("needs"); other != "" && r.given() && !given[other] {
			list = append(list, Needs("--"+r.Name, "--"+other))
		}
	}
	return list
}

// data returns the value as a scenario has it; nil if it says nothing: zero where that is the default, and the default
// of a few words.
func (r *Row) data() any {
	switch x := r.Value.Interface().(type) {
	case bool:
		if words := r.Words(); words != nil {
			return r.text(words[map[bool]int{true: 1}[x]])
		}
		if x != r.Is("not") {
			return true
		}
		return nil
	case int, uint64:
		return r.number(fmt.Sprint(x), x)
	case time.Duration:
		return r.number(x.String(), x.String())
	case []uint64:
		texts := make([]string, len(x))
		for i, n := range x {
			texts[i] = strconv.FormatUint(n, 10)
		}
		return r.text(strings.Join(texts, ","))
	case []string:
		return pairs(x)
	case []driver.Property:
		var t tree
		for _, p := range x {
			t = append(t, entry{p.Key, p.Value})
		}
		return t
	case []threshold.Threshold:
		return thresholds(x, true)
	case fmt.Stringer:
		if r.Value.IsZero() {
			return nil
		}
		return r.text(x.String())
	default:
		return r.text(r.Value.String())
	}
}

// pairs is a list of KEY=VALUE. A later one wins.
func pairs(list []string) (t tree) {
	for _, pair := range list {
		key, value, _ := strings.Cut(pair, "=")
		t = append(t.without(key), entry{key, value})
	}
	return t
}

// number returns nil for a zero that is the default, and for the value that stands for none.
func (r *Row) number(text string, value any) any {
	unset, apart := r.Tag.Lookup("unset")
	usual := r.Tag.Get("default")
	if apart && text == unset || !apart && r.Value.IsZero() && (usual == "" || usual == text) {
		return nil
	}
	return value
}

// text returns nil for no text, and for an unknown or the default word.
func (r *Row) text(text string) any {
	words := r.Words()
	if text == "" || text == r.Tag.Get("default") || words != nil && !slices.Contains(words, text) {
		return nil
	}
	return text
}

// thresholds returns the thresholds as a scenario has them, or only their texts.
func thresholds(list []threshold.Threshold, aborts bool) []any {
	all := make([]any, len(list))
	for i := range list {
		if all[i] = list[i].String(); aborts && list[i].Abort {
			all[i] = tree{{"threshold", list[i].String()}, {"abort", true}}
		}
	}
	return all
}
