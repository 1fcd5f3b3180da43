package cli

import (
	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/config"
)

// input has the settings of one command and their given texts.
type input struct {
	table []config.Setting
	given *config.Given
}

func (a *app) newInput(table []config.Setting) *input {
	return &input{table: table, given: config.NewGiven(a.environ)}
}

// addTo defines the flags.
func (in *input) addTo(flags *pflag.FlagSet) {
	aliases := map[string]string{}
	for i := range in.table {
		s := &in.table[i]
		flag := flags.VarPF(&flagText{given: in.given, setting: s}, s.Name, s.Short, s.Help)
		if s.Arg == "" {
			flag.NoOptDefVal = "true"
		}
		for _, alias := range s.Aliases {
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
	given   *config.Given
	setting *config.Setting
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
