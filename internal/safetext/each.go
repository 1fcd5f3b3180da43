package safetext

import (
	"reflect"
	"slices"
	"strings"
)

// Clean returns v with the secrets removed from its texts, each bounded as [Secrets.Field] does: once for all outputs,
// each of which then escapes them for its format. [Each] chooses the texts.
func Clean[T any](s *Secrets, v T) T { return Each(v, s.Field) }

// Each returns v with change applied to each string in its exported fields, slices, maps and pointers, at any depth. It
// copies what changes and shares the rest. Strings of named types stay, and so do those behind interfaces, and the keys
// of numbers, which are perfmq's own words.
func Each[T any](v T, change func(string) string) T {
	if changed, ok := visit(reflect.ValueOf(&v).Elem(), change); ok {
		return changed.Interface().(T) //nolint:forcetypeassert // visit keeps the type
	}
	return v
}

// visit returns a changed copy of v, or false if there is nothing to change.
func visit(v reflect.Value, change func(string) string) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.String:
		if v.Type() != reflect.TypeFor[string]() {
			return v, false
		}
		text := change(v.String())
		return reflect.ValueOf(text), text != v.String()
	case reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		to, changed := visit(v.Elem(), change)
		if !changed {
			return v, false
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(to)
		return p, true
	case reflect.Struct:
		return parts(v, v.NumField(), reflect.Value.Field, change)
	case reflect.Slice:
		if v.Type().Elem().Kind() <= reflect.Complex128 { // numbers, often many
			return v, false
		}
		return parts(v, v.Len(), reflect.Value.Index, change)
	case reflect.Array:
		return parts(v, v.Len(), reflect.Value.Index, change)
	case reflect.Map:
		return entries(v, change)
	default:
		return v, false
	}
}

// parts visits the fields of a struct, or the elements of a slice or an array.
func parts(v reflect.Value, n int, part func(reflect.Value, int) reflect.Value, change func(string) string) (
	c reflect.Value, changed bool,
) {
	for i := range n {
		if v.Kind() == reflect.Struct && !v.Type().Field(i).IsExported() {
			continue
		}
		to, differs := visit(part(v, i), change)
		if !differs {
			continue
		}
		if !changed {
			c, changed = reflect.New(v.Type()).Elem(), true
			c.Set(v)
			if v.Kind() == reflect.Slice {
				c = reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, n), v)
			}
		}
		part(c, i).Set(to)
	}
	return c, changed
}

// entries visits the keys and values of a map. Of keys that become equal, the first in order stays.
func entries(v reflect.Value, change func(string) string) (reflect.Value, bool) {
	of := v.Type().Elem()
	for of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if v.Type().Key().Kind() != reflect.String || of.Kind() <= reflect.Complex128 {
		return v, false
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	c, changed := reflect.MakeMap(v.Type()), false
	for _, name := range keys {
		key, newKey := visit(name, change)
		value, newValue := visit(v.MapIndex(name), change)
		if changed = changed || newKey || newValue; !c.MapIndex(key).IsValid() {
			c.SetMapIndex(key, value)
		}
	}
	return c, changed
}
