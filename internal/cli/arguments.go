package cli

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/quantity"
)

// argument is a flag or a word of the command line.
type argument struct {
	text     string
	flag     *pflag.Flag // nil for a word, and for an unknown flag
	unknown  string      // name of an unknown flag
	value    string      // of the flag, in the argument or in the next one
	hasValue bool
	attached bool // the value is in the argument
}

// arguments reads the arguments but the names of the command in the same way as pflag, until "--".
func (a *app) arguments(path string, flags *pflag.FlagSet) (list []argument) {
	args, names := a.Args, strings.Fields(path)[1:]
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		if len(names) > 0 && args[i] == names[0] {
			names = names[1:]
			continue
		}
		one := argument{text: args[i]}
		name, long := strings.CutPrefix(one.text, "--")
		switch {
		case long:
			name, one.value, one.attached = strings.Cut(name, "=")
			if one.flag = flags.Lookup(name); one.flag == nil {
				one.unknown = name
			}
		case len(one.text) > 1 && one.text[0] == '-':
			one.value, one.attached = one.text[2:], len(one.text) > 2
			if one.flag = flags.ShorthandLookup(one.text[1:2]); one.flag == nil {
				one.unknown = one.text[1:2]
			}
		}
		one.hasValue = one.attached
		next := i+1 < len(args)
		if one.flag != nil && !one.attached && one.flag.NoOptDefVal == "" && next ||
			one.unknown != "" && !one.attached && next && !strings.HasPrefix(args[i+1], "-") {
			i++
			one.value, one.hasValue = args[i], true
		}
		list = append(list, one)
	}
	return list
}

// unknownFlags reports unknown flags, which pflag was told to ignore, and flags without a value, for example if a shell
// variable is not set: pflag takes the next flag as the value.
func unknownFlags(list []argument, flags *pflag.FlagSet, in *input, unknown func(name string) error) (errs []error) {
	for i := range list {
		switch one := &list[i]; {
		case one.unknown != "" && strings.HasPrefix(one.text, "--"):
			errs = append(errs, unknown(one.unknown))
		case one.unknown != "":
			errs = append(errs, plan.Wrong("flags begin with two hyphens",
				"unknown flag %s", one.text[:2]))
		case one.flag != nil && one.hasValue && !one.attached && isFlag(flags, one.value):
			in.given.Missing[one.flag.Name] = true
			name := "--" + one.flag.Name
			errs = append(errs, plan.Wrong("give "+name+" a value", "%s has no value: %s follows", name, one.value))
		}
	}
	return errs
}

// isFlag reports whether an argument is one of the flags.
func isFlag(flags *pflag.FlagSet, arg string) bool {
	name, ok := strings.CutPrefix(arg, "--")
	name, _, _ = strings.Cut(name, "=")
	return ok && flags.Lookup(name) != nil
}

// strayWords refuses words that are likely meant as something else than a destination: the value of a switch, the rest
// of a flag's value, or a plain name beside URLs.
func strayWords(list []argument, in *input) (errs []error) {
	url := ""
	for i := range list {
		if list[i].isWord() && strings.Contains(list[i].text, "://") {
			url = list[i].text
		}
	}
	for i := range list {
		word := list[i].text
		if !list[i].isWord() || strings.Contains(word, "::") || strings.Contains(word, "://") {
			continue
		}
		if i > 0 && list[i-1].flag != nil && in.given.Missing[list[i-1].flag.Name] {
			continue // it may be the value of the flag that was taken for one
		}
		m := &plan.Mistake{Hint: "a queue of that name is queue://" + word}
		switch {
		case isValue(word):
			m.Text = config.Quoted(word) + " is no destination"
			m.Hint = "write --FLAG=VALUE; " + m.Hint
		case url != "":
			m.Text = "the plain name " + config.Quoted(word) + " stands beside " + url
		default:
			continue
		}
		errs = append(errs, m)
	}
	return errs
}

func (o *argument) isWord() bool { return o.flag == nil && o.unknown == "" }

// isValue reports whether a word is a number, with a unit or without, a unit, or a word of switches.
func isValue(word string) bool {
	words := []string{
		"true", "false", "yes", "no", "on", "off", "help",
		"sec", "second", "seconds", "min", "minute", "minutes", "hour", "hours", "bytes",
	}
	return slices.Contains(words, strings.ToLower(word)) ||
		numeric(word) || len(word) > 1 && numeric("1"+word)
}

func numeric(text string) bool {
	_, err1 := quantity.Bytes(text, math.MaxInt64)
	_, err2 := quantity.Duration(text, time.Second)
	return err1 == nil || err2 == nil
}
