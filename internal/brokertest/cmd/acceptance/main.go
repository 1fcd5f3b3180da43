//go:build unix

// Command acceptance carries out the shipped scenarios at full size, each on its real broker, and writes the
// outcomes as a page: whether all thresholds were kept, and whether the broker's counters equal perfmq's.
//
//	go run ./internal/brokertest/cmd/acceptance -perfmq bin/perfmq -out docs/acceptance.md
//
// Scenarios of one kind of broker run one after the other on one broker. It takes hours with -long.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/scenarios"
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
	scale       string
	limit       time.Duration
}

// outcome is the outcome of one scenario.
type outcome struct {
	scenario, broker string
	took             time.Duration
	status           int
	limited          bool           // -limit ended it
	result           *result.Result // nil if there is none
	output           string         // the end of the printed output
}

func run(ctx context.Context) error {
	var s session
	flag.StringVar(&s.perfmq, "perfmq", "bin/perfmq", "our binary")
	flag.StringVar(&s.scale, "scale", "1", "shorten the scenarios by this factor, as perfmq run --scale does")
	flag.DurationVar(&s.limit, "limit", time.Hour, "end a scenario after this time")
	out := flag.String("out", "", "write the page to this file, instead of the standard output")
	only := flag.String("only", "", "scenarios to run, as a regular expression")
	long := flag.Bool("long", false, "run those that last longer than ten minutes, too")
	results := flag.String("results", "", "keep the result folders here, for perfmq report")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if s.dir = *results; s.dir != "" {
		err = os.MkdirAll(s.dir, 0o750)
	} else if s.dir, err = os.MkdirTemp("", "perfmq-acceptance-"); err == nil {
		defer func() { _ = os.RemoveAll(s.dir) }()
	}
	if err != nil {
		return err
	}

	shipped, err := scenario.Shipped(scenarios.FS())
	if err != nil {
		return err
	}
	byKind := map[string][]string{}
	for _, info := range shipped {
		if wanted.MatchString(info.Name) && (*long || !slices.Contains(longOnes(), info.Name)) {
			byKind[kindOf(info.Name)] = append(byKind[kindOf(info.Name)], info.Name)
		}
	}
	var outcomes []outcome
	for _, kind := range []string{"artemis", "activemq", "rocketmq"} {
		if len(byKind[kind]) == 0 {
			continue
		}
		list, err := s.onBroker(ctx, kind, byKind[kind])
		outcomes = append(outcomes, list...)
		if err != nil {
			return errors.Join(err, write(*out, page(outcomes, s.scale, *only)))
		}
	}
	return errors.Join(write(*out, page(outcomes, s.scale, *only)), failures(outcomes))
}

// longOnes are the scenarios that take more than ten minutes on a small machine.
func longOnes() []string {
	return []string{
		"activemq/overnight", "activemq/backlog", "activemq/restart", "activemq/drain",
		"activemq/fifty-to-hundred", "activemq/connections", "activemq/connections-size", "activemq/producers",
		"soak/artemis", "soak/stomp", "soak/rocketmq",
	}
}

// kindOf returns the kind of broker that a shipped scenario is for.
func kindOf(name string) string {
	switch dir, _, _ := strings.Cut(name, "/"); {
	case dir == "rocketmq" || name == "smoke/rocketmq" || name == "soak/rocketmq":
		return "rocketmq"
	case dir == "activemq" || dir == "cluster":
		return "activemq"
	default:
		return "artemis"
	}
}

// onBroker starts a broker and carries the scenarios out on it.
func (s *session) onBroker(ctx context.Context, kind string, names []string) (list []outcome, err error) {
	b, err := start(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", kind, err)
	}
	defer func() { err = errors.Join(err, b.end()) }()
	for _, name := range names {
		o, err := s.once(ctx, b, name)
		if err != nil {
			return list, err
		}
		list = append(list, o)
		fmt.Fprintf(os.Stderr, "%s on %s: %s after %s\n", name, b.title, o.verdict(), o.took.Round(time.Second))
	}
	return list, nil
}

