// Package run is the life of a run: it opens the outputs and, if asked for, an embedded broker, lets the engine carry
// out the plan while it looks at signals, and closes everything. Messages to a person go through the functions that it
// is given. [Ending] is the end of the run as data, with the exit status; package cli puts it into words.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/rendezvous"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Run is a valid plan with its requirements beside its workers.
type Run struct {
	Plan    *plan.Plan
	Drivers plan.Drivers
	Side    brokerside.Config // the watch of the broker and its host
	Outputs Outputs
	Meeting rendezvous.Options // without a URL, the run begins by itself

	// CommandLine is the user's command, for the result.
	CommandLine string

	Secrets *safetext.Secrets
	Version Version
	Listen  listen.Listener // opens the port of the metrics; nil for [listen.TCP]
	Stdout  io.Writer
	Stderr  io.Writer        // for the console, if standard output is for JSON
	Environ []string         // as of os.Environ: the user's language and terminal
	Signals <-chan os.Signal // signals that end the run; nil for none
	KeepGC  bool             // the garbage collector is set by the user
	// Say tells the user something that is no error, and OnError at once of an output that failed.
	Say     func(string)
	OnError func(error)

	metrics *report.Prometheus // nil if none are served or written
	page    *page.Feed         // nil if none is served
	told    bool               // a terminal shows problems and thresholds

	endpoints map[*plan.Broker]*engine.Endpoint
	watched   *brokerside.Watch  // nil if nothing is watched
	member    *rendezvous.Member // nil if the run begins by itself
	temporary string             // folder of its result, which the rendezvous gets; empty if the user named one
	fan       *report.Fan
	embedded  []*broker.Broker
}

// Do carries the run out.
func (r *Run) Do() (e Ending) {
	r.Plan.MakeBodies()
	stdout := newPipeWriter(r.Stdout)
	if r.Meeting.URL != "" {
		if err, ended := r.meet(stdout.halt); err != nil || !ended {
			return Ending{Abandoned: !ended, Err: err}
		}
	}
	r.Plan.DrawSeed()
	if r.Plan.Threads > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(r.Plan.Threads))
	}
	if !r.KeepGC {
		defer tendGC()()
	}
	r.endpoints = engine.Reach(r.Plan, r.Drivers)
	e, ended := UntilSignal(r.Signals, func() Ending { return r.openOutputs(stdout) })
	e.Abandoned = !ended
	defer func() { r.leave(&e) }()
	if !ended || e.Err != nil {
		return e
	}
	for _, b := range r.embedded {
		defer b.Close()
		if faults := b.Store().Faults(); faults != (store.Faults{}) && !r.Outputs.Silent {
			defer func() { r.Say("note: " + describeFaults(faults, b.Store().FaultCounts())) }()
		}
	}
	r.sayNotes()
	drain := r.Plan.DrainTimeout
	if r.Plan.Roles() == plan.Consumer {
		drain = 0 // a consumer has nothing in flight
	}
	var over atomic.Bool
	e, interrupted, waited := supervise(r.Signals, stdout.halt, r.Say, drain, &over,
		func(ctx context.Context, stop <-chan struct{}) Ending {
			return r.runEngine(ctx, stop, &over)
		})
	e.Opened, e.Interrupted, e.Abandoned, e.Told = true, interrupted, !waited, r.told
	return e
}

// openOutputs opens the outputs and the embedded brokers. It may wait: for a reader of a pipe. After an error, it
// closes the opened parts again.
func (r *Run) openOutputs(stdout io.Writer) (e Ending) {
	if r.Outputs.VerifyFile != "" { // that of a result is in a folder of the run's own
		err := os.MkdirAll(filepath.Dir(r.Plan.VerifyFile), 0o777) //nolint:gosec // as far as the process' mask lets it
		if err = cmp.Or(err, verify.Probe(r.Plan.VerifyFile)); err != nil {
			if pe, ok := errors.AsType[*fs.PathError](err); ok {
				err = fmt.Errorf("%s: %w", pe.Path, pe.Err)
			}
			e.Outputs, e.Err = true, plan.Wrong("name a file that can be written", "--verify-file: %v", err)
			return e
		}
	}
	if r.fan, e.Err = r.openReporters(stdout); e.Err != nil {
		e.Outputs = true
		return e
	}
	switch e.Err = r.openWatch(); {
	case e.Err != nil:
		e.Outputs = true
	case r.Plan.Embedded:
		r.embedded, e.Err = startEmbedded(r.Plan, r.endpoints)
	default:
		e.Err = openManagement(r.Plan, r.endpoints)
	}
	if e.Err != nil {
		for _, b := range r.embedded {
			b.Close()
		}
		r.watched.Stop()
		e.Err = errors.Join(e.Err, r.fan.Close())
	}
	return e
}

