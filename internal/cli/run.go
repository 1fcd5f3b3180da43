package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/spf13/cobra"
)

// runRole runs perfmq PROTOCOL ROLE.
func (a *app) runRole(cmd *cobra.Command, args []string, in *input, f *driver.Factory, role plan.Role) error {
	a.errors.named = in.named
	list := a.arguments(cmd.CommandPath(), cmd.Flags())
	errs := unknownFlags(list, cmd.Flags(), in, func(name string) error { return a.unknownFlag(cmd, name, f, role) })
	errs = append(errs, strayWords(list, in)...)
	s, origins, valueErrs := in.given.Values(in.table)
	errs = append(errs, valueErrs...)
	errs = append(errs, a.environ.Unknown()...)

	if len(s.FindMax) > 0 {
		searchDefaults(s)
	}
	resolve := func(v *setting.Values) (*plan.Plan, *resolver) {
		r := &resolver{
			Values: v, role: role, own: *f, factories: a.Factories, libraries: a.libraries, secrets: a.secrets,
			shipped: a.Scenarios,
		}
		p := r.resolve(args)
		r.shard(p, a.environ[setting.JobIndex])
		return p, r
	}
	p, r := resolve(s)
	r.notes = append(compatibleNotes(cmd.Flags()), r.notes...)
	r.outputs(a.Stdout, a.Stderr)
	if len(s.FindMax) > 0 {
		r.searchMistakes()
	}
	errs = append(errs, r.errs...)
	if err := p.Validate(a.driver); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	if s.DryRun {
		a.sayNotes(r.notes)
		return a.printPlan(cmd, p, origins)
	}
	a.work = func() int {
		if !s.Silent {
			a.sayNotes(r.notes)
		}
		if len(s.FindMax) == 0 {
			return a.ended(a.newRun(p, s).Do())
		}
		search := a.newSearch(p, s)
		search.Build = func(rate string) (*run.Run, error) {
			one := *s
			var err error
			if one.Rate, err = load.ParseSchedule(rate); err != nil {
				return nil, err
			}
			p, _ := resolve(&one)
			return a.newRun(p, &one), nil
		}
		return a.search(search, s.JSONFile)
	}
	return nil
}

// sayNotes prints the notes before a run.
func (a *app) sayNotes(notes []string) {
	for _, note := range notes {
		a.errors.say("note: " + note)
	}
}

func (a *app) unknownFlag(cmd *cobra.Command, name string, f *driver.Factory, role plan.Role) error {
	var names []string
	for _, d := range setting.Table(role, f) {
		names = append(names, d.Name)
	}
	m := &plan.Mistake{
		Text: "unknown flag --" + name,
		Hint: nearest.Hint(name, names, "--%s", cmd.CommandPath()+" --help lists all flags"),
	}
	var others []string
	for _, other := range setting.Roles() {
		for _, d := range setting.Table(other, f) {
			if d.Name == name {
				others = append(others, "perfmq "+f.Name+" "+string(other))
			}
		}
	}
	if len(others) > 0 {
		m.Hint = "it is a flag of " + strings.Join(others, " and ")
	}
	if hint := otherNames(name); hint != "" && !slices.Contains(names, name) && len(others) == 0 {
		m.Hint = hint
	}
	for _, o := range driver.Describe(setting.NewOptions(f)) {
		if o.Name == name {
			m.Hint = "write -o " + name + "=..."
		}
	}
	return m
}

// printPlan is --dry-run.
func (a *app) printPlan(cmd *cobra.Command, p *plan.Plan, list []setting.Provenance) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: this is the plan; nothing was connected or sent\n\n", cmd.CommandPath())
	if err := plan.Print(&b, p, a.secrets.Line); err != nil {
		return err
	}
	b.WriteString("\nNot at their defaults\n")
	for i := range list {
		value := list[i].Value
		if plan.IsFailover(value) {
			value = plan.RedactURL(value)
		}
		fmt.Fprintf(&b, "  %-20s %s (%s)\n", list[i].Name, a.secrets.Line(value), &list[i])
	}
	if len(list) == 0 {
		b.WriteString("  nothing\n")
	}
	_, err := a.Stdout.Write([]byte(b.String()))
	return err
}

// newRun returns a run of a valid plan with the requested outputs.
func (a *app) newRun(p *plan.Plan, s *setting.Values) *run.Run {
	if a.FakeClock {
		p.FakeClock, p.RunID = true, cmp.Or(p.RunID, 1)
	}
	return &run.Run{
		Listen: a.Listen,
		Plan:   p, Drivers: a.driver, Side: s.Side, Embedded: s.Embedded, Faults: s.Faults, Secrets: a.secrets,
		Version: a.Version, Stdout: a.Stdout,
		Stderr: a.Stderr, Signals: a.Signals,
		KeepGC: slices.ContainsFunc(a.Environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }),
		Say:    a.errors.say, OnError: func(err error) { a.errors.print(err) },
		Outputs: run.Outputs{
			Silent: s.Silent, Format: s.Format, ShowLatency: s.ShowLatency, Interval: s.Interval, JSON: s.JSONFile,
			HDR: s.HDRFile, Result: s.ResultDir,
			VerifyFile: s.VerifyFile, Metrics: s.MetricsAddr, MetricsWeb: s.MetricsWeb, Linger: s.MetricsLinger,
			LingerScrape: s.LingerScrape, Web: s.WebAddr,
		},
	}
}

// ended prints how a run ended, and returns the exit status.
func (a *app) ended(e run.Ending) int {
	if e.Abandoned && !e.Opened {
		a.errors.say("interrupted: nothing was connected or sent")
	}
	a.errors.print(e.Err)
	if s := e.Summary; s != nil {
		if !s.Success {
			a.problems(s)
		}
		a.broken(s.Thresholds)
	}
	a.errors.print(e.Closing)
	return e.Status()
}

// broken prints the thresholds that a run has broken.
func (a *app) broken(outcomes []threshold.Outcome) {
	for i := range outcomes {
		if outcomes[i].Broken() {
			a.errors.write("threshold: "+outcomes[i].String(), "")
		}
	}
}

// problems prints the problems of a run, which make it a failure.
func (a *app) problems(s *stats.Summary) {
	for i, problem := range s.Problems {
		if i == maxShown {
			a.errors.write(fmt.Sprintf("and %d more", len(s.Problems)-i), "")
			break
		}
		a.errors.write(problem, s.Hints[i])
	}
}