// once carries one scenario out.
func (s *session) once(ctx context.Context, b *broker, name string) (outcome, error) {
	dir := filepath.Join(s.dir, strings.ReplaceAll(name, "/", "-"))
	extra, stop := b.arguments(name, s.dir)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	args := append([]string{"run", "@" + name, "--scale", s.scale, "--result", dir, "--silent"}, extra...)
	cmd := exec.CommandContext(ctx, s.perfmq, args...) //nolint:gosec // ours
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	began := time.Now()
	text, err := cmd.CombinedOutput()
	o := outcome{scenario: name, broker: b.title, took: time.Since(began), output: tail(string(text))}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return o, fmt.Errorf("run %s: %w", name, err)
	}
	o.status = cmd.ProcessState.ExitCode()
	o.limited = errors.Is(ctx.Err(), context.DeadlineExceeded)
	if r, err := result.Read(dir); err == nil {
		o.result = r
	}
	return o, nil
}

// tail returns the last lines of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// verdict returns the outcome of a scenario in a few words.
func (o *outcome) verdict() string {
	switch {
	case o.limited:
		return "not finished: -limit ended it"
	case o.status == 0:
		return "passed"
	case o.status == 3:
		return "a threshold was not kept"
	default:
		return fmt.Sprintf("failed, status %d", o.status)
	}
}

// thresholds says how many demands were kept, and lists the others.
func (o *outcome) thresholds() string {
	if o.result == nil {
		return ""
	}
	var missed []string
	for _, d := range o.result.Thresholds {
		if !d.Kept {
			measured := "nothing measured"
			if d.Measured != nil {
				measured = fmt.Sprintf("measured %.0f", *d.Measured)
			}
			missed = append(missed, fmt.Sprintf("%s (%s)", strings.TrimPrefix(d.Step+": "+d.Threshold, ": "), measured))
		}
	}
	all := len(o.result.Thresholds)
	text := fmt.Sprintf("%d of %d", all-len(missed), all)
	if len(missed) > 0 {
		text += "; not kept: " + strings.Join(missed, ", ")
	}
	return strings.ReplaceAll(text, "|", `\|`)
}

// counts compares the broker's counters with ours.
func (o *outcome) counts() string {
	if o.result == nil || o.result.BrokerCount == nil {
		return "not asked"
	}
	known, differ := 0, 0
	for _, d := range o.result.BrokerCount.Destinations {
		for _, c := range []*result.Compared{d.Added, d.Acknowledged} {
			if c == nil {
				continue
			}
			known++
			if c.Count < c.Least || c.Count > c.Most {
				differ++
			}
		}
	}
	switch {
	case known == 0:
		return "not known"
	case differ > 0:
		return fmt.Sprintf("%d of %d DIFFER", differ, known)
	default:
		return fmt.Sprintf("%d equal", known)
	}
}

// page returns the outcomes as Markdown. Only is the pattern that selected the scenarios; empty for all.
func page(outcomes []outcome, scale, only string) string {
	var b strings.Builder
	b.WriteString("# Shipped scenarios on real brokers\n\n" +
		"`make acceptance` carries out the scenarios inside the binary at full size, each on its broker, and writes this " +
		"page. *Broker's count* compares the\n" +
		"counters of the broker with those of perfmq, for each destination: messages added and messages acknowledged.\n\n")
	fmt.Fprintf(&b, "Broker and tester on one machine with %d processors, which had other work to do; scale %s.\n\n",
		runtime.NumCPU(), scale)
	if only != "" {
		fmt.Fprintf(&b, "Only scenarios whose names match `%s` were run.\n\n", only)
	}
	b.WriteString("| scenario | broker | took | sent | received | verdict | thresholds kept | broker's count |\n| --- | " +
		"--- | --- | --- | --- | --- | --- | --- |\n")
	for i := range outcomes {
		o := &outcomes[i]
		var sent, received uint64
		if o.result != nil {
			if p := o.result.Total.Producers; p != nil {
				sent = p.Sent
			}
			if c := o.result.Total.Consumers; c != nil {
				received = c.Received
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s | %s | %s |\n", o.scenario, o.broker, o.took.Round(time.Second), sent,
			received,
			o.verdict(), o.thresholds(), o.counts())
	}
	return b.String()
}

// failures returns the scenarios that did not succeed, with the end of their output. A threshold on a rate is about the
// machine, too: it is in the page, and no failure.
func failures(outcomes []outcome) error {
	var errs []error
	for i := range outcomes {
		if o := &outcomes[i]; o.status != 0 && o.status != 3 || strings.Contains(o.counts(), "DIFFER") {
			errs = append(errs, fmt.Errorf("%s on %s: %s\n%s", o.scenario, o.broker, o.verdict(), o.output))
		}
	}
	return errors.Join(errs...)
}

func write(file, text string) error {
	if file == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // a page of the documentation
}
