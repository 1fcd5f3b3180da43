package cli

import (
	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/setting"
)

// dailyFlag annotates flags of daily use.
const dailyFlag = "perfmq-daily"

// input has the settings of one command and their given texts.
type input struct {
	table []setting.Setting
	given *setting.Given
}

func (a *app) newInput(table []setting.Setting) *input {
	return &input{table: table, given: setting.NewGiven(a.environ)}
}

// named returns a text with the variables that settings come from, instead of their flags.
func (in *input) named(text string) string { return in.given.Named(in.table, text) }

// addTo defines the flags.
func (in *input) addTo(flags *pflag.FlagSet) {
	aliases := map[string]string{}
	for i := range in.table {
		s := &in.table[i]
		flag := flags.VarPF(&flagText{given: in.given, setting: s}, s.Name, s.Short, s.Help)
		if s.Arg == "" {
			flag.NoOptDefVal = "true"
		}
		if s.Brief != "" {
			flag.Annotations = map[string][]string{dailyFlag: {s.Brief}}
		}
		for _, alias := range append(s.Aliases, s.FlagAliases...) {
			aliases[alias] = s.Name
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

// flagText is a [pflag.Value] that keeps the given texts.
type flagText struct {
	given   *setting.Given
	setting *setting.Setting
}

// Set keeps the text; it never fails.
func (f *flagText) Set(text string) error {
	f.given.Flags[f.setting.Name] = append(f.given.Flags[f.setting.Name], text)
	return nil
}

// String returns the default, for pflag's help.
func (f *flagText) String() string { return f.setting.Default }

// Type returns the name of the value.
func (f *flagText) Type() string {
	if f.setting.Arg == "" {
		return "bool"
	}
	return f.setting.Arg
}
