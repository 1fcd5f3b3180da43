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

// acceptance is one call of the command acceptance.
type acceptance struct {
	scale string
	limit time.Duration
	long  bool
}

func acceptanceCommand() command {
	a := new(acceptance)
	return command{
		name: "acceptance", help: "the shipped scenarios at full size, on real brokers",
		columns: []string{"scenario", "broker", "took", "sent", "received", "thresholds passed", "broker's count"},
		flags: func(fs *flag.FlagSet) {
			fs.StringVar(&a.scale, "scale", "1", "shorten the scenarios by this factor, as perfmq run --scale does")
			fs.DurationVar(&a.limit, "limit", time.Hour, "end a scenario after this time")
			fs.BoolVar(&a.long, "long", false, "run those that last longer than ten minutes, too")
		},
		trials: a.trials,
	}
}

// trials has one for each shipped scenario, with a broker of its own.
func (a *acceptance) trials(*session) (list []trial, err error) {
	shipped, err := config.Shipped(scenarios.FS())
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{"artemis", "activemq", "rocketmq"} {
		for _, info := range shipped {
			if kindOf(info.Name) != kind || slices.Contains(longOnes(), info.Name) && !a.long {
				continue
			}
			run := func(ctx context.Context, s *session) (rows []row, err error) {
				c, err := s.launch(ctx, kind)
				if err != nil {
					return nil, fmt.Errorf("start the broker: %w", err)
				}
				defer func() { err = errors.Join(err, c.close()) }()
				o, err := a.carryOut(ctx, s, info.Name, c)
				return []row{o.row()}, err
			}
			list = append(list, trial{name: info.Name, run: run})
		}
	}
	return list, nil
}

// longOnes are the scenarios that take more than ten minutes on a small machine.
func longOnes() []string {
	return []string{
		"activemq/overnight", "activemq/backlog", "activemq/restart", "activemq/drain",
		"activemq/fifty-to-hundred", "activemq/connections", "activemq/connections-size", "activemq/producers",
		"soak/artemis", "soak/stomp", "soak/rocketmq", "rocketmq/matrix", "rocketmq/matrix-both",
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

// arguments returns the arguments with which perfmq runs a scenario on a broker. stop ends the helper that they need.
func (c *cluster) arguments(ctx context.Context, name string) (args []string, stop func()) {
	stop = func() {}
	if rocket := c.endpoints[0].protocol == "rocketmq"; rocket {
		return []string{"--url", c.endpoints[0].url()}, stop
	}
	amqp, stomp := c.endpoint("amqp").url(), c.endpoint("stomp").url()
	args = c.endpoints[0].login()
	switch {
	case strings.Contains(name, "cross"):
		return append(args, "--set", "amqp="+amqp, "--set", "stomp="+stomp), stop
	case kindOf(name) == "activemq":
		args = append(args, "--url", stomp, "--management-url", fmt.Sprint(c.endpoints[0].settings["management-url"]))
	case strings.HasSuffix(name, "/stomp"):
		return append(args, "--url", stomp), stop
	default:
		return append(args, "--url", amqp), stop
	}
	if name != "activemq/restart" {
		return args, stop
	}
	restarts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		err := c.primary.Stop()
		if err == nil {
			err = c.primary.Start(ctx)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	return append(args, "--set", "restart=curl -fsS "+restarts.URL), restarts.Close
}

// carryOut runs one scenario.
func (a *acceptance) carryOut(ctx context.Context, s *session, name string, c *cluster) (outcome, error) {
	dir := filepath.Join(s.dir, strings.ReplaceAll(name, "/", "-"))
	if err := os.RemoveAll(dir); err != nil { // of a run that was not judged
		return outcome{}, err
	}
	extra, stop := c.arguments(ctx, name)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	args := append([]string{"run", "@" + name, "--result", dir, "--silent", "--scale", a.scale}, extra...)
	cmd := s.command(ctx, args...)
	cmd.WaitDelay = time.Minute
	began := time.Now()
	text, err := cmd.CombinedOutput()
	o := outcome{scenario: name, broker: c.title, took: time.Since(began), output: tail(string(text))}
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

// finished: each run came to its end.
func (o *outcome) finished() bool {
	if o.found != nil && !o.found.Complete {
		return false
	}
	return len(o.results) > 0 && !slices.ContainsFunc(o.results, func(r *result.Result) bool { return !r.Complete })
}

// total returns the numbers of messages sent and received.
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
		if r.Tester.Crowded() {
			return busyText(&r.Tester)
		}
	}
	return ""
}

// thresholds counts the thresholds that passed, and lists the others. A search tries rates at which some fail.
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

// row makes a scenario that did not succeed a mistake, with the end of its output. A threshold on a rate and a search
// are about the machine, too: they are no mistakes.
func (o *outcome) row() row {
	sent, received := o.total()
	r := row{State: promiseKept, Verdict: o.verdict(), Cells: []string{
		o.scenario, o.broker, o.took.Round(time.Second).String(), fmt.Sprint(sent), fmt.Sprint(received),
		o.thresholds(), o.counts(),
	}}
	machine := o.status == 3 || o.found != nil && o.found.Kind() == record.Undecided
	switch {
	case !o.finished() || o.status != 0 && !machine || sent == 0 || strings.Contains(o.counts(), "DIFFER"):
		r.State, r.Mistakes = perfmqWrong, []string{o.verdict() + "\n" + o.output}
	case o.status == 3 && o.disturbed() != "":
		r.State = notJudged
	}
	return r
}
