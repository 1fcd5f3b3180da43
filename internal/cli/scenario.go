package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/sweep"
	"github.com/perfmq/perfmq/internal/threshold"
)

// runSettings are the flags of perfmq run beside those of the loads.
type runSettings struct {
	Set     []string `set:"set,daily" arg:"NAME=VALUE" help:"set a variable of the file; may be repeated"`
	Repeats int      `set:"repeats,daily" arg:"N" range:"1..1000" help:"run each cell, or the only run, N times"`
	Scale   string   `set:"scale,daily" arg:"FACTOR" default:"1" help:"multiply durations and counts"`
}

// runCommand is perfmq run.
func (a *app) runCommand() *cobra.Command {
	of := &source{in: a.newInput(config.RunTable())}
	cmd := a.withSettings(&cobra.Command{
		Use: "run [flags] FILE|@NAME", Short: "Run a scenario file: several brokers, groups and steps",
		Args: cobra.ArbitraryArgs, ValidArgsFunction: a.suggestScenarios,
	}, &of.runSettings, func(args []string, errs []error) error { return a.runFile(args, of, errs) })
	of.in.addTo(cmd.Flags())
	a.completeFlags(cmd, of.in, a.Factories...)
	return cmd
}

// prepared is a plan that is ready to run.
type prepared struct {
	config.Ready
	sweep  *sweep.Sweep  // nil if it is one run, or a search
	search *sweep.Search // nil if it is no search
}

// runFile runs perfmq run, with the mistakes in the values of its own flags.
func (a *app) runFile(args []string, of *source, errs []error) error {
	switch {
	case len(args) == 0:
		return plan.Needs("perfmq run", "FILE|@NAME")
	case len(args) > 1:
		return plan.Wrong("run one after the other", "perfmq run carries out one scenario: %d were given", len(args))
	}
	errs = append(errs, a.environ.Unknown()...)
	var err error
	if of.scale, err = strconv.ParseFloat(of.Scale, 64); err != nil || !(of.scale > 0 && of.scale <= 1) {
		errs = append(errs, plan.Wrong("", "--scale=%s: must be above 0 and at most 1", config.Quoted(of.Scale)))
	}
	of.set = map[string]string{}
	for _, text := range of.Set {
		name, value, _ := strings.Cut(text, "=")
		of.set[name] = value
	}
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	ready, err := a.prepare(args[0], of)
	if err != nil {
		return a.usage(err)
	}
	return a.carryOut(&ready)
}

// prepare reads a scenario and makes its plan. The error holds all mistakes.
func (a *app) prepare(name string, of *source) (p prepared, err error) {
	path, text, err := a.maker.Read(name)
	if err != nil {
		return p, err
	}
	if of.Scenario, err = a.maker.Parse(path, text, of.set); err != nil {
		return p, err
	}
	if of.Axes != nil || of.Sweep.Repeats != 1 || of.Repeats > 1 {
		return a.newSweep(of)
	}
	if p.Ready, err = of.plan(nil); err != nil || len(p.Values.FindMax) == 0 {
		return p, err
	}
	var errs []error
	p.search, errs = a.newSearch(p.Ready, func() (config.Ready, error) { return of.plan(nil) })
	return p, errors.Join(errs...)
}

// ofOneRun refuses settings that several runs cannot share.
func ofOneRun(v *config.Values, more ...string) (errs []error) {
	for _, flag := range append(more, "hdr", "verify-file", "start-at", "shard") {
		if v.Has(flag) {
			errs = append(errs, plan.Wrong("leave it out", "--%s is for one run, and there are several", flag))
		}
	}
	return errs
}

