package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/config"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/merge"
	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/rendezvous"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// meetingSettings are the flags of perfmq merge for a rendezvous.
type meetingSettings struct {
	Address   string        `set:"rendezvous" arg:"[HOST]:PORT" help:"wait for the shards (--rendezvous of each load), begin and end them together, and join their results; :8443 is on loopback"`
	Shards    int           `set:"shards" needs:"rendezvous" range:"1..1000" help:"number of shards to wait for"`
	TokenFile string        `set:"token-file" needs:"rendezvous" arg:"FILE" help:"FILE with the token that each load must have"`
	WebConfig string        `set:"rendezvous-web-config" needs:"rendezvous" arg:"FILE" help:"TLS by a web configuration file of Prometheus"`
	Timeout   time.Duration `set:"rendezvous-timeout" default:"5m" least:"1s" help:"time limit for all shards to come and to connect"`
	Web       string        `set:"web" needs:"rendezvous" arg:"[HOST]:PORT" help:"serve a live page of all shards; :8080 is on loopback"`
}

// meeting is a rendezvous that is ready to begin.
type meeting struct {
	meetingSettings
	host       *rendezvous.Host
	web        listen.Web
	dir        string
	reports    []string
	thresholds []threshold.Threshold
	live       merge.Live
	feed       *page.Feed // nil if none is served
	why        *merge.Abort
}

// given reports whether a flag of a rendezvous is given.
func (m *meeting) given(in *input) bool {
	return m.Address != "" || len(in.given.Flags) > 0
}

// runMeeting is perfmq merge --rendezvous.
func (a *app) runMeeting(m *meeting, args, demands []string, others bool, errs []error) error {
	for _, unmet := range plan.Unmet(&m.meetingSettings) {
		errs = append(errs, unmet)
	}
	if others {
		errs = append(errs, plan.Wrong("the results that are there are always joined",
			"--rendezvous does not work with --follow and --partial"))
	}
	thresholds, wrong := checkMerge(m.dir, demands, m.reports)
	m.thresholds, errs = thresholds, append(errs, wrong...)
	if m.Address != "" {
		errs = append(errs, a.checkMeeting(m, args)...)
	} else if len(errs) == 0 { // it alone has a default
		errs = append(errs, plan.Needs("--rendezvous-timeout", "--rendezvous"))
	}
	if len(errs) > 0 {
		return a.usage(errs...)
	}
	a.work = func() int { return a.meet(m) }
	return nil
}

// checkMeeting returns the mistakes in the flags of a rendezvous.
func (a *app) checkMeeting(m *meeting, args []string) (errs []error) {
	if len(args) > 0 {
		errs = append(errs, plan.Wrong("the shards hand their results over", "--rendezvous takes no folders"))
	}
	if m.Shards == 0 {
		errs = append(errs, plan.Needs("--rendezvous", "--shards"))
	}
	if m.dir == "" {
		errs = append(errs, plan.Needs("--rendezvous", "--result"))
	}
	for flag, address := range map[string]string{"--rendezvous": m.Address, "--web": m.Web} {
		if err := listen.Check(address); address != "" && err != nil {
			errs = append(errs, plan.Wrong("write HOST:PORT, or :PORT", "%s %s: %v", flag, config.Quoted(address), err))
		}
	}
	token, err := config.ReadToken(m.TokenFile, a.secrets)
	if err != nil {
		errs = append(errs, err)
	}
	if m.web, err = listen.ReadWeb(m.WebConfig); err != nil {
		errs = append(errs, plan.Wrong(driver.HintOf(err), "--rendezvous-web-config: %v", err))
	}
	m.host = &rendezvous.Host{
		Shards: m.Shards, Token: token, Version: a.Version.Number, Dir: m.dir, Timeout: m.Timeout,
		Say: func(text string) { a.errors.say("note: " + text) },
	}
	for i := range m.Shards {
		dir := filepath.Join(m.dir, rendezvous.Folder(i+1))
		if _, err := os.Lstat(dir); err == nil {
			errs = append(errs, plan.Wrong("name another folder", "--result %s: %s is there already", m.dir, dir))
			break
		}
		m.live.Tails = append(m.live.Tails, &result.Tail{Dir: dir})
	}
	return errs
}

