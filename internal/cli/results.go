package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/words"
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

// do carries a plan out and writes --junit. The file exists from the beginning: after a kill it has a run that has not
// come to its end.
func (a *app) do(p *prepared) int {
	file := p.Values.Outputs.JUnit
	begun := &page.JUnit{}
	begun.Add("", &result.Result{Head: result.Head{Scenario: p.Plan.Name}})
	if err := a.writeJUnit(file, begun); err != nil {
		_ = a.usage(err)
		return a.status
	}
	cases := &page.JUnit{}
	status := a.load(p, cases)
	if status != result.StatusOK {
		cases.Explain(append(slices.Sorted(maps.Keys(a.errors.seen)), fmt.Sprintf("exit status %d", status))...)
	}
	if err := a.writeJUnit(file, cases); err != nil {
		a.errors.print(err)
		return result.Graver(status, result.StatusFailed)
	}
	return status
}

func (a *app) writeJUnit(file string, cases *page.JUnit) error {
	if file == "" {
		return nil
	}
	var b bytes.Buffer
	if err := safetext.Clean(a.secrets, cases).Write(&b); err != nil {
		return err
	}
	return a.writeFile("--junit", file, b.Bytes(), 0o600)
}

// load carries a run, a sweep or a search out. It returns the exit status, and adds the outcomes to the cases.
func (a *app) load(p *prepared, cases *page.JUnit) int {
	switch {
	case p.sweep != nil:
		outcomes, ended := map[string]*result.Result{}, p.sweep.Progress.Ended
		p.sweep.Progress.Ended = func(folder string, e *run.Ending) {
			ended(folder, e)
			outcomes[folder] = a.outcome(p.Plan.Name, e)
		}
		status := p.sweep.Do()
		cases.AddSweep(p.sweep.Record(), outcomes)
		return status
	case p.search != nil:
		begun := time.Now()
		found, status := a.search(p.search, p.Values.Outputs.JSON)
		cases.AddSearch(p.Plan.Name, found, time.Since(begun).Microseconds(),
			slices.Sorted(maps.Keys(a.errors.seen))...)
		return status
	}
	e := a.newRun(p.Ready).Do()
	cases.Add("", a.outcome(p.Plan.Name, &e))
	return a.printEnding(e)
}

// outcome returns the result of a run as far as its test cases need it.
func (a *app) outcome(scenario string, e *run.Ending) *result.Result {
	r := &result.Result{}
	if s := e.Summary; s != nil {
		*r = s.Result
		r.Latencies, r.Workers = result.Latencies{}, nil
	}
	r.Scenario = scenario
	r.Host.Name, _ = os.Hostname()
	errs := config.Parts(e.Err, e.Closing)
	if e.Summary == nil && e.Ended() {
		errs = append(errs, errors.New("interrupted before its end"))
	}
	r.Findings = slices.Clip(r.Findings)
	for _, err := range errs {
		r.Findings = append(r.Findings, words.As(result.Finding{Kind: "error", Text: err.Error()}, result.Problem))
	}
	return r
}
