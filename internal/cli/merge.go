package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/rendezvous"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// mergeSettings are the flags of perfmq merge.
type mergeSettings struct {
	Result  string `set:"result" arg:"DIR" help:"write the joined result into the new folder DIR"`
	Follow  bool   `set:"follow" help:"judge each message while the runs write their folders"`
	Partial bool   `set:"partial" help:"join although shards are missing or were killed"`

	Thresholds []threshold.Threshold `set:"threshold" arg:"DEMAND" help:"another demand; may be repeated"`
	Reports    []string              `set:"report" needs:"result" arg:"FORMAT=FILE" help:"write a report"`

	Address string `set:"rendezvous" needs:"result" arg:"[HOST]:PORT" check:"listen" help:"wait for the shards there"`
	Shards  int    `set:"shards" needs:"rendezvous" range:"1..1000" help:"number of shards to wait for"`

	TokenFile string `set:"token-file" needs:"rendezvous" arg:"FILE" help:"FILE with the token of all loads"`
	WebConfig string `set:"rendezvous-web-config" needs:"rendezvous" arg:"FILE" help:"FILE with TLS, of Prometheus"`

	Timeout time.Duration `set:"rendezvous-timeout" needs:"rendezvous" none:"5m" least:"1s" help:"limit to connect"`

	Web string `set:"web" needs:"rendezvous" arg:"[HOST]:PORT" check:"listen" help:"serve a live page of all shards"`
}

// mergeCommand is perfmq merge.
func (a *app) mergeCommand() *cobra.Command {
	s := &mergeSettings{}
	return a.withSettings(&cobra.Command{
		Use: "merge [flags] DIR...", Short: "Join the results of several load hosts into one",
	}, s, func(args []string, errs []error) error { return a.runMerge(s, args, errs) })
}

// runMerge is perfmq merge, with the mistakes in the values of its flags.
func (a *app) runMerge(s *mergeSettings, dirs []string, errs []error) error {
	m := &meeting{mergeSettings: s}
	switch {
	case s.Address != "":
		errs = append(errs, a.checkMeeting(m, dirs)...)
	case len(dirs) == 0 && len(errs) == 0:
		errs = append(errs, plan.Needs("perfmq merge", "DIR..."))
	case s.Follow && (s.Result != "" || s.Partial):
		errs = append(errs, plan.Wrong("join the results when the runs have ended",
			"--follow does not work with --result, --report and --partial"))
	}
	errs = append(errs, notFolders(dirs)...)
	for _, text := range s.Reports {
		format, file, _ := strings.Cut(text, "=")
		if !slices.Contains([]string{"html", "markdown", "csv", "junit"}, format) {
			errs = append(errs, plan.Wrong("such as --report html=report.html",
				"--report=%s: must be FORMAT=FILE, of html, markdown, csv or junit", config.Quoted(text)))
		}
		errs = append(errs, noReport(file)...)
	}
	if m := config.NoPlace("--result", s.Result); m != nil {
		errs = append(errs, m)
	}
	switch {
	case len(errs) > 0:
		return a.usage(errs...)
	case s.Address != "":
		a.work = func() int { return a.meet(m) }
	case s.Follow:
		a.work = func() int { return a.followRuns(dirs, s.Thresholds) }
	default:
		joined, err := merge.Read(lastRuns(dirs), merge.Options{
			Partial: s.Partial, Thresholds: s.Thresholds, Secrets: a.secrets,
		})
		if err != nil {
			return a.usage(resultMistake(err))
		}
		return a.writeMerged(joined, s)
	}
	return nil
}

// untilDone carries work out, and calls the next of the functions at each signal. It reports whether one came.
func (a *app) untilDone(work func(), atSignal ...func()) (interrupted bool) {
	done := make(chan struct{})
	go func() {
		work()
		close(done)
	}()
	for {
		select {
		case <-done:
			return interrupted
		case <-a.Signals:
			if interrupted = true; len(atSignal) > 0 {
				atSignal[0]()
				atSignal = atSignal[1:]
			}
		}
	}
}

