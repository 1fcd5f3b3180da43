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

	index int // of the field
}

// Describe lists the options of the struct that options points to, in the order of its fields; none for nil.
func Describe(options any) (list []Option) {
	if options == nil {
		return nil
	}
	v := reflect.ValueOf(options).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		if tag.Get("opt") == "" {
			continue
		}
		value := v.Field(i).Interface()
		o := Option{
			Name: tag.Get("opt"), Help: tag.Get("help"), Default: fmt.Sprint(value), Value: value, index: i,
		}
		if enum := tag.Get("enum"); enum != "" {
			o.Enum = strings.Split(enum, ",")
		}
		list = append(list, o)
	}
	return list
}

// CheckOptions returns an error for each option with a value outside its enum. options points to the struct.
func CheckOptions(options any) (errs []error) {
	for _, o := range Describe(options) {
		if err := o.check(o.Default); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (o *Option) check(value string) error {
	if len(o.Enum) == 0 || slices.Contains(o.Enum, value) {
		return nil
	}
	return fmt.Errorf("option %s=%s: must be one of %s", o.Name, value, strings.Join(o.Enum, ", "))
}

// SetOptions sets the fields of the struct that options points to from texts of the form key=value. It reports all
// mistakes at once, joined; each error names the option and, if it is unknown, all known ones.
func SetOptions(options any, assignments []string) error {
	var errs []error
	var names []string
	list := Describe(options)
	for i := range list {
		names = append(names, list[i].Name)
	}
	for _, a := range assignments {
		key, value, ok := strings.Cut(a, "=")
		switch i := slices.Index(names, key); {
		case !ok:
			errs = append(errs, fmt.Errorf("option %q: must be KEY=VALUE", a))
		case i < 0:
			all := cmp.Or(strings.Join(names, ", "), "none")
			errs = append(errs, fmt.Errorf("unknown option %q: known are %s", key, all))
		default:
			err := list[i].check(value)
			if err == nil {
				err = setField(reflect.ValueOf(options).Elem().Field(list[i].index), a, value)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func setField(field reflect.Value, option, text string) error {
	switch field.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("option %s: must be a time such as 250ms or 30s", option)
		}
		field.SetInt(int64(d))
	case string:
		field.SetString(text)
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("option %s: must be true or false", option)
		}
		field.SetBool(b)
	case int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("option %s: must be a whole number", option)
		}
		field.SetInt(n)
	default:
		return fmt.Errorf("option %s: options of type %s are not supported", option, field.Type())
	}
	return nil
}
