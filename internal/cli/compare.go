package cli

import (
	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/config"
)

// compareCommand is perfmq compare.
func (a *app) compareCommand() *cobra.Command {
	in := compare.Options{Clean: a.secrets.Line}
	var json string
	cmd := &cobra.Command{
		Use:   "compare [flags] DIR DIR...",
		Short: "Compare results: what changed, and is it more than chance?",
		Long: `Compare results of --result with the first one. A DIR is a result, or a folder of repeats of one.

Metrics are medians of the repeats with a 95% confidence interval, or their range if they are fewer than six. A
difference is reported if the Mann-Whitney U test finds one at 5% for all metrics together. Failed runs are left out.

--fail-if 'ack.p99 +10%' ends with status 3 if a result is more than 10% above the first one, 2 if there are too few
repeats to tell, and 1 if runs of it failed.`,
		Example: `  perfmq compare results/artemis-2.40 results/artemis-2.41
  perfmq compare --metric ack.p99.9 --fail-if 'ack.p99.9 +10%' before after`,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.compare(args, in, json)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&in.Metrics, "metric", nil, "compare this `METRIC`, not the usual ones; may be repeated")
	flags.StringArrayVar(&in.FailIf, "fail-if", nil,
		"end with status 3 after this `CHANGE`, such as 'ack.p99 +10%'; may be repeated")
	flags.BoolVar(&in.Unlike, "unlike", false, "compare runs of different plans, too")
	flags.StringVar(&json, "json", "", "write the comparison as JSON to `FILE`")
	_ = cmd.RegisterFlagCompletionFunc("metric", cobra.FixedCompletions(compare.Names(),
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// compare reads the results and prints the comparison.
func (a *app) compare(paths []string, in compare.Options, json string) error {
	errs := notFolders(paths)
	if m := config.NoPlace("--json", json); m != nil {
		errs = append(errs, m)
	}
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	c, errs := compare.Compare(paths, in)
	if len(errs) > 0 {
		for i := range errs {
			errs[i] = resultMistake(errs[i])
		}
		return a.usage(errs...)
	}
	if err := c.Write(a.Stdout); err != nil {
		return a.notWritten(err)
	}
	if json != "" {
		text, err := c.JSON()
		if err == nil {
			err = a.writeFile("--json", json, text, 0o600)
		}
		if err != nil {
			return a.notWritten(err)
		}
	}
	if errs, a.status = c.Judge(); a.status != exitOK {
		a.errors.print(errs...)
		return errReported
	}
	return nil
}