// carryOut runs a plan, or prints it with --dry-run.
func (a *app) carryOut(p *prepared) error {
	if p.Values.DryRun {
		return a.printPlan(p)
	}
	if program := a.maker.Elsewhere; program != "" {
		a.work = func() int { return a.handOver(program) }
		return nil
	}
	a.work = func() int {
		if !p.Values.Outputs.Silent {
			for _, note := range p.Notes {
				a.errors.say("note: " + note)
			}
		}
		switch {
		case p.sweep != nil:
			return p.sweep.Do()
		case p.search != nil:
			return a.search(p.search, p.Values.Outputs.JSON)
		}
		return a.printEnding(a.newRun(p.Ready).Do())
	}
	return nil
}

// handOver has another program carry out the command line, and returns its status.
func (a *app) handOver(program string) int {
	status, err := 0, errors.ErrUnsupported
	if a.HandOver != nil {
		status, err = a.HandOver(program)
	}
	if err != nil {
		_ = a.usage(plan.Wrong("put "+program+" of the same release beside perfmq, or use --client native",
			"%s has this client library, and cannot be started: %v", program, err))
		return a.status
	}
	return status
}

// printPlan is --dry-run: the plan as a scenario.
func (a *app) printPlan(p *prepared) error {
	notes := p.Notes
	switch {
	case p.sweep != nil:
		notes = append(notes, "a sweep: this is the plan of its first cell")
		notes = append(notes, p.sweep.Describe()...)
		for i, title := range p.sweep.Titles() {
			notes = append(notes, fmt.Sprintf("cell %d: %s", i+1, title))
		}
	case p.search != nil:
		notes = append(notes, "a search: each of its loads has another rate")
	}
	comments := []string{a.commandLine(), nothingDone}
	for _, note := range append(notes, p.Plan.Notes()...) {
		comments = append(comments, "note: "+note)
	}
	p.Plan.DrawSeed()
	text, err := plan.YAML(p.Plan, a.secrets.Field, comments...)
	if err != nil {
		return err
	}
	return a.write(text)
}

// scenarioCommand is perfmq scenario.
func (a *app) scenarioCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "scenario", Short: "List and show scenarios, their schema, and metrics",
		Args: cobra.ArbitraryArgs, RunE: a.wantCommand,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the scenarios inside this program", Args: noArguments,
			RunE: func(*cobra.Command, []string) error { return a.listScenarios() },
		},
		&cobra.Command{
			Use: "show @NAME", Short: "Print a scenario inside this program", Args: cobra.ArbitraryArgs,
			RunE: a.showScenario, ValidArgsFunction: a.suggestShipped,
		},
		&cobra.Command{
			Use: "init", Short: "Print a scenario to begin with", Args: noArguments,
			RunE: func(*cobra.Command, []string) error { return a.write(config.Skeleton()) },
		},
		&cobra.Command{
			Use: "schema", Short: "Print the JSON Schema of scenario files, for editors", Args: noArguments,
			RunE: func(*cobra.Command, []string) error { return a.write(config.Schema(config.Names(a.Factories))) },
		},
		&cobra.Command{
			Use: "metrics", Short: "List the metrics of --threshold", Args: noArguments,
			RunE: func(*cobra.Command, []string) error {
				w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
				for _, m := range threshold.Metrics() {
					_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", m.Name, m.Unit, m.Help) // Flush has the error
				}
				return w.Flush()
			},
		},
	)
	return cmd
}

func (a *app) listScenarios() error {
	if a.Scenarios == nil {
		return nil
	}
	list, err := config.Shipped(a.Scenarios)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, info := range list {
		_, _ = fmt.Fprintf(w, "@%s\t%s\n", info.Name, info.Description) // Flush has the error
	}
	return w.Flush()
}

func (a *app) showScenario(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return a.usage(&plan.Mistake{Text: cmd.CommandPath() + " wants one name", Hint: "perfmq scenario list shows all"})
	}
	_, text, err := a.maker.Read("@" + strings.TrimPrefix(args[0], "@"))
	if err != nil {
		return a.usage(err)
	}
	return a.write(text)
}

// write writes to standard output.
func (a *app) write(text []byte) error {
	_, err := a.Stdout.Write(text)
	return err
}
