package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
)

// arrange returns the arguments with the names of the command first and its flags behind them, however they were mixed,
// and with --help for the word help. It refuses an unknown command before anything looks at its flags.
func (a *app) arrange(root *cobra.Command, args []string) ([]string, *plan.Mistake) {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return args, nil
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	cmd := root
	var path, early []string
	i := 0
	for ; i < len(args) && cmd.HasSubCommands() && args[i] != "--"; i++ {
		arg := args[i]
		switch sub := child(cmd, arg); {
		case arg == "help":
			early = append(early, "--help")
		case strings.HasPrefix(arg, "-"):
			early = append(early, arg)
			if i+1 < len(args) && takesNext(root, cmd, arg, args[i+1]) {
				i++
				early = append(early, args[i])
			}
		case sub == nil:
			return nil, a.unknownCommand(cmd, arg)
		default:
			cmd, path = sub, append(path, arg)
		}
	}
	return slices.Concat(path, early, args[i:]), nil
}

// child returns the subcommand of a name; nil if there is none.
func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

// takesNext reports whether the next argument is the value of a flag: by the flag of some command, or, of an unknown
// flag before cmd is complete, unless it looks like a command.
func takesNext(root, cmd *cobra.Command, flag, next string) bool {
	name, long := strings.CutPrefix(flag, "--")
	if f := flagOfAny(root, name); f != nil || !long {
		return flag == "-o" || f != nil && f.NoOptDefVal == ""
	}
	return !strings.Contains(name, "=") && !strings.HasPrefix(next, "-") &&
		nearest.Nearest(next, commandNames(cmd)) == ""
}

// flagOfAny returns a flag of that name of cmd or of a command below it; nil if there is none.
func flagOfAny(cmd *cobra.Command, name string) *pflag.Flag {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f
	}
	for _, sub := range cmd.Commands() {
		if f := flagOfAny(sub, name); f != nil {
			return f
		}
	}
	return nil
}

// unknownCommand returns the mistake for a word that names no command of cmd.
func (a *app) unknownCommand(cmd *cobra.Command, word string) *plan.Mistake {
	names := commandNames(cmd)
	m := &plan.Mistake{
		Text: fmt.Sprintf("unknown command %q of %s", word, cmd.CommandPath()),
		Hint: nearest.Hint(word, names, cmd.CommandPath()+" %s", "known are "+strings.Join(names, ", ")),
	}
	switch {
	case cmd.HasParent():
	default:
		for _, sub := range cmd.Commands() {
			if child(sub, word) != nil {
				m.Hint = "did you mean perfmq " + sub.Name() + " " + word + "?"
			}
		}
	}
	return m
}

func commandNames(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return names
}
