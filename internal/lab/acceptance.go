//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/scenarios"
)

// outcome is the outcome of one scenario.
type outcome struct {
	scenario, broker string
	took             time.Duration
	status           int
	results          []*result.Result // those of all runs
	found            *record.Search   // of a search
	output           string           // the end of the printed output
}

// acceptanceCommand carries out the shipped scenarios, each on its broker, and writes the outcomes as a page: whether
// all thresholds passed, and whether the broker's counters equal perfmq's. It writes no page if a scenario did not end
// by itself. Scenarios of one kind of broker run one after the other on one broker.
func acceptanceCommand(ctx context.Context, args []string) (err error) {
	var scale string
	var limit time.Duration
	var long bool
	s, err := open("acceptance", args, func(fs *flag.FlagSet) {
		fs.StringVar(&scale, "scale", "1", "shorten the scenarios by this factor, as perfmq run --scale does")
		fs.DurationVar(&limit, "limit", time.Hour, "end a scenario after this time")
		fs.BoolVar(&long, "long", false, "run those that last longer than ten minutes, too")
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	shipped, err := config.Shipped(scenarios.FS())
	if err != nil {
		return err
	}
	byKind := map[string][]string{}
	for _, info := range shipped {
		if s.only.MatchString(info.Name) && (long || !slices.Contains(longOnes(), info.Name)) {
			byKind[kindOf(info.Name)] = append(byKind[kindOf(info.Name)], info.Name)
		}
	}
	from, err := s.circumstances(ctx)
	if err != nil {
		return err
	}
	from += " Scale: " + scale + "."
	if only := s.only.String(); only != "" {
		from += fmt.Sprintf(" Only scenarios whose names match `%s` were run.", only)
	}
	var outcomes []outcome
	for _, kind := range serverKinds() {
		if len(byKind[kind]) == 0 {
			continue
		}
		list, err := s.onBroker(ctx, kind, byKind[kind], scale, limit)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, list...)
	}
	text, err := acceptancePage(outcomes, from)
	if err != nil {
		return errors.Join(err, failedScenarios(outcomes))
	}
	return errors.Join(write(s.out, text), failedScenarios(outcomes))
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
func (s *session) onBroker(
	ctx context.Context, kind string, names []string, scale string, limit time.Duration,
) (list []outcome, err error) {
	b, err := s.serve(ctx, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, name := range names {
		extra, stop := b.arguments(ctx, name)
		o, err := s.scenario(ctx, name, limit, append([]string{"--scale", scale}, extra...))
		stop()
		if err != nil {
			return list, err
		}
		o.broker = b.title
		list = append(list, o)
		fmt.Fprintf(os.Stderr, "%s on %s: %s after %s\n", name, b.title, o.verdict(), o.took.Round(time.Second))
	}
	return list, nil
}

// arguments returns the arguments with which perfmq runs a scenario on a broker. stop ends the helper that they need.
func (b *server) arguments(ctx context.Context, name string) (args []string, stop func()) {
	login := []string{"--user", brokertest.User, "--password", brokertest.Password}
	switch {
	case b.rocketmq != nil:
		return []string{"--url", b.urls["rocketmq"]}, func() {}
	case strings.Contains(name, "cross"):
		return append(login, "--set", "amqp="+b.urls["amqp"], "--set", "stomp="+b.urls["stomp"]), func() {}
	case b.activemq != nil:
		args = append(login, "--url", b.urls["stomp"], "--management-url", b.activemq.ManagementURL())
		if name != "activemq/restart" {
			return args, func() {}
		}
		restarts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			err := b.activemq.Stop()
			if err == nil {
				err = b.activemq.Start(ctx)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
		return append(args, "--set", "restart=curl -fsS "+restarts.URL), restarts.Close
	case strings.HasSuffix(name, "/stomp"):
		return append(login, "--url", b.urls["stomp"]), func() {}
	default:
		return append(login, "--url", b.urls["amqp"]), func() {}
	}
}

// scenario carries one scenario out.
func (s *session) scenario(ctx context.Context, name string, limit time.Duration, extra []string) (outcome, error) {
	dir := filepath.Join(s.dir, strings.ReplaceAll(name, "/", "-"))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := s.command(ctx, append([]string{"run", "@" + name, "--result", dir, "--silent"}, extra...)...)
	cmd.WaitDelay = time.Minute
	began := time.Now()
	text, err := cmd.CombinedOutput()
	o := outcome{scenario: name, took: time.Since(began), output: tail(string(text))}
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
		o.found, folders = found, nil
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
	case o.status == 3 && o.disturbed() != "":
		return "not judged: " + o.disturbed()
	case o.status == 3:
		return "a threshold failed"
	default:
		return fmt.Sprintf("failed, status %d", o.status)
	}
}

// disturbed returns how busy other programs kept the machine during a run; empty if they did not disturb it.
func (o *outcome) disturbed() string {
	for _, r := range o.results {
		if h := healthOf(r); h.Crowded() {
			return busyText(&h)
		}
	}
	return ""
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
	return text
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

// acceptancePage returns the outcomes as Markdown. It fails if a scenario did not come to its end.
func acceptancePage(outcomes []outcome, from string) (string, error) {
	var b strings.Builder
	b.WriteString("# Shipped scenarios on real brokers\n\n" +
		"`make acceptance` carries out the scenarios inside the binary at full size, each on its broker, and writes this " +
		"page. *Broker's count* compares the\n" +
		"counters of the broker with those of perfmq, for each destination: messages added and messages acknowledged.\n\n" +
		from + "\n\n")
	tableRow(&b, "scenario", "broker", "took", "sent", "received", "verdict", "thresholds passed", "broker's count")
	b.WriteString("|" + strings.Repeat(" --- |", 8) + "\n")
	var unfinished []error
	for i := range outcomes {
		o := &outcomes[i]
		if !o.finished() {
			unfinished = append(unfinished, fmt.Errorf("no page: %s on %s: %s", o.scenario, o.broker, o.verdict()))
			continue
		}
		sent, received := o.total()
		tableRow(&b, o.scenario, o.broker, o.took.Round(time.Second).String(), fmt.Sprint(sent), fmt.Sprint(received),
			o.verdict(), o.thresholds(), o.counts())
	}
	if len(unfinished) > 0 {
		return "", errors.Join(unfinished...)
	}
	return b.String(), nil
}

// failedScenarios returns the scenarios that did not succeed, with the end of their output. A threshold on a rate and a
// search are about the machine, too: they are in the page, and no failure.
func failedScenarios(outcomes []outcome) error {
	var errs []error
	for i := range outcomes {
		o := &outcomes[i]
		sent, _ := o.total()
		machine := o.status == 3 || o.found != nil && o.found.Kind() == record.Undecided
		if !o.finished() || o.status != 0 && !machine || sent == 0 || strings.Contains(o.counts(), "DIFFER") {
			errs = append(errs, fmt.Errorf("%s on %s: %s\n%s", o.scenario, o.broker, o.verdict(), o.output))
		}
	}
	return errors.Join(errs...)
}
