package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/words"
)

func (a *app) validateCommand() *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use: "validate FILE|@NAME...", Short: "Check scenario files without connecting", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: a.suggestScenarios,
		Long: `Check scenario files without connecting. All mistakes of all files are reported, with their lines. It prints
how much memory each would need with perfmq run --embedded.`,
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "give a variable of the file another value: `NAME=VALUE`; may be "+
		"repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		values, errs := variablesOf(set)
		if len(args) == 0 {
			errs = append(errs, &plan.Mistake{Text: "there is no scenario file", Hint: cmd.CommandPath() + " FILE"})
		}
		var b strings.Builder
		for _, name := range args {
			ready, err := a.prepare(name, &source{in: a.newInput(nil), set: values, scale: 1})
			if err != nil {
				errs = append(errs, err)
				continue
			}
			p := ready.Plan
			fmt.Fprintf(&b, "%s: good: %s, %s; embedded, up to %d MiB of messages\n", a.secrets.Line(name),
				words.Plural(len(p.Steps), "step"), words.Plural(len(p.Groups()), "group"),
				(run.EmbeddedMemory(p)+1<<20-1)>>20)
			if ready.sweep != nil {
				for _, line := range ready.sweep.Describe() {
					fmt.Fprintf(&b, "  %s\n", a.secrets.Line(line))
				}
			}
		}
		if _, err := io.WriteString(a.Stdout, b.String()); err != nil {
			return err
		}
		if len(errs) > 0 {
			return a.usage(errs...)
		}
		return nil
	}
	return cmd
}
