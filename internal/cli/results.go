package cli

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/result"
)

// reportSettings are the flags of perfmq report.
type reportSettings struct {
	Format string `set:"format" words:"html,markdown,csv,junit" default:"html" help:"html, markdown, csv or junit"`
	Output string `set:"output" arg:"FILE" none:"-, html: report.html" help:"write into FILE; - is standard output"`
}

// reportCommand is perfmq report.
func (a *app) reportCommand() *cobra.Command {
	s := &reportSettings{}
	return a.withSettings(&cobra.Command{
		Use: "report [flags] DIR...", Short: "Make a page with charts, or tables, of results", Args: needArguments,
	}, s, func(dirs []string, errs []error) error {
		errs = append(errs, notFolders(dirs)...)
		dirs = allRuns(dirs)
		if s.Output == "" {
			s.Output = map[bool]string{true: "report.html", false: run.Standard}[s.Format == "html"]
		}
		if errs = append(errs, noReport(s.Output)...); len(errs) > 0 {
			return a.usage(errs...)
		}
		return a.writeReport(dirs, s.Format, s.Output)
	})
}

// noReport returns why a report cannot be written to a file; nil if nothing is known against it.
func noReport(output string) (errs []error) {
	if slices.Contains(result.Files(), filepath.Base(output)) {
		errs = append(errs, plan.Wrong("name another file", "--output %s is a file of a result", output))
	}
	if m := config.NoPlace("--output", output); m != nil {
		errs = append(errs, m)
	}
	return errs
}

// writeReport reads the results and writes them in a format.
func (a *app) writeReport(dirs []string, format, output string) error {
	p, err := page.Read(dirs...)
	if err != nil {
		return a.usage(resultMistake(err))
	}
	var b bytes.Buffer
	write := map[string]func(io.Writer) error{
		"html": p.HTML, "markdown": p.Markdown, "csv": p.CSV, "junit": p.JUnit,
	}[format]
	if err = write(&b); err == nil {
		err = a.writeFile("--output", output, b.Bytes(), 0o644) // a report is to be shown to others
	}
	if err != nil {
		return a.notWritten(err)
	}
	if output != run.Standard {
		a.errors.say("wrote " + output)
	}
	return nil
}

const hintResult = "name folders of --result DIR"

// resultMistake adds a hint to an error of reading results.
func resultMistake(err error) error {
	var m *plan.Mistake
	var file *inputfile.Error
	var bad *result.Error
	hint := hintResult
	switch {
	case errors.As(err, &m):
		return m
	case errors.As(err, &file):
		hint = file.Hint
	case errors.Is(err, result.ErrNoResult):
	case errors.Is(err, merge.ErrMissing):
		hint = "give the folders of all shards, or add --partial"
	case errors.Is(err, merge.ErrAlone):
		hint = "perfmq report shows it; each process of a run on several hosts needs --shard N/COUNT"
	case errors.Is(err, result.ErrUnlike):
		hint = "give each shard of one run, or each run of one plan, once"
	case errors.Is(err, compare.ErrIncomplete):
		hint = "remove its folder"
	case errors.Is(err, page.ErrTooMany):
		hint = "report fewer at once"
	case errors.As(err, &bad):
		hint = "the files were changed or are not complete"
	}
	return &plan.Mistake{Text: strings.TrimSpace(bare(err).Error()), Hint: hint}
}

// compareCommand is perfmq compare.
func (a *app) compareCommand() *cobra.Command {
	in := compare.Options{Clean: a.secrets.Line}
	cmd := &cobra.Command{
		Use:   "compare [flags] DIR DIR...",
		Short: "Compare results, with a test for chance",
		RunE:  func(_ *cobra.Command, args []string) error { return a.compare(args, in) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&in.Metrics, "metric", nil, "compare this `METRIC` only; may be repeated")
	flags.StringArrayVar(&in.FailIf, "fail-if", nil,
		"end with status 3 after this `CHANGE`, such as 'ack.p99 +10%'; may be repeated")
	flags.BoolVar(&in.Unlike, "unlike", false, "compare runs of different plans, too")
	_ = cmd.RegisterFlagCompletionFunc("metric", cobra.FixedCompletions(compare.Names(),
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// compare reads the results and prints the comparison.
func (a *app) compare(paths []string, in compare.Options) error {
	if errs := notFolders(paths); len(errs) > 0 {
		return a.usage(errs...)
	}
	c, errs := compare.Compare(allRuns(paths), in)
	if len(errs) > 0 {
		for i := range errs {
			errs[i] = resultMistake(errs[i])
		}
		return a.usage(errs...)
	}
	if err := c.Write(a.Stdout); err != nil {
		return a.notWritten(err)
	}
	if errs, a.status = c.Judge(); a.status != result.StatusOK {
		a.errors.print(errs...)
		return errReported
	}
	return nil
}

// allRuns replaces each folder of several runs by theirs.
func allRuns(dirs []string) (all []string) {
	for _, dir := range dirs {
		all = append(all, result.Runs(dir)...)
	}
	return all
}

// lastRuns replaces each folder of several runs by that of the last one.
func lastRuns(dirs []string) (last []string) {
	for _, dir := range dirs {
		runs := result.Runs(dir)
		last = append(last, runs[len(runs)-1])
	}
	return last
}
