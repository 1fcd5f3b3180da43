//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
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
		if err := l.during(ctx, time.Until(began.Add(k.length*time.Duration(i+1)/6))); err != nil {
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

// during waits, and fails if the load ends.
func (l *load) during(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-l.ended:
		return fmt.Errorf("%w: %w\n%s", errEnded, l.err, l.tail())
	case <-ctx.Done():
		return ctx.Err()
	}
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

// memory returns how the tester's memory grew after the first sixth of the load, in MiB an hour, with the error of two
// standard deviations: the slope of a line through the means of its minutes.
func (o *soaked) memory() (slope, within float64) {
	sums, counts := map[int64]float64{}, map[int64]float64{}
	for i := range o.result.Rows {
		row := &o.result.Rows[i]
		middle := row.Elapsed - row.Length/2 // a row that ends a millisecond after a minute is none of the next
		if time.Duration(middle)*time.Microsecond < o.length/6 || row.Phase == "drain" {
			continue
		}
		minute := middle / time.Minute.Microseconds()
		sums[minute] += float64(row.Tester.Memory) / (1 << 20)
		counts[minute]++
	}
	var hours, sizes []float64
	for minute := range sums {
		hours, sizes = append(hours, float64(minute)/60), append(sizes, sums[minute]/counts[minute])
	}
	return line(hours, sizes)
}

// line returns the slope of the line with the least squares through points, and twice its standard error.
func line(xs, ys []float64) (slope, within float64) {
	n := float64(len(xs))
	if n < 3 {
		return math.NaN(), math.NaN()
	}
	var x, y, xx, xy, rest float64
	for i := range xs {
		x, y = x+xs[i]/n, y+ys[i]/n
	}
	for i := range xs {
		xx, xy = xx+(xs[i]-x)*(xs[i]-x), xy+(xs[i]-x)*(ys[i]-y)
	}
	slope = xy / xx
	for i := range xs {
		d := ys[i] - y - slope*(xs[i]-x)
		rest += d * d
	}
	return slope, 2 * math.Sqrt(rest/(n-2)/xx)
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
	slope, within := o.memory()
	fmt.Fprintf(&b, "- memory of the tester, over the last five sixths: %+.2f ± %.2f MiB an hour\n\n", slope, within)
	b.WriteString("| what happened | harness's log | perfmq reported |\n| --- | --- | --- |\n")
	for i := range o.events {
		seen, _ := o.seen(&o.events[i])
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.events[i].name, strings.Join(o.events[i].log.lines, "; "), seen)
	}
	return b.String()
}
