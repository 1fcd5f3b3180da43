//go:build unix

// Command acceptance carries out the shipped scenarios at full size, each on its real broker, and writes the
// outcomes as a page: whether all thresholds passed, and whether the broker's counters equal perfmq's. It writes no
// page if a scenario did not come to its end.
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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/internal/scenario"
	"github.com/perfmq/perfmq/internal/sweep/record"
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
	results          []*result.Result // those of all runs
	found            *record.Found    // of a search
	output           string           // the end of the printed output
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
	made, err := circumstancesOf(ctx, &s, *only)
	if err != nil {
		return err
	}
	var outcomes []outcome
	for _, kind := range []string{"artemis", "activemq", "rocketmq"} {
		if len(byKind[kind]) == 0 {
			continue
		}
		list, err := s.onBroker(ctx, kind, byKind[kind])
		if err != nil {
			return err
		}
		outcomes = append(outcomes, list...)
	}
	text, err := page(outcomes, made)
	if err != nil {
		return errors.Join(err, failures(outcomes))
	}
	return errors.Join(write(*out, text), failures(outcomes))
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
	return o, o.read(dir)
}

// read reads the results of a run, of a search, or of all runs of a sweep. A run that failed may have none.
func (o *outcome) read(dir string) error {
	folders := []string{dir}
	switch {
	case record.IsSearch(dir):
		found, err := record.ReadSearch(dir)
		if err != nil {
			return err
		}
		o.found, folders = found.Found, nil
		for i, p := range found.Points {
			folders = append(folders, filepath.Join(dir, record.PointFolder(i+1, p.Rate)))
		}
	case record.IsSweep(dir):
		all, err := record.ReadSweep(dir)
		if err != nil {
			return err
		}
		folders = nil
		for i := range all.Runs {
			folders = append(folders, filepath.Join(dir, filepath.FromSlash(all.Runs[i].Folder)))
		}
	}
	for _, folder := range folders {
		r, err := result.Read(folder)
		if errors.Is(err, result.ErrNoResult) {
			r, err = new(result.Result), nil // it is not complete
		}
		if err != nil {
			return err
		}
		o.results = append(o.results, r)
	}
	return nil
}

// finished tells whether each run came to its end.
func (o *outcome) finished() bool {
	if o.found != nil && !o.found.Complete {
		return false
	}
	return len(o.results) > 0 && !slices.ContainsFunc(o.results, func(r *result.Result) bool { return !r.Complete })
}

// total returns how many messages were sent and received.
func (o *outcome) total() (sent, received uint64) {
	for _, r := range o.results {
		if p := r.Total.Producers; p != nil {
			sent += p.Sent
		}
		if c := r.Total.Consumers; c != nil {
			received += c.Received
		}
	}
	return sent, received
}

// tail returns the last lines of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// verdict returns the outcome of a scenario in a few words.
func (o *outcome) verdict() string {
	sent, _ := o.total()
	switch {
	case !o.finished():
		return fmt.Sprintf("not finished, status %d", o.status)
	case sent == 0:
		return "failed: nothing was sent"
	case o.found != nil:
		text, _ := o.found.Words()
		return text
	case o.status == 0:
		return "passed"
	case o.status == 3:
		return "a threshold failed"
	default:
		return fmt.Sprintf("failed, status %d", o.status)
	}
}

// thresholds says how many thresholds passed, and lists the others. A search tries rates at which some fail.
func (o *outcome) thresholds() string {
	if o.found != nil {
		return fmt.Sprintf("a search of %d loads", len(o.results))
	}
	var failed []string
	all := 0
	for _, r := range o.results {
		for _, d := range r.Thresholds {
			if all++; !d.Kept {
				measured := "nothing measured"
				if d.Measured != nil {
					measured = fmt.Sprintf("measured %.0f", *d.Measured)
				}
				failed = append(failed, fmt.Sprintf("%s (%s)", strings.TrimPrefix(d.Step+": "+d.Threshold, ": "), measured))
			}
		}
	}
	text := fmt.Sprintf("%d of %d", all-len(failed), all)
	if len(failed) > 0 {
		text += "; failed: " + strings.Join(failed, ", ")
	}
	return strings.ReplaceAll(text, "|", `\|`)
}

// counts compares the broker's counters with ours.
func (o *outcome) counts() string {
	known, differ, asked := 0, 0, false
	for _, r := range o.results {
		if r.BrokerCount == nil {
			continue
		}
		asked = true
		for _, d := range r.BrokerCount.Destinations {
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
	}
	switch {
	case !asked:
		return "not asked"
	case known == 0:
		return "not known"
	case differ > 0:
		return fmt.Sprintf("%d of %d DIFFER", differ, known)
	default:
		return fmt.Sprintf("%d equal", known)
	}
}

func write(file, text string) error {
	if file == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // a page of the documentation
}
