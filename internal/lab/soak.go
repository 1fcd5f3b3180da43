//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// soaked holds the result of a soak test, the log of the harness, and the count of the broker.
type soaked struct {
	title    string
	scenario string
	length   time.Duration
	status   int
	result   *result.Result
	events   []event
	left     int64 // messages in the queue at the end, by the broker; with lasting, all that it ever had
	lasting  bool
	problems []string
}

// event is a failure during a soak test.
type event struct {
	name string
	log  harnessLog
}

// soak is one call of the command soak.
type soak struct {
	length   time.Duration
	protocol string
}

func soakCommand() command {
	k := new(soak)
	return command{
		name: "soak", help: "one load for an hour on a broker that is killed and stopped", run: k.run,
		flags: func(fs *flag.FlagSet) {
			fs.DurationVar(&k.length, "for", time.Hour, "length of the load")
			fs.StringVar(&k.protocol, "over", "amqp", "protocol: amqp or stomp, on Artemis, or rocketmq")
		},
	}
}

// run puts the load of a shipped soak test on a broker: after each sixth of the time the
// broker is killed and started, or stopped for 20 s, in turn. It writes a page and, beside it, the report of the run.
func (k *soak) run(ctx context.Context, s *session) (err error) {
	target, ok := map[string]struct{ scenario, queue, kind string }{
		"amqp":     {"soak/artemis", "perfmq.soak.artemis", "artemis"},
		"stomp":    {"soak/stomp", "perfmq.soak.stomp", "artemis"},
		"rocketmq": {"soak/rocketmq", "perfmq-soak", "rocketmq"},
	}[k.protocol]
	if !ok {
		return fmt.Errorf("-over: unknown protocol %q", k.protocol)
	}
	ctx, cancel := context.WithTimeout(ctx, k.length+k.length/4+2*hangLimit)
	defer cancel()
	c, err := s.launch(ctx, target.kind)
	if err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	e := c.endpoint(k.protocol)
	l := &load{protocol: k.protocol, dir: filepath.Join(s.dir, "soak"), ended: make(chan struct{})}
	args := []string{
		"run", "@" + target.scenario, "--set", "time=" + k.length.String(), "--url", e.url(), "--result", l.results(),
		"--silent", "--broker-pid", strconv.Itoa(c.primary.PID()),
	}
	l.cmd = s.command(ctx, append(args, e.login()...)...)
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	if err := l.begin(); err != nil {
		return err
	}
	defer l.stop()
	began := time.Now()
	o := &soaked{title: c.title, scenario: target.scenario, length: k.length, lasting: c.lasting}
	for i := range 5 {
		next := began.Add(k.length * time.Duration(i+1) / 6)
		if err := l.until(ctx, "a failure", time.Second, func() bool { return time.Now().After(next) }); err != nil {
			return err
		}
		o.events = append(o.events, event{name: "kill -9 and restart"})
		e, apply := &o.events[i], killAndStart
		if i%2 == 1 {
			e.name, apply = "SIGSTOP for 20 s", pauseAndResume
		}
		if err := apply(ctx, c, &e.log); err != nil {
			return fmt.Errorf("%w\nthe broker: %s", err, c.primary.LogTail())
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", e.name, strings.Join(e.log.lines, "; "))
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
		return fmt.Errorf("perfmq did not end: %w", ctx.Err())
	}
	o.status = l.cmd.ProcessState.ExitCode()
	if o.result, err = result.Read(l.results()); err != nil {
		return fmt.Errorf("read the result: %w\n%s", err, l.tail())
	}
	if o.left, err = c.stored(ctx, target.queue); err != nil {
		return fmt.Errorf("ask the broker for its count: %w", err)
	}
	o.judge()
	page := strings.TrimSuffix(s.out, ".md") + ".html"
	if text, err := s.command(ctx, "report", l.results(), "--output", page).CombinedOutput(); err != nil {
		return fmt.Errorf("write %s: %w: %s", page, err, text)
	}
	if len(o.problems) > 0 {
		err = fmt.Errorf("perfmq is wrong: %s\n%s", strings.Join(o.problems, "; "), l.tail())
	}
	return errors.Join(err, write(s.out, o.page()))
}

func (o *soaked) wrong(format string, args ...any) {
	o.problems = append(o.problems, fmt.Sprintf(format, args...))
}

// judge compares the result with the log of the harness and the broker's count.
func (o *soaked) judge() { //nolint:gocyclo // a list of checks
	r := o.result
	p := r.Total.Producers
	if p == nil || r.Verification == nil {
		o.wrong("the result has no producers, or no verification")
		return
	}
	var explained uint64 // other messages without an answer timed out on a connection that did not break, a failure
	for i := range r.Outages {
		explained += r.Outages[i].InDoubt
	}
	if failed := p.Unconfirmed > explained || refused(p) > 0; failed != (o.status == 1) || !failed && o.status != 0 {
		o.wrong("exit status %d: %s", o.status, strings.Join(r.Outcome.Problems, "; "))
	}
	outages := len(r.Outages)
	for i := range r.Outages {
		if o.whileStopped(time.UnixMicro(r.Outages[i].Time)) {
			outages--
		}
	}
	if kills := (len(o.events) + 1) / 2; outages != kills {
		o.wrong("%d outages, %d kills", outages, kills)
	}
	for i := range o.events {
		if _, ok := o.seen(&o.events[i]); !ok {
			o.wrong("nothing begins at %s", o.events[i].log.lines[0])
		}
	}
	v := &r.Verification.Total
	if v.Lost+v.Left > 0 || v.Duplicates > v.AfterOutage {
		o.wrong("%d lost, %d left, %d doubled", v.Lost, v.Left, v.Duplicates-v.AfterOutage)
	}
	if ends := p.Completed + p.Unconfirmed + refused(p); ends != p.Sent {
		o.wrong("%d sent, %d ended", p.Sent, ends)
	}
	switch has := int64(p.Completed + v.UnconfirmedArrived); { //nolint:gosec // far below
	case o.lasting && o.left != has:
		o.wrong("the broker has had %d messages, not %d", o.left, has)
	case !o.lasting && v.Left == 0 && o.left != 0, !o.lasting && (o.left < int64(v.Left) ||
		o.left > int64(v.Left+v.UnconfirmedMissing)): // some in doubt may be there, too //nolint:gosec // far below
		o.wrong("%d messages are left at the broker, not %d", o.left, v.Left)
	}
}

// whileStopped: the broker was stopped at that moment. A time-out may break its connections.
func (o *soaked) whileStopped(at time.Time) bool {
	for i := range o.events {
		e := &o.events[i]
		if strings.HasPrefix(e.name, "SIGSTOP") && at.After(e.log.last) && at.Before(e.log.last.Add(stopped)) {
			return true
		}
	}
	return false
}

// seen describes the outage or stall that begins at an event.
func (o *soaked) seen(e *event) (text string, ok bool) {
	late := func(at int64) string {
		return fmt.Sprintf("%+d ms", time.UnixMicro(at).Sub(e.log.first).Milliseconds())
	}
	for i := range o.result.Outages {
		out := &o.result.Outages[i]
		if off(out.Time, e.log.first, e.log.last).Abs() <= onTime {
			return fmt.Sprintf("an outage of %.1f s, from %s%s, %d in doubt", seconds(out.Length), late(out.Time),
				fullRate(out.Recovered), out.InDoubt), true
		}
	}
	for i := range o.result.Stalls {
		s := &o.result.Stalls[i]
		early := max(onTime, owed(o.result, "", e.log.first))
		if d := off(s.Time, e.log.first, e.log.last); d <= onTime && d >= -early && s.Length > stopped.Microseconds()/2 {
			return fmt.Sprintf("a stall (%s) of %.1f s, from %s", s.Side, seconds(s.Length), late(s.Time)), true
		}
	}
	return "nothing", false
}

// memory returns perfmq's mean memory in a sixth of the load, counted from 0, in MiB.
func (o *soaked) memory(sixth time.Duration) float64 {
	var sum, n float64
	for i := range o.result.Rows {
		row := &o.result.Rows[i]
		if row.Phase != "drain" && time.Duration(row.Elapsed)*time.Microsecond*6/o.length == sixth {
			sum, n = sum+float64(row.Tester.Memory)/(1<<20), n+1
		}
	}
	return sum / n
}

func (o *soaked) page() string {
	var b strings.Builder
	r := o.result
	p, v := r.Total.Producers, &r.Verification.Total
	fmt.Fprintf(&b, "# Soak test\n\n`make soak` starts a broker, runs `perfmq run "+
		"@%s` for %s, kills or stops the broker after each sixth of that time,\nand writes this page and "+
		"the report beside it. "+
		"Do not edit it.\n\n", o.scenario, o.length)
	fmt.Fprintf(&b, "%s, version %s of perfmq, on %s; broker and perfmq on one machine with %d processors. "+
		"During the run %s, such as the broker.\n\n", o.title, r.Versions.Perfmq,
		time.UnixMicro(r.Start).UTC().Format(time.DateOnly), runtime.NumCPU(), busyText(&r.Tester))
	verdict := "what perfmq reported agrees with the harness and the broker"
	if len(o.problems) > 0 {
		verdict = "**perfmq is wrong**: " + strings.Join(o.problems, "; ")
	}
	fmt.Fprintf(&b, "- verdict: %s\n- result: %s\n", verdict, r.Outcome.Reason)
	count := "left at the broker"
	if o.lasting {
		count = "stored by the broker"
	}
	fmt.Fprintf(&b, "- %d messages sent, %d confirmed, %d in doubt (%d arrived), %d received, %d lost, %d received again "+
		"after an outage; %s, by its own count: %d\n", p.Sent, p.Completed, p.Unconfirmed,
		v.UnconfirmedArrived, v.Received, v.Lost, v.AfterOutage, count, o.left)
	fmt.Fprintf(&b, "- memory of perfmq: %.1f MiB in the second sixth of the load, %.1f MiB in the last\n\n",
		o.memory(1), o.memory(5))
	b.WriteString("| what happened | harness's log | perfmq reported |\n| --- | --- | --- |\n")
	for i := range o.events {
		seen, _ := o.seen(&o.events[i])
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.events[i].name, strings.Join(o.events[i].log.lines, "; "), seen)
	}
	return b.String()
}
