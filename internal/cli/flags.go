package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/pkg/driver"
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

// completeFlags defines the completion of flag values, for a command of one protocol or of all.
func (a *app) completeFlags(cmd *cobra.Command, in *input, own ...driver.Factory) {
	for i := range in.table {
		s := &in.table[i]
		if s.Arg == "" || s.Arg == "FILE" {
			continue // switches have no value; the shell completes files by itself
		}
		// The only error is a flag that does not exist or was registered twice.
		_ = cmd.RegisterFlagCompletionFunc(s.Name, func(_ *cobra.Command, _ []string, prefix string) ([]string,
			cobra.ShellCompDirective,
		) {
			if s.Arg == "DIR" {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return offer(s.Suggest(own, a.Factories, prefix), prefix)
		})
	}
}

// offer returns the items that begin with prefix. The shell adds no space after an incomplete item such as "queue://".
func offer(list []string, prefix string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var matching []string
	for _, entry := range list {
		word, _, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(word, prefix) {
			continue
		}
		matching = append(matching, entry)
		if strings.HasSuffix(word, "=") || strings.HasSuffix(word, "://") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
	}
	return matching, directive
}

// suggestScenarios offers files, or the scenarios inside this program after an @.
func (a *app) suggestScenarios(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(prefix, "@") {
		return a.suggestShipped(cmd, args, prefix)
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func (a *app) suggestShipped(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if a.Scenarios != nil {
		list, _ := config.Shipped(a.Scenarios) // on an error the list is empty
		for _, info := range list {
			names = append(names, "@"+info.Name+"\t"+info.Description)
		}
	}
	return offer(names, prefix)
}
