package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// pageFile is the default file of the page.
const pageFile = "report.html"

func reportFormats() []string { return []string{"html", "markdown", "csv", "junit"} }

// reportCommand is perfmq report.
func (a *app) reportCommand() *cobra.Command {
	var format, output string
	var force bool
	cmd := &cobra.Command{
		Use:   "report [flags] DIR...",
		Short: "Make a page with charts, or tables, of results",
		Args:  needArguments,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.report(args, format, output, force)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "html", "`FORMAT` is html, markdown, csv or junit")
	flags.StringVar(&output, "output", "", "write into this `FILE`; - is standard output (html: "+pageFile+
		", else standard output)")
	flags.BoolVar(&force, "force", false, "replace any file")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(reportFormats(),
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// report is perfmq report.
func (a *app) report(dirs []string, format, output string, force bool) error {
	errs := notFolders(dirs)
	dirs = allRuns(dirs)
	switch {
	case output == "" && format == "html":
		output = pageFile
	case output == "":
		output = run.Standard
	}
	if errs = append(errs, noReport(dirs, format, output, force)...); len(errs) > 0 {
		return a.usage(errs...)
	}
	return a.writeReport(dirs, format, output)
}

// noReport returns the reasons why a report cannot be written.
func noReport(dirs []string, format, output string, force bool) (errs []error) {
	if !slices.Contains(reportFormats(), format) {
		errs = append(errs, plan.Wrong("", "--format=%s: must be html, markdown, csv or junit", config.Quoted(format)))
	}
	for _, dir := range dirs {
		own := filepath.Base(output)
		if slices.Contains(result.Files(), own) && config.SameFile(filepath.Join(dir, own), output) {
			errs = append(errs, plan.Wrong("name another file", "--output %s is a file of the result", output))
		}
	}
	if m := config.NoPlace("--output", output); m != nil {
		errs = append(errs, m)
	} else if !force && foreign(output) {
		errs = append(errs, plan.Wrong("name another file, or add --force to replace it",
			"--output %s is not of perfmq report", output))
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

// foreign reports whether a path is a file with contents that perfmq report did not write.
func foreign(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path) //nolint:gosec // the user named it
	if err != nil {
		return true // its contents are unknown
	}
	defer f.Close() //nolint:errcheck // it was read
	head, err := io.ReadAll(io.LimitReader(f, 4<<10))
	return err != nil || len(head) > 0 && !page.IsReport(head)
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

func parseDemands(texts []string) (list []threshold.Threshold, errs []error) {
	for _, text := range texts {
		t, err := config.ParseThreshold(text)
		if err != nil {
			const hint = "perfmq scenario metrics lists all metrics"
			errs = append(errs, plan.Wrong(hint, "--threshold %q: %v", text, err))
		}
		list = append(list, t)
	}
	return list, errs
}

// follow judges messages while the runs in the folders continue, and prints what it finds.
func (a *app) follow(dirs []string, others bool, demands []string) error {
	errs := notFolders(dirs)
	if others {
		errs = append(errs, plan.Wrong("join the results when the runs have ended",
			"--follow does not work with --result, --report and --partial"))
	}
	thresholds, wrong := parseDemands(demands)
	if errs = append(errs, wrong...); len(errs) > 0 {
		return a.usage(errs...)
	}
	for i := range thresholds {
		thresholds[i].Abort = true
	}
	a.work = func() int { return a.followRuns(dirs, thresholds) }
	return nil
}

// followRuns judges until all runs have ended, a threshold fails, or a signal comes.
func (a *app) followRuns(dirs []string, thresholds []threshold.Threshold) int {
	f := merge.Follower{Dirs: dirs, Thresholds: thresholds, Say: func(text string) {
		_, _ = fmt.Fprintln(a.Stdout, a.secrets.Line(text)) // the end says it if it cannot be written
	}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var interrupted atomic.Bool
	go func() {
		select {
		case <-a.Signals:
			interrupted.Store(true)
			stop()
		case <-ctx.Done():
		}
	}()
	v, broken, err := f.Follow(ctx)
	if err != nil {
		_ = a.usage(resultMistake(err)) // always errReported
		return a.status
	}
	v = safetext.Clean(a.secrets, v)
	problems := result.Texts(v.Findings(verify.Allow{Disorder: true}, 0), result.Problem)
	if err := a.write([]byte(report.Verification(v, problems))); err != nil {
		_ = a.notWritten(err) // likewise
		return a.status
	}
	for _, problem := range problems {
		a.errors.write(problem, "")
	}
	switch {
	case broken != nil:
		a.errors.write("threshold: "+broken.String()+": FAILED", "")
		return result.StatusThreshold
	case len(problems) > 0:
		return result.StatusFailed
	case interrupted.Load():
		return result.StatusInterrupted
	default:
		return result.StatusOK
	}
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

// mergeCommand is perfmq merge.
func (a *app) mergeCommand() *cobra.Command {
	var dir string
	var partial bool
	var demands, reports []string
	var follow bool
	m := &meeting{}
	in := &input{table: config.TableOf(&m.meetingSettings), given: config.NewGiven(nil)} // variables are of loads
	cmd := &cobra.Command{
		Use:   "merge [flags] DIR...",
		Short: "Join the results of several load hosts into one",
		RunE: func(cmd *cobra.Command, args []string) error {
			if errs := in.given.Fill(in.table); m.given(in) || len(errs) > 0 {
				m.dir, m.reports = dir, reports
				return a.runMeeting(m, args, demands, follow || partial, errs)
			}
			if err := needArguments(cmd, args); err != nil {
				return err
			}
			if follow {
				return a.follow(args, dir != "" || partial || reports != nil, demands)
			}
			return a.merge(args, dir, partial, demands, reports)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&dir, "result", "", "write the joined result into the new folder `DIR`")
	flags.BoolVar(&follow, "follow", false,
		"judge each message (--verify-window) while the runs write their folders; a --threshold that fails ends it")
	flags.BoolVar(&partial, "partial", false, "join although shards are missing or were killed")
	flags.StringArrayVar(&demands, "threshold", nil,
		"another `DEMAND` on the joined result; may be repeated")
	flags.StringArrayVar(&reports, "report", nil, "write a report of the joined result, as perfmq report does: "+
		"`FORMAT=FILE`, of html, markdown, csv or junit; - is standard output; may be repeated")
	_ = cmd.MarkFlagDirname("result")
	in.addTo(flags)
	a.completeFlags(cmd, in)
	return cmd
}

// merge joins the results in the folders and prints the outcome.
func (a *app) merge(dirs []string, dir string, partial bool, demands, reports []string) error {
	thresholds, errs := checkMerge(dir, demands, reports)
	if errs = append(notFolders(dirs), errs...); len(errs) > 0 {
		return a.usage(errs...)
	}
	m, err := merge.Read(lastRuns(dirs), merge.Options{
		Partial: partial, Thresholds: thresholds, Secrets: a.secrets,
	})
	if err != nil {
		return a.usage(resultMistake(err))
	}
	return a.writeMerged(m, dir, reports)
}

// checkMerge returns the thresholds of a joined result, and the mistakes in these flags.
func checkMerge(dir string, demands, reports []string) (list []threshold.Threshold, errs []error) {
	list, errs = parseDemands(demands)
	errs = append(errs, checkReports(reports, dir)...)
	if m := config.NoPlace("--result", dir); m != nil {
		errs = append(errs, m)
	}
	return list, errs
}

// checkReports returns the mistakes in --report FORMAT=FILE.
func checkReports(reports []string, dir string) (errs []error) {
	for _, text := range reports {
		format, file, _ := strings.Cut(text, "=")
		if file == "" || !slices.Contains(reportFormats(), format) {
			errs = append(errs, plan.Wrong("such as --report html=report.html",
				"--report=%s: must be FORMAT=FILE, of html, markdown, csv or junit", config.Quoted(text)))
		} else {
			errs = append(errs, noReport(nil, format, file, false)...)
		}
	}
	if len(reports) > 0 && dir == "" {
		errs = append(errs, plan.Needs("--report", "--result"))
	}
	return errs
}

// writeMerged prints a joined result and writes its folder and reports.
func (a *app) writeMerged(m *result.Result, dir string, reports []string) error {
	if err := merge.Text(a.Stdout, m, a.secrets.Line); err != nil {
		return a.notWritten(err)
	}
	if dir != "" {
		if err := merge.Write(dir, m); err != nil {
			return a.notWritten(fileNotWritten("--result", err))
		}
	}
	a.printBroken(m.Thresholds) // the status is that of the result
	if a.status = m.Outcome.Status; a.status == result.StatusOK && !m.Outcome.Success {
		a.status = result.StatusFailed
	}
	status := a.status
	for _, text := range reports {
		format, file, _ := strings.Cut(text, "=")
		if a.writeReport([]string{dir}, format, file) != nil { // it was printed
			status = result.Graver(status, result.StatusFailed)
		}
	}
	a.status = status
	return nil
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
