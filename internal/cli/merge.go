package cli

import (
	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/threshold"
)

// mergeCommand is perfmq merge.
func (a *app) mergeCommand() *cobra.Command {
	var dir string
	var partial bool
	var demands []string
	cmd := &cobra.Command{
		Use:   "merge [flags] DIR...",
		Short: "Join the results of several load hosts into one",
		Long: `Join the results (--result) of the shards of a run (--shard): counts, histograms, rows, and with
--verify the numbers of all messages (docs/several-hosts.md).

Thresholds are judged by the metrics of all hosts together. The exit status is 0 if the run was a success on all
hosts, 1 if it was not, 2 if the results cannot be joined, and 3 if a threshold fails.`,
		Example: `  perfmq merge results/shard-* --result results/all`,
		Args:    needArguments,
		RunE:    func(_ *cobra.Command, args []string) error { return a.merge(args, dir, partial, demands) },
	}
	flags := cmd.Flags()
	flags.StringVar(&dir, "result", "", "write the joined result into the new folder `DIR`")
	flags.BoolVar(&partial, "partial", false, "join although shards are missing or were killed")
	flags.StringArrayVar(&demands, "threshold", nil,
		"another `DEMAND` on the joined result; may be repeated")
	_ = cmd.MarkFlagDirname("result")
	return cmd
}

// merge joins the results in the folders and prints the outcome.
func (a *app) merge(dirs []string, dir string, partial bool, demands []string) error {
	if errs := notFolders(dirs); len(errs) > 0 {
		return a.usage(errs...)
	}
	if m := config.NoPlace("--result", dir); m != nil {
		return a.usage(m)
	}
	var thresholds []threshold.Threshold
	for _, text := range demands {
		t, err := config.ParseThreshold(text)
		if err != nil {
			return a.usage(plan.Wrong("perfmq scenario metrics lists all metrics", "--threshold %q: %v", text, err))
		}
		thresholds = append(thresholds, t)
	}
	m, err := merge.Read(dirs, merge.Options{
		Partial: partial, Thresholds: thresholds, Secrets: a.secrets,
	})
	if err != nil {
		return a.usage(resultMistake(err))
	}
	if err := merge.Text(a.Stdout, m, a.secrets.Line); err != nil {
		return a.notWritten(err)
	}
	if dir != "" {
		if err := merge.Write(dir, m); err != nil {
			return a.notWritten(fileNotWritten("--result", err))
		}
	}
	a.printBroken(m.Thresholds) // the status is that of the result
	if a.status = m.Outcome.Status; a.status == exitOK && !m.Outcome.Success {
		a.status = exitFailed
	}
	return nil
}
