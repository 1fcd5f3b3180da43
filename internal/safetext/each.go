package safetext

import (
	"maps"
	"reflect"
	"slices"
)

// Clean returns v with the secrets removed from its texts, each bounded as [Secrets.Field] does: once for all outputs,
// each of which then escapes them for its format. [Each] tells which texts.
func Clean[T any](s *Secrets, v T) T { return Each(v, s.Field) }

// Each returns v with change applied to each string in its exported fields, slices, maps and pointers, at any depth. It
// copies what changes and shares the rest. Strings of named types stay, and so do those behind interfaces.
func Each[T any](v T, change func(string) string) T {
	w := walker{change: change, holds: map[reflect.Type]bool{}}
	if changed, ok := w.visit(reflect.ValueOf(&v).Elem()); ok {
		return changed.Interface().(T) //nolint:forcetypeassert // visit keeps the type
	}
	return v
}

type walker struct {
	change func(string) string
	holds  map[reflect.Type]bool // types seen; whether they can hold strings
}

// visit returns a changed copy of v, or false if there is nothing to change.
func (w *walker) visit(v reflect.Value) (reflect.Value, bool) {
	if !w.text(v.Type()) {
		return v, false
	}
	switch v.Kind() {
	case reflect.String:
		text := w.change(v.String())
		return reflect.ValueOf(text), text != v.String()
	case reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		to, changed := w.visit(v.Elem())
		if !changed {
			return v, false
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(to)
		return p, true
	case reflect.Struct:
		return w.parts(v, v.NumField(), reflect.Value.Field)
	case reflect.Slice, reflect.Array:
		return w.parts(v, v.Len(), reflect.Value.Index)
	case reflect.Map:
		return w.entries(v)
	default:
		return v, false
	}
}

// parts visits the fields of a struct, or the elements of a slice or an array.
func (w *walker) parts(v reflect.Value, n int, part func(reflect.Value, int) reflect.Value) (reflect.Value, bool) {
	var c reflect.Value
	for i := range n {
		if v.Kind() == reflect.Struct && !v.Type().Field(i).IsExported() {
			continue
		}
		to, changed := w.visit(part(v, i))
		if !changed {
			continue
		}
		if !c.IsValid() {
			c = reflect.New(v.Type()).Elem()
			c.Set(v)
			if v.Kind() == reflect.Slice {
				c = reflect.MakeSlice(v.Type(), n, n)
				reflect.Copy(c, v)
			}
		}
		part(c, i).Set(to)
	}
	return c, c.IsValid()
}

// entries visits the keys and values of a map. Of keys that become equal, the first in order stays.
func (w *walker) entries(v reflect.Value) (reflect.Value, bool) {
	if v.Type().Key().Kind() != reflect.String {
		return v, false
	}
	keys := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		keys[k.String()] = k
	}
	c, changed := reflect.MakeMap(v.Type()), false
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		key, newKey := w.visit(keys[name])
		value, newValue := w.visit(v.MapIndex(keys[name]))
		if changed = changed || newKey || newValue; !c.MapIndex(key).IsValid() {
			c.SetMapIndex(key, value)
		}
	}
	return c, changed
}

// text tells whether values of a type can hold strings.
func (w *walker) text(t reflect.Type) (yes bool) {
	if known, seen := w.holds[t]; seen {
		return known
	}
	w.holds[t] = true // a type within itself
	switch t.Kind() {
	case reflect.String:
		yes = t == reflect.TypeFor[string]()
	case reflect.Pointer, reflect.Slice, reflect.Array:
		yes = w.text(t.Elem())
	case reflect.Map:
		yes = w.text(t.Key()) || w.text(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			yes = t.Field(i).IsExported() && w.text(t.Field(i).Type) || yes
		}
	default:
	}
	w.holds[t] = yes
	return yes
}
