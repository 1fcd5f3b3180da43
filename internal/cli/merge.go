package cli

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/result"
)

// mergeCommand is perfmq merge.
func (a *app) mergeCommand() *cobra.Command {
	var dir string
	var partial bool
	cmd := &cobra.Command{
		Use:   "merge [flags] DIR...",
		Short: "Join the results of several load hosts into one", GroupID: groupOther,
		Long: `Join results of --result that ran side by side with the same plan: the shards of a run (--shard), or runs of their own.

Counts and histograms add up without loss, and rows are put together by the second. Of shards with --verify, the numbers of all
messages are joined: what was lost, doubled or damaged. By how much the clocks of the hosts differed is measured by the messages
that went from one to another both ways: docs/several-hosts.md. Findings and limits are named by their hosts.

Results of different plans, of different runs, and shards that are there twice or not at all are refused. The exit status is 0 if the
run was a success on all hosts, 1 if it was not, and 2 if the results cannot be joined.`,
		Example:               `  perfmq merge results/shard-* --result results/all`,
		DisableFlagsInUseLine: true,
		RunE:                  func(_ *cobra.Command, args []string) error { return a.merge(args, dir, partial) },
	}
	flags := cmd.Flags()
	flags.StringVar(&dir, "result", "", "write the joined result into the new folder `DIR`")
	flags.BoolVar(&partial, "partial", false, "join what is there, although shards are missing or were killed")
	_ = cmd.MarkFlagDirname("result")
	return cmd
}

// merge joins the results in the folders, and says what they come to.
func (a *app) merge(dirs []string, dir string, partial bool) error {
	if len(dirs) == 0 {
		return a.usage(&plan.Mistake{Text: "there is no result to join", Hint: "perfmq merge DIR... --result DIR"})
	}
	if dir != "" {
		if err := result.Vacant(dir); err != nil {
			return a.usage(&plan.Mistake{Text: "--result: " + err.Error(), Hint: "name another folder, or remove this one"})
		}
	}
	m, err := merge.Read(dirs, merge.Options{
		Partial: partial, Clean: func(v *verify.Result) *verify.Result { return report.CleanVerification(a.secrets, v) },
	})
	if err != nil {
		return a.usage(mergeMistake(err))
	}
	if err := merge.Text(a.Stdout, m, a.secrets.Line); err != nil {
		a.errors.print(err)
		a.status = exitFailed
		return errReported
	}
	if dir != "" {
		if err := merge.Write(dir, m); err != nil {
			a.errors.print(bare(err))
			a.status = exitFailed
			return errReported
		}
	}
	if a.status = m.Outcome.Status; a.status == exitOK && !m.Outcome.Success {
		a.status = exitFailed
	}
	return nil
}

// mergeMistake says what to do about results that cannot be joined.
func mergeMistake(err error) *plan.Mistake {
	m := &plan.Mistake{Text: bare(err).Error()}
	var fe *verify.FileError
	switch {
	case errors.Is(err, merge.ErrMissing):
		m.Hint = "give the folders of all shards, or add --partial"
	case errors.Is(err, result.ErrUnlike):
		m.Hint = "give each result of one run once"
	case errors.Is(err, result.ErrNoResult), errors.Is(err, fs.ErrNotExist):
		m.Hint = "name folders of --result DIR"
	case errors.As(err, &fe):
		m.Hint = fe.Hint
	}
	return m
}
