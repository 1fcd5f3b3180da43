package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// runRole is what perfmq PROTOCOL ROLE does.
func (a *app) runRole(cmd *cobra.Command, args []string, in *input, f *driver.Factory, role plan.Role) error {
	errs := a.unknownFlags(cmd, in, func(name string) error { return a.unknownFlag(cmd, name, f, role) })
	s, list, valueErrs := in.values(a.environ)
	errs = append(errs, valueErrs...)
	errs = append(errs, a.environ.unknown(a.known)...)

	r := &resolver{settings: s, role: role, own: *f, factories: a.Factories, libraries: a.libraries, secrets: a.secrets}
	p := r.resolve(args)
	r.outputs(a.Stdout, a.Stderr)
	errs = append(errs, r.errs...)
	if err := p.Validate(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	if s.dryRun {
		return a.printPlan(cmd, p, list)
	}
	p.MakeBodies()
	a.work = func() int { return a.execute(p, s) }
	return nil
}

// unknownFlags finds what pflag was told to let pass, in the same way as pflag reads arguments, and flags without a value, as where a
// variable is not set: for pflag, the next flag is the value.
func (a *app) unknownFlags(cmd *cobra.Command, in *input, unknown func(name string) error) []error {
	var errs []error
	flags := cmd.Flags()
	for i := 0; i < len(a.Args); i++ {
		arg := a.Args[i]
		if arg == "--" {
			break
		}
		var flag *pflag.Flag
		var attached bool
		switch {
		case strings.HasPrefix(arg, "--"):
			var name string
			name, _, attached = strings.Cut(arg[2:], "=")
			if flag = flags.Lookup(name); flag == nil {
				errs = append(errs, unknown(name))
				continue
			}
		case len(arg) > 1 && arg[0] == '-':
			attached = len(arg) > 2
			if flag = flags.ShorthandLookup(arg[1:2]); flag == nil {
				errs = append(errs, &plan.Mistake{Text: "unknown flag " + arg[:2], Hint: "flags begin with two hyphens; -o sets options of the protocol"})
				continue
			}
		default:
			continue
		}
		if !attached && flag.NoOptDefVal == "" {
			i++ // its value
			if i < len(a.Args) && isFlag(flags, a.Args[i]) {
				in.missing[flag.Name] = true
				errs = append(errs, &plan.Mistake{
					Text: "--" + flag.Name + " has no value: " + a.Args[i] + " follows",
					Hint: "give --" + flag.Name + " a value, or leave it out; --" + flag.Name + "=" + a.Args[i] + " if that is meant",
				})
			}
		}
	}
	return errs
}

// isFlag tells whether an argument is one of the flags.
func isFlag(flags *pflag.FlagSet, arg string) bool {
	name, ok := strings.CutPrefix(arg, "--")
	name, _, _ = strings.Cut(name, "=")
	return ok && flags.Lookup(name) != nil
}

func (a *app) unknownFlag(cmd *cobra.Command, name string, f *driver.Factory, role plan.Role) error {
	m := &plan.Mistake{Text: "unknown flag --" + name, Hint: cmd.CommandPath() + " --help lists all flags"}
	var names []string
	for _, d := range definitions(role, f) {
		names = append(names, d.name)
	}
	if n := nearest.Nearest(name, names); n != "" {
		m.Hint = "did you mean --" + n + "?"
	}
	var others []string
	for _, other := range roles() {
		for _, d := range definitions(other, f) {
			if d.name == name {
				others = append(others, "perfmq "+f.Name+" "+string(other))
			}
		}
	}
	if len(others) > 0 {
		m.Hint = "it is a flag of " + strings.Join(others, " and ")
	}
	for _, o := range driver.Describe(newOptions(f)) {
		if o.Name == name {
			m.Hint = "write -o " + name + "=..."
		}
	}
	return m
}

func newOptions(f *driver.Factory) any {
	if f.NewOptions == nil {
		return nil
	}
	return f.NewOptions()
}

// printPlan is --dry-run.
func (a *app) printPlan(cmd *cobra.Command, p *plan.Plan, list []given) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: this is the plan; nothing was connected or sent\n\n", cmd.CommandPath())
	if err := plan.Print(&b, p, a.secrets.Line); err != nil {
		return err
	}
	b.WriteString("\nNot at their defaults\n")
	for _, g := range list {
		fmt.Fprintf(&b, "  %-20s %s (%s)\n", g.name, a.secrets.Line(g.value), g.from)
	}
	if len(list) == 0 {
		b.WriteString("  nothing\n")
	}
	_, err := a.Stdout.Write([]byte(b.String()))
	return err
}