// meet serves a rendezvous until all shards have ended, and joins their results.
func (a *app) meet(m *meeting) int {
	if err := os.MkdirAll(m.dir, 0o777); err != nil { //nolint:gosec // as far as the process' mask lets it
		a.errors.print(fileNotWritten("--result", err))
		return result.StatusFailed
	}
	l, err := listen.TCP(context.Background(), "the rendezvous", "--rendezvous", m.Address)
	if err == nil && m.Web != "" {
		if m.feed, err = page.NewFeed(m.Web); err != nil {
			_ = l.Close()
		}
	}
	if err != nil {
		a.errors.print(err)
		return result.StatusUsage
	}
	m.host.Open()
	m.host.Turn = func(ended func(int) bool) string { return a.turn(m, ended) }
	m.live.Begin, m.live.Row = m.begin, m.row
	server := m.web.Serve(l, m.host.Handler())
	a.errors.say("note: the rendezvous of " + words.Plural(m.Shards, "shard") + " is at " + m.web.URL(server.Addr()))
	if !m.web.TLS && !listen.IsLoopback(server.Addr().String()) {
		a.errors.say("note: the token travels without TLS: add --rendezvous-web-config in networks of others")
	}
	if m.feed != nil {
		a.errors.say("note: the page of all shards is at http://" + m.feed.Address() + "/")
	}
	status := a.joinMet(m, a.awaitShards(m.host))
	if m.feed != nil {
		a.errors.print(m.feed.Close())
	}
	a.errors.print(server.Close())
	return status
}

// awaitShards lets the shards run until all have ended, and reports whether a signal ended them.
func (a *app) awaitShards(h *rendezvous.Host) (interrupted bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	go func() {
		h.Run(ctx)
		close(over)
	}()
	for {
		select {
		case <-over:
			return interrupted
		case <-a.Signals:
			if interrupted {
				cancel()
				continue
			}
			interrupted = true
			a.errors.say("stopping: all shards end; press Ctrl-C again to leave them")
			h.End("the rendezvous was interrupted")
		}
	}
}

// turn looks at the rows that have come.
func (a *app) turn(m *meeting, ended func(int) bool) string {
	for _, t := range m.host.Aborts()[len(m.live.Aborts):] {
		parsed, err := threshold.Parse(t.Threshold)
		parsed.Abort = err == nil
		m.live.Aborts = append(m.live.Aborts, merge.Abort{Step: t.Step, Threshold: parsed})
	}
	broken, err := m.live.Turn(ended)
	switch {
	case err != nil:
		return "what a shard sent is no result: " + err.Error()
	case broken != nil && m.why == nil:
		m.why = broken
		text := "threshold failed: " + broken.String()
		a.errors.say("stopping: " + text)
		return text
	}
	return ""
}

func (m *meeting) begin(head result.Head) {
	if m.feed != nil {
		_ = m.feed.Start(head)
	}
}

func (m *meeting) row(row *result.Row, soFar *stats.Summary) {
	if m.feed != nil {
		m.feed.Look(&stats.Snapshot{Row: *row, SoFar: soFar})
		_ = m.feed.Row(*row)
	}
}

// joinMet joins what has come.
func (a *app) joinMet(m *meeting, interrupted bool) int {
	e := m.host.Result()
	e.Dirs = slices.DeleteFunc(e.Dirs, func(dir string) bool {
		_, err := result.Read(dir)
		if err != nil {
			e.Problems = append(e.Problems, "left out: "+err.Error())
			e.Status = result.Graver(e.Status, result.StatusFailed)
		}
		return err != nil
	})
	if len(e.Dirs) == 0 {
		for _, problem := range e.Problems {
			a.errors.write(problem, "")
		}
		if interrupted {
			return result.StatusInterrupted
		}
		return cmp.Or(e.Status, result.StatusFailed)
	}
	joined, err := merge.Read(e.Dirs, merge.Options{
		Partial: true, Thresholds: m.thresholds, Secrets: a.secrets, Problems: e.Problems, Aborted: m.why != nil,
		Interrupted: interrupted,
	})
	if err != nil {
		_ = a.usage(resultMistake(err)) // always errReported
		return result.StatusFailed
	}
	if m.feed != nil {
		_ = m.feed.Finish(*joined)
	}
	if err := a.writeMerged(joined, m.dir, m.reports); err != nil && !errors.Is(err, errReported) {
		a.errors.print(err)
	}
	return a.status
}