// sayNotes prints notes on the run before the load begins.
func (r *Run) sayNotes() {
	if r.Outputs.Silent {
		return
	}
	if r.Outputs.Metrics != "" {
		r.Say("note: metrics at " + r.metrics.URL())
	}
	if r.page != nil {
		r.Say("note: the page of this run is at http://" + r.page.Address() + "/")
	}
	for _, b := range r.embedded {
		r.Say("note: " + AboutEmbedded + "; it listens at " + strings.Join(listening(b), ", "))
	}
	for _, note := range r.Plan.Notes() {
		r.Say("note: " + note)
	}
}

// runEngine runs the engine and closes the outputs, after lingering if there was a load: over is true meanwhile.
func (r *Run) runEngine(ctx context.Context, stop <-chan struct{}, over *atomic.Bool) (e Ending) {
	defer r.watched.Stop()
	config := &engine.Config{Plan: r.Plan, Endpoints: r.endpoints, Side: r.watched, SoFar: r.page != nil}
	if r.member != nil {
		config.Plan, config.Meeting = r.Plan.Unjudged(), r.member
	}
	if r.Outputs.Result != "" {
		config.Trace = result.MaxTraceEvents
	}
	e.Summary, e.Err = engine.Run(ctx, stop, config, r.fan)
	if e.Summary != nil && r.Outputs.Linger > 0 {
		over.Store(true)
		r.linger(ctx, stop)
		over.Store(false)
	}
	e.Closing = r.fan.Close()
	return e
}

// linger serves the final metrics for a while: until ctx ends, or until stop closes if it has not yet.
func (r *Run) linger(ctx context.Context, stop <-chan struct{}) {
	r.Say("serving the final metrics for " + r.Outputs.Linger.String() + "; press Ctrl-C to end")
	select {
	case <-stop:
		stop = nil // that was the end of the run
	default:
	}
	select {
	case <-time.After(r.Outputs.Linger):
	case <-stop:
	case <-ctx.Done():
	}
}

// Ending is the end of a run.
type Ending struct {
	Opened  bool           // outputs and embedded brokers were opened; otherwise a signal or Err is the reason
	Outputs bool           // Err is of the outputs: one could not be opened
	Summary *stats.Summary // nil if no load was made; Err is the reason
	Err     error          // something could not begin, or the results could not be reported
	Closing error          // of the outputs
	// Interrupted: a signal, or the end of the reader of the standard output, asked for the end.
	Interrupted bool
	// Abandoned: the user did not wait for the end. Nothing else is known.
	Abandoned bool
	// Told: a summary on a terminal shows the problems and the thresholds that failed.
	Told bool
}

// Ended reports whether the user wanted the run to end before its plan did.
func (e *Ending) Ended() bool { return e.Interrupted || e.Abandoned }

// Finished reports whether the load ended by itself and all outputs were written.
func (e *Ending) Finished() bool {
	return e.Summary != nil && !e.Ended() && e.Err == nil && e.Closing == nil
}

// Status returns the exit status of the run.
func (e *Ending) Status() int {
	status := result.StatusOK
	switch {
	case e.Abandoned:
		return result.StatusInterrupted
	case e.Err == nil:
	case e.Outputs:
		status = result.StatusUsage
	case !e.Opened:
		status = result.StatusConnect
	case e.Summary == nil:
		status = startStatus(e.Err, e.Interrupted)
	default:
		status = result.StatusFailed
	}
	switch s := e.Summary; {
	case s == nil:
	case !s.Outcome.Success:
		status = result.StatusFailed
	case status == result.StatusOK && threshold.Fail(s.Thresholds):
		status = result.StatusThreshold
	}
	if e.Closing != nil && (status == result.StatusOK || status == result.StatusThreshold) {
		status = result.StatusFailed
	}
	if status == result.StatusOK && e.Interrupted {
		status = result.StatusInterrupted
	}
	return status
}

// startStatus returns the exit status for an error before a run began: never the status of a failed run.
func startStatus(err error, interrupted bool) int {
	var de *driver.Error
	if interrupted && !errors.As(err, &de) {
		return result.StatusInterrupted // the signal came while connecting
	}
	if errors.Is(err, engine.ErrReporters) {
		return result.StatusUsage
	}
	switch driver.ClassOf(err) {
	case driver.ClassNotFound, driver.ClassUnsupported, driver.ClassTooLarge:
		// the broker is reachable, but lacks the requested object or feature
		return result.StatusUsage
	default: // the broker or a proxy is unreachable, refuses the login or speaks another protocol
		return result.StatusConnect
	}
}