// gcPercent lets the heap grow to five times what is in use before it is collected, instead of to twice. What is in use is
// a few megabytes, and on a full AMQP load a fifth of the processor time per message went into collections. GOGC wins.
const gcPercent = 400

// await waits for d, until ctx ends, or until stop closes if it has not yet.
func await(ctx context.Context, stop <-chan struct{}, d time.Duration) {
	select {
	case <-stop:
		stop = nil // that was the end of the run
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	case <-ctx.Done():
	}
}

// opened is what a run needs beside its workers.
type opened struct {
	fan      *report.Fan
	embedded []*broker.Broker
	err      error // why not all of it could be opened; what could be is closed again
	status   int   // for err
}

// open opens the outputs and the embedded broker. It may wait: for a reader of a pipe.
func (a *app) open(p *plan.Plan, s *settings, stdout io.Writer) opened {
	if s.verifyFile != "" { // that of --result is in a folder of the run's own
		if err := verify.Probe(p.VerifyFile); err != nil {
			return opened{status: exitUsage, err: &plan.Mistake{Text: "--verify-file: " + bare(err).Error(), Hint: "name a file that can be written"}}
		}
	}
	fan, err := s.reporters(p, stdout, a.Version, a.secrets, func(err error) { a.errors.print(err) })
	if err != nil {
		return opened{status: exitUsage, err: err}
	}
	fan.Secrets = a.secrets
	o := opened{fan: fan}
	if s.embedded {
		if o.embedded, err = startEmbedded(p, s.faults); err != nil {
			for _, b := range o.embedded {
				b.Close()
			}
			return opened{status: exitConnect, err: errors.Join(err, fan.Close())}
		}
	}
	return o
}

// execute carries out a valid plan and returns the exit status.
func (a *app) execute(p *plan.Plan, s *settings) int {
	if p.Threads > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p.Threads))
	}
	if !slices.ContainsFunc(a.Environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	}
	stdout := newPipeWriter(a.Stdout)
	open, ended := untilSignal(a.Signals, func() opened { return a.open(p, s, stdout) })
	switch {
	case !ended:
		a.errors.say("interrupted: nothing was connected or sent")
		return exitInterrupted
	case open.err != nil:
		a.errors.print(open.err)
		return open.status
	}
	fan := open.fan
	for _, b := range open.embedded {
		defer b.Close()
		if s.faults != (store.Faults{}) {
			defer func() { a.errors.say("note: " + describeFaults(s.faults, b.Store().FaultCounts())) }()
		}
	}
	if !s.silent {
		if s.metricsAt != "" {
			a.errors.say("note: metrics at http://" + s.metricsAt + "/metrics")
		}
		for _, b := range open.embedded {
			a.errors.say("note: " + aboutEmbedded + "; it listens at " + strings.Join(listening(b), ", "))
		}
		for _, note := range p.Notes() {
			a.errors.say("note: " + note)
		}
	}
	drain := p.DrainTimeout
	if p.Roles() == plan.Consumer {
		drain = 0 // a consumer has nothing in flight
	}
	return supervise(a.Signals, stdout.closed, a.errors.say, drain, func(ctx context.Context, stop <-chan struct{}) int {
		return a.load(ctx, stop, p, fan, s.metricsLinger)
	})
}

// load runs the engine, closes the outputs, after lingering if there was a run, and judges.
func (a *app) load(ctx context.Context, stop <-chan struct{}, p *plan.Plan, fan *report.Fan, linger time.Duration) int {
	summary, err := engine.Run(ctx, stop, p, fan)
	if summary != nil && linger > 0 {
		a.errors.say("serving the final metrics for " + linger.String() + "; press Ctrl-C to end")
		await(ctx, stop, linger)
	}
	closeErr := fan.Close()
	status := exitOK
	if err != nil {
		a.errors.print(err)
		status = exitFailed
		if summary == nil {
			status = startStatus(err, stop)
		}
	}
	if summary != nil && !summary.Success {
		status = exitFailed
		for i, problem := range summary.Problems {
			if i == maxShown {
				a.errors.write(fmt.Sprintf("and %d more", len(summary.Problems)-i), "")
				break
			}
			a.errors.write(problem, summary.Hints[i])
		}
	}
	if summary != nil {
		if judged := a.judge(summary.Thresholds); status == exitOK {
			status = judged
		}
	}
	if closeErr != nil {
		a.errors.print(closeErr)
		if status == exitOK || status == exitThreshold {
			status = exitFailed
		}
	}
	return status
}
