//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// session is one call of the command.
type session struct {
	perfmq, dir, out string
	only             *regexp.Regexp // names of trials, benchmarks or scenarios
	close            func() error
	// allowed is how much later than the harness's log perfmq may notice a failure: on a machine that is busy it may have
	// no processor for seconds.
	allowed time.Duration
}

// trial is a deployment and a failure of it.
type trial struct {
	deployment *deployment
	failure    *failure
}

func (t *trial) name() string { return t.deployment.name + "/" + t.failure.name }

func failuresCommand(ctx context.Context, args []string) error { return try(ctx, "failures", args) }

func startsCommand(ctx context.Context, args []string) error { return try(ctx, "starts", args) }

// open reads the flags that all commands have, and those that more adds. The session must be closed.
func open(name string, args []string, more func(*flag.FlagSet)) (s *session, err error) {
	s = &session{allowed: onTime, only: new(regexp.Regexp), close: func() error { return nil }}
	fs := flag.NewFlagSet("lab "+name, flag.ContinueOnError)
	fs.StringVar(&s.perfmq, "perfmq", "bin/perfmq", "our binary")
	fs.StringVar(&s.dir, "results", "", "keep the results in this folder; trials with results in it are not repeated")
	fs.StringVar(&s.out, "out", "", "write the page to this file, instead of the standard output")
	if name != "soak" {
		fs.TextVar(s.only, "only", regexp.MustCompile(""), "names to run, as a regular expression, such as ^artemis/kill$")
	}
	more(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "perfmq-lab-"); err != nil {
			return nil, err
		}
		s.close = func() error { return os.RemoveAll(s.dir) }
	}
	s.dir, err = filepath.Abs(s.dir) // a Prometheus has another working directory
	return s, err
}

// try carries out the trials of the command failures, or of starts.
func try(ctx context.Context, name string, args []string) (err error) {
	starts := name == "starts"
	var atOnce int
	var list bool
	s, err := open(name, args, func(fs *flag.FlagSet) {
		fs.IntVar(&atOnce, "parallel", 1, "trials at a time; more than one disturb each other")
		fs.BoolVar(&list, "list", false, "list deployments and failures, and end")
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	trials := choose(s.only, starts)
	if list {
		for i := range trials {
			fmt.Println(trials[i].name())
		}
		return nil
	}
	began := time.Now()
	rows, errs := s.all(ctx, trials, atOnce)
	if ctx.Err() != nil { // without a page: it would not have all rows
		return errors.Join(ctx.Err(), errs)
	}
	fmt.Fprintf(os.Stderr, "%d trials took %s\n", len(trials), time.Since(began).Round(time.Second))
	return errors.Join(errs, write(s.out, page(rows, starts, atOnce)), mistakes(rows))
}

// all carries out trials, some at a time, and returns their rows in the order of the trials. A trial that could not be
// carried out has a row that says so.
func (s *session) all(ctx context.Context, trials []trial, atOnce int) ([]row, error) {
	got, errs := make([][]row, len(trials)), make([]error, len(trials))
	var g errgroup.Group
	g.SetLimit(max(1, atOnce))
	for i := range trials {
		g.Go(func() error {
			got[i], errs[i] = s.told(ctx, &trials[i])
			return nil // the others are worth trying
		})
	}
	_ = g.Wait() // no trial returns an error
	return slices.Concat(got...), errors.Join(errs...)
}

// told carries a trial out, and prints its rows.
func (s *session) told(ctx context.Context, t *trial) ([]row, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	rows, err := s.once(ctx, t)
	if err != nil {
		err = fmt.Errorf("%s: %w", t.name(), err)
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		rows = append(rows, row{
			Deployment: t.deployment.name, Failure: t.failure.title, Promised: t.failure.promised,
			State: notCarriedOut, Verdict: "**not carried out**", origin: origin{In: t.deployment.name, Began: time.Now()},
		})
	}
	for _, r := range rows {
		fmt.Fprintf(os.Stderr, "%s over %s: %s\n  observed: %s\n  ours: %s\n  broker's: %s\n", t.name(), r.Protocol,
			r.Verdict, r.Observed, r.Ours, r.Brokers)
	}
	return rows, err
}

// once returns the rows of a trial. One that has rows in the folder of the results is not repeated.
func (s *session) once(ctx context.Context, t *trial) (rows []row, err error) {
	file := filepath.Join(s.dir, strings.ReplaceAll(t.name(), "/", "-")+".json")
	text, err := os.ReadFile(file) //nolint:gosec // the user named the folder
	if err == nil {
		return rows, json.Unmarshal(text, &rows)
	}
	if rows, err = judged(ctx, func() ([]row, error) { return s.try(ctx, t) }); err != nil {
		return nil, err
	}
	if text, err = json.MarshalIndent(rows, "", "  "); err != nil {
		return nil, err
	}
	return rows, os.WriteFile(file, text, 0o600)
}

// judged carries a trial out, and once more if a row of it is not judged. Rows that were judged at first stay.
func judged(ctx context.Context, try func() ([]row, error)) ([]row, error) {
	rows, err := try()
	if err != nil || !slices.ContainsFunc(rows, func(r row) bool { return r.State == notJudged }) {
		return rows, err
	}
	again, err := try()
	if err != nil || len(again) != len(rows) {
		return rows, ctx.Err()
	}
	for i := range rows {
		if rows[i].State == notJudged {
			rows[i] = again[i]
		}
	}
	return rows, nil
}

// choose returns the trials whose names match: those of starts with many messages, or all others.
func choose(wanted *regexp.Regexp, starts bool) (list []trial) {
	all := slices.Concat(failures(), orderlyFailures(), queueFailures(), storeFailures())
	for _, d := range deployments() {
		for _, name := range d.failures {
			for i := range all {
				t := trial{d, &all[i]}
				if all[i].name == name && all[i].apart == starts && wanted.MatchString(t.name()) {
					list = append(list, t)
				}
			}
		}
	}
	return list
}

// command returns perfmq with arguments, ready to run. At the end of the context it gets SIGTERM, and is killed five
// seconds later.
func (s *session) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.perfmq, args...) //nolint:gosec // ours
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func write(file, text string) error {
	if file == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // a page of the documentation
}