// openWatch finds the broker's process, endpoint and log that are to be watched.
func (r *Run) openWatch() error {
	if r.Side.IsZero() {
		return nil
	}
	w, err := brokerside.Open(context.Background(), r.Side)
	if err != nil {
		return plan.Wrong("name a process of this host and a readable log; for other hosts use --broker-metrics",
			"%v", err)
	}
	r.watched = w
	return nil
}

// openManagement lets the brokers with a management URL be asked over that. Sides with the same URL and login share an
// inspector.
func openManagement(p *plan.Plan, endpoints map[*plan.Broker]*engine.Endpoint) error {
	if !p.BrokerCount {
		return nil
	}
	opened := map[brokerside.Management]*brokerside.Inspector{}
	for _, b := range p.Brokers() {
		e := endpoints[b]
		if e.Management == "" {
			continue
		}
		m := brokerside.Management{
			URL: e.Management, User: cmp.Or(e.User, plan.User(e.URL)),
			Password: cmp.Or(e.Password, plan.Password(e.URL)), TLS: e.TLS,
		}
		if opened[m] == nil {
			h, err := m.Open()
			if err != nil {
				return err
			}
			opened[m] = h
		}
		e.Inspector = opened[m]
	}
	return nil
}

// The heap may grow by one second's allocations, but within these shares of the live heap. A load over a client library
// allocates much and has a small live heap: with Go's default of 100, a fifth of the processor time went into
// collections. Thousands of connections have a large live heap, and allocate next to nothing once they are open.
const (
	leastGCPercent = 25
	mostGCPercent  = 400
	leastGCRoom    = 16 << 20 // bytes
	mostGCRoom     = 64 << 20 // bytes, or as much as is live
)

// gcPercent returns the allowed growth of the heap in percent of the live heap. allocated are the bytes of the last
// second.
func gcPercent(live, allocated uint64) int {
	room := min(max(allocated, leastGCRoom), max(live, mostGCRoom))
	return int(min(max(100*room/max(live, 1), leastGCPercent), mostGCPercent)) //nolint:gosec // small
}

// tendGC adapts the garbage collector until stop is called, which restores its setting.
func tendGC() (stop func()) {
	before, now := debug.SetGCPercent(mostGCPercent), mostGCPercent
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		const perSecond = 4
		tick := time.Tick(time.Second / perSecond)
		var last [perSecond]uint64 // bytes allocated so far
		for i := 0; ; i++ {
			live, total := heap()
			if want := gcPercent(live, total-last[i%perSecond]); want < now*4/5 || want > now*5/4 {
				debug.SetGCPercent(want) // it stops the world for an instant
				now = want
			}
			last[i%perSecond] = total
			select {
			case <-tick:
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
		debug.SetGCPercent(before)
	}
}

// heap returns the bytes that were live at the last collection, and those allocated so far.
func heap() (live, total uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}

// describe describes the run as far as it is known before it begins.
func (r *Run) describe() (result.Head, error) {
	described, err := plan.JSON(r.Plan, r.Secrets.Field)
	if err != nil {
		return result.Head{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	var shard *result.Shard
	if own := r.Plan.Shard; !own.IsZero() {
		shard = new(result.Shard(own))
	}
	return result.Head{
		Shard:    shard,
		Plan:     described,
		Versions: result.Versions{Perfmq: r.Version.Number, Revision: r.Version.Revision, Go: runtime.Version()},
		Host: result.Host{
			Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Memory: stats.MachineMemory(),
		},
	}, nil
}

// newResult makes the folder of the result, with the plan.
func (r *Run) newResult(head result.Head) (report.Reporter, error) {
	text, err := plan.YAML(r.Plan, r.Secrets.Field, "perfmq "+r.Version.String(), r.CommandLine)
	if err != nil {
		return nil, err
	}
	to, err := report.NewResult(r.Outputs.Result, r.resultOptions(head))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(r.Outputs.Result, result.PlanFile), text, 0o600); err != nil {
		return nil, fmt.Errorf("write the plan: %w", errors.Join(err, to.Close()))
	}
	return to, nil
}

func (r *Run) resultOptions(head result.Head) report.ResultOptions {
	return report.ResultOptions{
		Head: head, ClientVersion: moduleVersion,
		OnError: r.OnError,
	}
}

// moduleVersion returns the version of the client library of that name, as this program was built with it.
func moduleVersion(library string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if strings.Contains(module.Path+"/", "/"+library+"/") {
			return module.Version
		}
	}
	return ""
}

// Version says which build this is.
type Version struct {
	Number   string   // 1.2.3
	Revision string   // of the source, if known
	Platform string   // compiler, operating system and processor
	Extra    []string // drivers beside perfmq's own
}

// NewVersion describes the running program, with the number of its version.
func NewVersion(number string) Version {
	v := Version{Number: number, Platform: fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Revision = revision(info)
	}
	return v
}

// revision returns the commit of a build in a checkout, or the commit or version of the module that go install fetched.
func revision(info *debug.BuildInfo) string {
	commit, changes := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			commit = setting.Value[:min(12, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			changes = "+changes"
		}
	}
	if commit != "" {
		return commit + changes
	}
	version := info.Main.Version
	if pseudo := strings.Split(version, "-"); len(pseudo) > 2 { // v0.0.0-TIME-COMMIT
		return pseudo[len(pseudo)-1]
	}
	return strings.TrimPrefix(version, "(devel)")
}

// String returns the version on one line.
func (v Version) String() string {
	text := v.Number
	if v.Revision != "" {
		text += " " + v.Revision
	}
	if v.Platform != "" {
		text += " (" + v.Platform + ")"
	}
	if len(v.Extra) > 0 {
		text += ", with " + strings.Join(v.Extra, ", ")
	}
	return text
}

// lastGrace bounds the end of a run after the second signal: each step of closing takes half a second then, and the
// summary is worth the wait. A third signal does not wait.
const lastGrace = 3 * time.Second

// UntilSignal calls f and returns its result, or false as soon as a signal comes; f then continues without effect.
func UntilSignal[T any](signals <-chan os.Signal, f func() T) (result T, ended bool) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case result = <-done:
		return result, true
	case <-signals:
		return result, false
	}
}

