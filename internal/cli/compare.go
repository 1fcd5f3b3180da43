package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/setting"
)

// comparison has the flags of perfmq compare.
type comparison struct {
	metrics, failIf []string
	unlike          bool
	format, json    string
}

// compareCommand is perfmq compare.
func (a *app) compareCommand() *cobra.Command {
	var in comparison
	cmd := &cobra.Command{
		Use:   "compare [flags] DIR DIR...",
		Short: "Compare results: what changed, and is it more than chance?", GroupID: groupOther,
		Long: `Compare results of --result with the first one. A DIR is a result, a folder whose folders are results
(repeats of one run), or a sweep, of which each cell is compared. Of searches (--find-max) it is the rate that was
found.

Each figure is the median of the repeats with its 95% confidence interval, or with their range if they are fewer than
six. A difference is reported if the Mann-Whitney U test finds one at a level of 5% for all figures together (Holm);
with too few repeats it says that it cannot tell.

Runs that failed or ended early are left out, unless all of a set have, and named.

--fail-if 'ack.p99 +10%' ends with status 3 if a result is more than 10% above the first one, and not by chance; with
status 2 if there are too few repeats to tell, and else with status 1 if runs of it failed.`,
		Example: `  perfmq compare results/artemis-2.40 results/artemis-2.41
  perfmq compare --metric ack.p99.9 --fail-if 'ack.p99.9 +10%' before after`,
		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.compare(args, &in)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&in.metrics, "metric", nil, "compare this `METRIC` instead of the usual ones; may be repeated")
	flags.StringArrayVar(&in.failIf, "fail-if", nil,
		"end with status 3 after this `CHANGE`, such as 'ack.p99 +10%'; may be repeated")
	flags.BoolVar(&in.unlike, "unlike", false, "compare runs of different plans, too")
	flags.StringVar(&in.format, "format", "text", "how to write the comparison: `FORMAT` is text, markdown or csv")
	flags.StringVar(&in.json, "json", "", "write the comparison as JSON to `FILE`")
	_ = cmd.RegisterFlagCompletionFunc("metric", cobra.FixedCompletions(compare.Names(),
		cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "markdown", "csv"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// compare reads the results and prints the comparison.
func (a *app) compare(paths []string, in *comparison) error {
	metrics, limits, errs := in.parse()
	sets, readErrs := readSets(paths)
	errs = append(errs, readErrs...)
	if in.json != "" {
		if m := noOutputFile("--json", in.json); m != nil {
			errs = append(errs, m)
		}
	}
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	differences := compare.Differences(sets)
	for i := range sets {
		sets[i].Sift()
	}
	a.clean(sets, differences)
	if unlike := compare.Unlike(differences); len(unlike) > 0 && !in.unlike {
		return a.usage(refused(unlike)...)
	}
	rows := compare.Sets(sets, metrics)
	if len(rows) == 0 {
		return a.usage(&plan.Mistake{Text: "the results have none of these figures", Hint: "--metric names others"})
	}
	if err := a.writeComparison(in, sets, rows, differences); err != nil {
		return a.notWritten(err)
	}
	return a.judgeLimits(limits, sets, rows)
}

// maxRefused is how many differences are told of when plans are refused for them; --unlike prints all.
const maxRefused = 5

// refused returns errors about the differences of plans, first that of the protocol, which brings others with it.
func refused(unlike []compare.Difference) (errs []error) {
	slices.SortStableFunc(unlike, func(a, b compare.Difference) int {
		other := func(d compare.Difference) int {
			if strings.HasSuffix(d.Name, ".protocol") {
				return 0
			}
			return 1
		}
		return other(a) - other(b)
	})
	for i, d := range unlike {
		if rest := len(unlike) - i; i == maxRefused-1 && rest > 1 {
			return append(errs, &plan.Mistake{
				Text: fmt.Sprintf("the plans differ in %d more settings", rest),
				Hint: "compare runs of one plan, or add --unlike, which lists what differs",
			})
		}
		values := slices.Clone(d.Values)
		for k, v := range values {
			values[k] = cmp.Or(v, "none")
		}
		errs = append(errs, &plan.Mistake{
			Text: fmt.Sprintf("the plans%s differ in %s: %s", ofCell(d.Cell), d.Name, strings.Join(values, " | ")),
			Hint: "compare runs of one plan, or add --unlike",
		})
	}
	return errs
}

// parse returns the metrics and limits. The metrics of limits are compared, too.
func (in *comparison) parse() (metrics []compare.Metric, limits []compare.Limit, errs []error) {
	names := in.metrics
	if len(names) == 0 {
		names = compare.Usual()
	}
	seen := map[string]bool{}
	add := func(m compare.Metric) {
		if !seen[m.Name] {
			seen[m.Name] = true
			metrics = append(metrics, m)
		}
	}
	for _, name := range names {
		m, err := compare.Named(name)
		if err != nil {
			errs = append(errs, &plan.Mistake{Text: "--metric: " + err.Error(), Hint: "perfmq compare --help shows examples"})
			continue
		}
		add(m)
	}
	for _, text := range in.failIf {
		l, err := compare.ParseLimit(text)
		if err != nil {
			errs = append(errs, &plan.Mistake{Text: "--fail-if: " + err.Error(), Hint: "perfmq compare --help shows examples"})
			continue
		}
		add(l.Metric)
		limits = append(limits, l)
	}
	if in.format != "text" && in.format != "markdown" && in.format != "csv" {
		errs = append(errs, &plan.Mistake{Text: fmt.Sprintf("--format=%s: must be text, markdown or csv",
			setting.Quoted(in.format)), Hint: "for JSON add --json FILE"})
	}
	return metrics, limits, errs
}

func readSets(paths []string) (sets []compare.Set, errs []error) {
	if len(paths) < 2 {
		return nil, []error{&plan.Mistake{Text: "at least two results are needed", Hint: "perfmq compare BEFORE AFTER"}}
	}
	if errs := notFolders(paths); len(errs) > 0 {
		return nil, errs
	}
	names := map[string]int{}
	for _, path := range paths {
		s, err := compare.Read(path, page.Check)
		switch {
		case errors.Is(err, compare.ErrIncomplete):
			errs = append(errs, &plan.Mistake{Text: err.Error(), Hint: "repeat that run, or remove its folder"})
		case err != nil:
			errs = append(errs, &plan.Mistake{Text: bare(err).Error(), Hint: resultHint(err)})
		}
		names[s.Name]++
		sets = append(sets, s)
	}
	if len(errs) == 0 && slices.ContainsFunc(sets, func(s compare.Set) bool {
		return (len(s.Cells) > 0) != (len(sets[0].Cells) > 0)
	}) {
		errs = append(errs, &plan.Mistake{
			Text: "a sweep with several cells compares with another sweep alone",
			Hint: "name the folder of one of its cells",
		})
	}
	for i := range sets {
		if names[sets[i].Name] > 1 {
			sets[i].Name = paths[i]
		}
	}
	return sets, errs
}

// ofCell returns " of NAME" for a cell of a sweep, and nothing without a name.
func ofCell(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// clean makes texts of results safe to print.
func (a *app) clean(sets []compare.Set, differences []compare.Difference) {
	for i := range sets {
		sets[i].Name = a.secrets.Line(sets[i].Name)
		for k := range sets[i].Cells {
			sets[i].Cells[k].Name = a.secrets.Line(sets[i].Cells[k].Name)
		}
		for _, r := range sets[i].Failed {
			for k := range r.Outcome.Problems {
				r.Outcome.Problems[k] = a.secrets.Line(r.Outcome.Problems[k])
			}
		}
	}
	for i := range differences {
		d := &differences[i]
		d.Name, d.Cell = a.secrets.Line(d.Name), a.secrets.Line(d.Cell)
		for k := range d.Values {
			d.Values[k] = a.secrets.Line(d.Values[k])
		}
	}
}

func (a *app) writeComparison(
	in *comparison, sets []compare.Set, rows []compare.Row, differences []compare.Difference,
) error {
	var err error
	switch in.format {
	case "markdown":
		err = compare.Markdown(a.Stdout, sets, rows, differences)
	case "csv":
		for _, note := range append([]string{compare.Bounded(sets)}, compare.Notes(sets)...) {
			if note != "" {
				a.errors.say("note: " + note)
			}
		}
		err = compare.CSV(a.Stdout, sets, rows)
	default:
		err = compare.Text(a.Stdout, sets, rows, differences)
	}
	if err != nil || in.json == "" {
		return err
	}
	names := make([]string, len(sets))
	for i := range sets {
		names[i] = sets[i].Name
	}
	failed, bounded := make([]int, len(sets)), make([]int, len(sets))
	for i := range sets {
		failed[i], bounded[i] = len(sets[i].Failed), sets[i].BoundedRuns()
	}
	text, err := json.MarshalIndent(map[string]any{
		"sets": names, "failed": failed, "bounded": bounded, "metrics": rows,
		"differences": differences,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(in.json, append(safetext.JSON(text), '\n'), 0o600); err != nil {
		return fileNotWritten("--json", err)
	}
	return nil
}

// judgeLimits returns an error for limits that were exceeded or cannot be judged.
func (a *app) judgeLimits(limits []compare.Limit, sets []compare.Set, rows []compare.Row) error {
	for i := 1; i < len(sets) && len(limits) > 0; i++ {
		if n := len(sets[i].Failed); n > 0 {
			a.errors.print(&plan.Mistake{
				Text: fmt.Sprintf("--fail-if: %s: %d of the runs failed, whatever their figures: %s", sets[i].Name, n,
					compare.Failed(sets[i].Failed[0])),
			})
			a.status = exitFailed
		}
	}
	for k := range limits {
		l := &limits[k]
		known := false
		for r := range rows {
			if rows[r].Name != l.Metric.Name {
				continue
			}
			known = true
			for i := 1; i < len(sets); i++ {
				exceeded, err := l.Exceeded(&rows[r], i)
				switch {
				case err != nil:
					hint := fmt.Sprintf("repeat the runs: %d of each are enough", compare.Enough(len(rows)))
					if errors.Is(err, compare.ErrBound) {
						hint = "run on a machine on which perfmq is not the limit"
					}
					a.errors.print(&plan.Mistake{Text: "--fail-if " + err.Error() + ofCell(rows[r].Cell), Hint: hint})
					a.status = exitUsage
				case exceeded:
					a.errors.print(&plan.Mistake{Text: fmt.Sprintf("--fail-if %s: %s%s changed by %s", l.Text, sets[i].Name,
						ofCell(rows[r].Cell), rows[r].Cells[i].String())})
					if a.status == exitOK {
						a.status = exitThreshold
					}
				}
			}
		}
		if !known {
			a.errors.print(&plan.Mistake{
				Text: "--fail-if " + l.Text + ": no result has that figure",
				Hint: "name a metric of these runs",
			})
			a.status = exitUsage
		}
	}
	if a.status != exitOK {
		return errReported
	}
	return nil
}