// followRuns judges messages while the runs in the folders continue, until all have ended, a threshold fails, or a
// signal comes. It prints what it finds.
func (a *app) followRuns(dirs []string, thresholds []threshold.Threshold) int {
	for i := range thresholds {
		thresholds[i].Abort = true
	}
	f := merge.Follower{Dirs: dirs, Thresholds: thresholds, Say: func(text string) {
		_, _ = fmt.Fprintln(a.Stdout, a.secrets.Line(text)) // the end says it if it cannot be written
	}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var v *verify.Result
	var broken *threshold.Threshold
	var err error
	interrupted := a.untilDone(func() { v, broken, err = f.Follow(ctx) }, stop)
	if err != nil {
		_ = a.usage(resultMistake(err)) // always errReported
		return a.status
	}
	_, err = a.printVerification(a.Stdout, v, verify.Allow{Disorder: true})
	switch {
	case broken != nil:
		a.errors.write("threshold: "+broken.String()+": FAILED", "")
		return result.StatusThreshold
	case err != nil:
		return a.status
	case interrupted:
		return result.StatusInterrupted
	default:
		return result.StatusOK
	}
}

// writeMerged prints a joined result and writes its folder and reports.
func (a *app) writeMerged(m *result.Result, s *mergeSettings) error {
	if err := merge.Text(a.Stdout, m, a.secrets.Line); err != nil {
		return a.notWritten(err)
	}
	if s.Result != "" {
		if err := merge.Write(s.Result, m); err != nil {
			return a.notWritten(fileNotWritten("--result", err))
		}
	}
	a.printBroken(m.Thresholds) // the status is that of the result
	status := m.Outcome.Status
	if status == result.StatusOK && !m.Outcome.Success {
		status = result.StatusFailed
	}
	for _, text := range s.Reports {
		format, file, _ := strings.Cut(text, "=")
		if a.writeReport([]string{s.Result}, format, file) != nil { // it was printed
			status = result.Graver(status, result.StatusFailed)
		}
	}
	a.status = status
	return nil
}

// meeting is a rendezvous that is ready to begin.
type meeting struct {
	*mergeSettings
	host *rendezvous.Host
	web  listen.Web
	live merge.Live
}

// checkMeeting makes the rendezvous, and returns the mistakes in its flags.
func (a *app) checkMeeting(m *meeting, args []string) (errs []error) {
	if m.Follow || m.Partial {
		errs = append(errs, plan.Wrong("the results that are there are always joined",
			"--rendezvous does not work with --follow and --partial"))
	}
	if len(args) > 0 {
		errs = append(errs, plan.Wrong("the shards hand their results over", "--rendezvous takes no folders"))
	}
	if m.Shards == 0 {
		errs = append(errs, plan.Needs("--rendezvous", "--shards"))
	}
	token, err := config.ReadToken(m.TokenFile, a.secrets)
	if err != nil {
		errs = append(errs, err)
	}
	if m.web, err = listen.ReadWeb(m.WebConfig); err != nil {
		errs = append(errs, plan.Wrong(driver.HintOf(err), "--rendezvous-web-config: %v", err))
	}
	m.host = &rendezvous.Host{
		Shards: m.Shards, Token: token, Version: a.Version.Number, Dir: m.Result,
		Timeout: cmp.Or(m.Timeout, 5*time.Minute),
		Say:     func(text string) { a.errors.say("note: " + text) }, Turn: m.live.Turn,
	}
	for i := range m.Shards {
		dir := filepath.Join(m.Result, rendezvous.Folder(i+1))
		if _, err := os.Lstat(dir); err == nil {
			errs = append(errs, plan.Wrong("name another folder", "--result %s: %s is there already", m.Result, dir))
			break
		}
		m.live.Tails = append(m.live.Tails, &result.Tail{Dir: dir})
	}
	return errs
}

// meet serves a rendezvous until all shards have ended, and joins their results.
func (a *app) meet(m *meeting) int {
	if err := os.MkdirAll(m.Result, 0o777); err != nil { //nolint:gosec // as far as the process' mask lets it
		a.errors.print(fileNotWritten("--result", err))
		return result.StatusFailed
	}
	show := func(*result.Result) {}
	if m.Web != "" {
		feed, err := page.NewFeed(m.Web)
		if err != nil {
			a.errors.print(err)
			return result.StatusUsage
		}
		defer func() { a.errors.print(feed.Close()) }()
		a.errors.say("note: the page of all shards is at http://" + feed.Address() + "/")
		m.live.Page, show = feed, func(r *result.Result) { _ = feed.Finish(*r) }
	}
	l, err := listen.TCP(context.Background(), "the rendezvous", "--rendezvous", m.Address)
	if err != nil {
		a.errors.print(err)
		return result.StatusUsage
	}
	m.host.Open()
	server := m.web.Serve(l, m.host.Handler())
	defer func() { a.errors.print(server.Close()) }()
	a.errors.say("note: the rendezvous of " + words.Plural(m.Shards, "shard") + " is at " + m.web.URL(server.Addr()))
	if !m.web.TLS && !listen.IsLoopback(server.Addr().String()) {
		a.errors.say("note: the token travels without TLS: add --rendezvous-web-config in networks of others")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	interrupted := a.untilDone(func() { m.host.Run(ctx) }, func() {
		a.errors.say("stopping: all shards end; press Ctrl-C again to leave them")
		m.host.End("the rendezvous was interrupted")
	}, cancel)
	e := m.host.Result()
	joined, err := merge.Read(e.Dirs, merge.Options{
		Met: true, Partial: true, Thresholds: m.Thresholds, Secrets: a.secrets, Problems: e.Problems,
		Aborted: m.live.Broken, Interrupted: interrupted,
	})
	switch {
	case err == nil:
		show(joined)
		a.errors.print(a.writeMerged(joined, m.mergeSettings))
		return a.status
	case interrupted:
		e.Status = result.StatusInterrupted
	}
	a.errors.print(err)
	return cmp.Or(e.Status, result.StatusFailed)
}