// supervise runs work and lets signals end it. The first one closes stop, the second cancels ctx; after a third, or
// lastGrace after the second, supervise returns without waiting for work. halts delivers another reason to end the run,
// like a first signal.
//
// drainTimeout bounds the wait for messages in flight then; 0 is no wait. When over is true, the run is complete, and
// work only waits for a signal: the first one ends it and interrupts nothing.
//
// It returns the result of work, and whether a signal, or a halt, came meanwhile. The third result is false
// if it did not wait for work.
func supervise[T any](
	signals <-chan os.Signal, halts <-chan string, say func(string), drainTimeout time.Duration, over *atomic.Bool,
	work func(ctx context.Context, stop <-chan struct{}) T,
) (outcome T, interrupted, waited bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	halt := sync.OnceFunc(func() { close(stop) })

	result := make(chan T, 1)
	go func() { result <- work(ctx, stop) }()

	var received int
	var hungUp bool
	var leave <-chan time.Time
	for {
		select {
		case outcome = <-result:
			return outcome, interrupted, true
		case why := <-halts:
			say("stopping: " + why)
			interrupted = true
			halt()
		case <-leave:
			return outcome, true, false
		case signal := <-signals:
			if signal == syscall.SIGHUP {
				if hungUp {
					continue // a terminal that goes sends one itself and has its shell send another
				}
				hungUp = true
			}
			received++
			if received == 1 && over.Load() {
				halt()
				continue
			}
			interrupted = true
			switch received {
			case 1:
				wait := ""
				if drainTimeout > 0 {
					wait = ": waiting up to " + drainTimeout.String() + " for messages in flight"
				}
				say("stopping" + wait + "; press Ctrl-C again to leave at once")
				halt()
			case 2:
				say("leaving at once")
				halt()
				cancel()
				leave = time.After(lastGrace)
			default:
				return outcome, true, false
			}
		}
	}
}

// pipeWriter tells when its output has no reader any more, as with "| head", and then swallows the rest: the run
// must still end in order and complete its files.
type pipeWriter struct {
	to   io.Writer
	halt chan string // gets it when the reader is gone; others may send, too

	mu     sync.Mutex
	broken bool
}

func newPipeWriter(to io.Writer) *pipeWriter { return &pipeWriter{to: to, halt: make(chan string, 2)} }

// Write passes p on. It is safe for concurrent use.
func (w *pipeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return len(p), nil
	}
	n, err := w.to.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		w.broken = true
		w.halt <- "standard output was closed"
		return len(p), nil
	}
	return n, err
}
