package cli

import (
	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
)

// origin says where a setting comes from.
type origin struct{ flag, env bool }

// definition is one flag: the same value feeds the flag set, the environment, the help and the completion.
type definition struct {
	name    string
	short   string   // one letter, or empty
	aliases []string // other names that are understood but not listed
	group   string
	arg     string // what the value is called in the help; empty for a switch
	def     string // the default, as the help shows it; "" if there is nothing to say
	help    string
	roles   []plan.Role // empty for all
	list    bool        // may be given several times
	secret  bool        // never printed
	set     func(*settings, string) error
	suggest func(*suggestions) []string // what completion offers; nil means files if files is set, else nothing
	files   bool
	folders bool // completion offers folders
}

// in tells whether a role has the flag.
func (d *definition) in(role plan.Role) bool {
	for _, r := range d.roles {
		if r == role {
			return true
		}
	}
	return len(d.roles) == 0
}

// input collects what the user gave for one command before any of it is judged, so that all mistakes can be reported at
// once and the environment can fill in what the command line left out.
type input struct {
	definitions []definition
	texts       map[string][]string // by the name of the flag, in the order given
	missing     map[string]bool     // flags that were given another flag instead of a value
}

func newInput(definitions []definition) *input {
	return &input{definitions: definitions, texts: map[string][]string{}, missing: map[string]bool{}}
}

// addTo defines the flags.
func (in *input) addTo(flags *pflag.FlagSet) {
	aliases := map[string]string{}
	for i := range in.definitions {
		d := &in.definitions[i]
		flag := flags.VarPF(&flagText{input: in, definition: d}, d.name, d.short, d.help)
		if d.arg == "" {
			flag.NoOptDefVal = "true"
		}
		for _, alias := range d.aliases {
			aliases[alias] = d.name
		}
	}
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if canonical, ok := aliases[name]; ok {
			name = canonical
		}
		return pflag.NormalizedName(name)
	})
	flags.SortFlags = false
}

// flagText is a [pflag.Value] that keeps what was given.
type flagText struct {
	input      *input
	definition *definition
}

// Set keeps the text; it never fails.
func (f *flagText) Set(text string) error {
	f.input.texts[f.definition.name] = append(f.input.texts[f.definition.name], text)
	return nil
}

// String returns the default, which is what pflag wants it for.
func (f *flagText) String() string { return f.definition.def }

// Type returns the name of the value.
func (f *flagText) Type() string {
	if f.definition.arg == "" {
		return "bool"
	}
	return f.definition.arg
}

// given is one setting that is not a default, for the printed plan.
type given struct{ name, value, from string }

// values turns what was given into settings: the environment first, then the flags over it. The errors are those of
// single values.
func (in *input) values(environ environment) (*settings, []given, []error) {
	s := newSettings()
	var list []given
	var errs []error
	for i := range in.definitions {
		d := &in.definitions[i]
		apply := func(label, from string, texts []string) {
			if len(texts) == 0 {
				return
			}
			if !d.list {
				texts = texts[len(texts)-1:]
			}
			for _, text := range texts {
				shown := text
				if d.secret {
					shown = safetext.Hidden
				}
				if err := d.set(s, text); err != nil {
					s.bad[d.name] = true
					errs = append(errs, &plan.Mistake{Text: label + "=" + quoted(shown) + ": " + err.Error()})
				}
				list = append(list, given{name: d.name, value: shown, from: from})
			}
		}
		fromFlags := in.texts[d.name]
		if in.missing[d.name] { // which was reported
			s.bad[d.name] = true
			continue
		}
		variable, texts := environ.lookup(d)
		if len(texts) > 0 && (len(fromFlags) == 0 || d.list) {
			s.origins[d.name] = origin{env: true}
			apply(variable, "environment "+variable, texts)
		}
		if len(fromFlags) > 0 {
			s.origins[d.name] = origin{flag: true, env: s.origins[d.name].env}
			apply("--"+d.name, "flag", fromFlags)
		}
	}
	return s, list, errs
}
