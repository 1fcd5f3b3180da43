package driver

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The options of a protocol are a struct with tagged fields:
//
//	Settle string `opt:"settle" help:"at-least-once or at-most-once" enum:"at-least-once,at-most-once"`
//
// Fields may be string, bool, int and time.Duration. The value in the struct is the default.

// Option describes one field of an options struct, for help texts and the printed plan.
type Option struct {
	Name    string   // as in -o name=value
	Help    string   // one line
	Enum    []string // the allowed values, if they are few
	Default string   // the value in the struct given to Describe
	Value   any      // the same, in its type
}

// Describe lists the options of the struct that options points to, in the order of its fields.
func Describe(options any) []Option {
	var list []Option
	eachOption(options, func(name string, tag reflect.StructTag, v reflect.Value) {
		o := Option{Name: name, Help: tag.Get("help"), Default: fmt.Sprint(v.Interface()), Value: v.Interface()}
		if enum := tag.Get("enum"); enum != "" {
			o.Enum = strings.Split(enum, ",")
		}
		list = append(list, o)
	})
	return list
}

// CheckOptions returns an error for each option with a value outside its enum. options points to the struct.
func CheckOptions(options any) (errs []error) {
	for _, o := range Describe(options) {
		if len(o.Enum) > 0 && !slices.Contains(o.Enum, o.Default) {
			errs = append(errs, notAmong(o.Name, o.Default, o.Enum))
		}
	}
	return errs
}

func notAmong(name, value string, enum []string) error {
	return fmt.Errorf("option %s=%s: must be one of %s", name, value, strings.Join(enum, ", "))
}

// SetOptions sets the fields of the struct that options points to from texts of the form key=value. It reports all
// mistakes at once, joined; each error names the option and, if it is unknown, the closest known option or all of them.
func SetOptions(options any, assignments []string) error {
	fields := map[string]reflect.Value{}
	enums := map[string][]string{}
	var names []string
	eachOption(options, func(name string, tag reflect.StructTag, v reflect.Value) {
		fields[name] = v
		names = append(names, name)
		if enum := tag.Get("enum"); enum != "" {
			enums[name] = strings.Split(enum, ",")
		}
	})
	var errs []error
	for _, a := range assignments {
		key, value, ok := strings.Cut(a, "=")
		field, known := fields[key]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("option %q: must be KEY=VALUE", a))
		case !known:
			all := cmp.Or(strings.Join(names, ", "), "none")
			errs = append(errs, fmt.Errorf("unknown option %q: known are %s", key, all))
		case enums[key] != nil && !slices.Contains(enums[key], value):
			errs = append(errs, notAmong(key, value, enums[key]))
		default:
			if err := setField(field, value); err != nil {
				errs = append(errs, fmt.Errorf("option %s=%s: %w", key, value, err))
			}
		}
	}
	return errors.Join(errs...)
}

func eachOption(options any, visit func(name string, tag reflect.StructTag, v reflect.Value)) {
	if options == nil {
		return
	}
	v := reflect.ValueOf(options).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("opt"); name != "" {
			visit(name, v.Type().Field(i).Tag, v.Field(i))
		}
	}
}

func setField(field reflect.Value, text string) error {
	switch field.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("must be a time such as 250ms or 30s")
		}
		field.SetInt(int64(d))
	case string:
		field.SetString(text)
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		field.SetBool(b)
	case int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("must be a whole number")
		}
		field.SetInt(n)
	default:
		return fmt.Errorf("options of type %s are not supported", field.Type())
	}
	return nil
}
