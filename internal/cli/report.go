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

// pageFile is the default file of the page.
const pageFile = "report.html"

func reportFormats() []string { return []string{"html", "markdown", "csv"} }

// reportCommand is perfmq report.
func (a *app) reportCommand() *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use:   "report [flags] DIR...",
		Short: "Make a page with charts, or tables, of results",
		Long: `Make one page of results of --result. A DIR is a result, a folder of results, which are repeats of one
run, or the folder of a sweep or search (--find-max), also while it runs.

The page is one HTML file that needs no other file and no network. --format markdown is for merge requests, csv for
spreadsheets; these go to standard output.`,
		Example: `  perfmq report run
  perfmq report --output before-after.html before after
  perfmq report --format markdown run`,
		Args: needArguments,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.report(args, format, output)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "html", "`FORMAT` is html, markdown or csv")
	flags.StringVar(&output, "output", "", "write into this `FILE`; - is standard output (html: "+pageFile+
		", else standard output)")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(reportFormats(),
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// report reads the results and writes the page, Markdown or CSV.
func (a *app) report(dirs []string, format, output string) error {
	var errs []error
	errs = append(errs, notFolders(dirs)...)
	if !slices.Contains(reportFormats(), format) {
		errs = append(errs, plan.Wrong("", "--format=%s: must be html, markdown or csv", config.Quoted(format)))
	}
	switch {
	case output == "" && format == "html":
		output = pageFile
	case output == "":
		output = run.Standard
	}
	for _, dir := range dirs {
		own := filepath.Base(output)
		if slices.Contains(result.Files(), own) && config.SameFile(filepath.Join(dir, own), output) {
			errs = append(errs, plan.Wrong("name another file", "--output %s is a file of the result", output))
		}
	}
	if m := config.NoPlace("--output", output); m != nil {
		errs = append(errs, m)
	}
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	p, err := page.Read(dirs...)
	if err != nil {
		return a.usage(resultMistake(err))
	}
	var b bytes.Buffer
	write := map[string]func(io.Writer) error{"html": p.HTML, "markdown": p.Markdown, "csv": p.CSV}[format]
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
	case errors.Is(err, result.ErrUnlike):
		hint = "give the shards of one run, or runs of one plan, each once"
	case errors.Is(err, compare.ErrIncomplete):
		hint = "remove its folder"
	case errors.Is(err, page.ErrTooMany):
		hint = "report fewer at once"
	case errors.As(err, &bad):
		hint = "the files were changed or are not complete"
	}
	return &plan.Mistake{Text: strings.TrimSpace(bare(err).Error()), Hint: hint}
}
