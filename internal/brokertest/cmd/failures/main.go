//go:build unix

// Command failures puts a load on real brokers, lets them fail, and compares what perfmq reports with what the harness
// did and with what the broker has counted. It writes the outcomes as a page:
//
//	go run ./internal/brokertest/cmd/failures -perfmq bin/perfmq -out docs/failures.md
//
// Each deployment is started once for each failure, and all its protocols are under load at once. Everything listens on
// loopback, on free ports, and is stopped in any case. It fails if perfmq was wrong, not if a broker was.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// session is one call of the command.
type session struct {
	perfmq, dir string
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

func run(ctx context.Context) (err error) {
	s := session{allowed: onTime}
	flag.StringVar(&s.perfmq, "perfmq", "bin/perfmq", "our binary")
	flag.StringVar(&s.dir, "results", "", "keep the results in this folder; failures with results in it are not repeated")
	out := flag.String("out", "", "write the page to this file, instead of the standard output")
	only := flag.String("only", "", "deployments and failures to try, as a regular expression, such as ^artemis/kill$")
	soak := flag.Duration("soak", 0, "instead, put one load on a broker for this time, while it is killed and stopped")
	over := flag.String("over", "amqp", "the protocol of -soak: amqp or stomp, on Artemis, or rocketmq")
	clusters := flag.Duration("clusters", 0, "instead, carry out scenarios/cluster on clusters, each plan for this time")
	atOnce := flag.Int("parallel", 1, "trials at a time; more than one disturb each other")
	starts := flag.Bool("starts", false, "instead, try starts with 200,000, a million and two million stored messages")
	list := flag.Bool("list", false, "list deployments and failures, and end")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	trials := choose(wanted, *starts)
	if *list {
		for i := range trials {
			fmt.Println(trials[i].name())
		}
		return nil
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "perfmq-failures-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil { // a Prometheus has another working directory
		return err
	}
	if *soak > 0 {
		return s.soak(ctx, *over, *soak, *out)
	}
	if *clusters > 0 {
		return s.clusters(ctx, *clusters, *out)
	}
	began := time.Now()
	rows, errs := s.all(ctx, trials, *atOnce)
	if ctx.Err() != nil { // without a page: it would not have all rows
		return errors.Join(ctx.Err(), errs)
	}
	fmt.Fprintf(os.Stderr, "%d trials took %s\n", len(trials), time.Since(began).Round(time.Second))
	return errors.Join(errs, write(*out, page(rows, *starts, *atOnce)), mistakes(rows))
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

func write(file, text string) error {
	if file == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // a page of the documentation
}
