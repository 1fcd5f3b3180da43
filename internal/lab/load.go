//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// errEnded: the run ended by itself.
var errEnded = errors.New("perfmq ended")

// hangLimit is the longest time that a run takes beyond its load: drain, hook and end.
const hangLimit = 3 * time.Minute

// load is a run of perfmq over one protocol.
type load struct {
	protocol   string
	live, kept string // queues
	dir        string // of its files
	cmd        *exec.Cmd
	output     bytes.Buffer
	ended      chan struct{}
	err        error // of Wait; valid after ended
}

// prepare returns the run of a load over an endpoint, ready to begin.
func (s *session) prepare(ctx context.Context, name string, p *loadPlan, e *endpoint) (*load, error) {
	l := &load{
		protocol: e.protocol, live: e.prefix + name + "-live", kept: e.prefix + name + "-kept",
		dir: filepath.Join(s.dir, name), ended: make(chan struct{}),
	}
	// Files of an earlier trial would end the wait of this run.
	if err := errors.Join(os.RemoveAll(l.dir), os.MkdirAll(l.dir, 0o700)); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(l.scenario(p, e), "", "  ")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(l.dir, "scenario.yaml") // JSON is YAML
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	l.cmd = s.command(ctx, "run", file, "--result", l.results())
	return l, nil
}

// begin starts the command of a load.
func (l *load) begin() error {
	l.cmd.Stdout, l.cmd.Stderr = &l.output, &l.output
	if err := l.cmd.Start(); err != nil {
		return fmt.Errorf("start perfmq: %w", err)
	}
	go func() {
		defer close(l.ended)
		l.err = l.cmd.Wait()
	}()
	return nil
}

func (l *load) results() string { return filepath.Join(l.dir, "result") }

// asked and answered are files: the run waits for the harness between its steps.
func (l *load) asked() string    { return filepath.Join(l.dir, "asked") }
func (l *load) answered() string { return filepath.Join(l.dir, "answered") }

type settings map[string]any

// atMostOnce returns the options, by protocol, with which producers ask for no confirmation.
func atMostOnce() map[string]settings {
	return map[string]settings{
		"amqp": {"settle": "at-most-once"}, "stomp": {"receipt": false}, "rocketmq": {"send": "oneway"},
	}
}

// failureStep is the name of the step in which the failure happens.
const failureStep = "failure"

// scenario is the load: a step in which the failure happens, and a step that receives from the kept queue.
func (l *load) scenario(p *loadPlan, e *endpoint) settings {
	producers := func(queue string, rate int) settings {
		g := settings{
			"role": "producer", "destination": "queue://" + queue, "rate": rate, "producers": 2, "reconnect": true,
			"max-pending": 50,
		}
		if !e.durable {
			g["persistent"] = !p.transient
		}
		if p.unconfirmed {
			g["broker"] = "unconfirmed"
		}
		return g
	}
	consumers := func(queue string) settings {
		return settings{"role": "consumer", "destination": "queue://" + queue, "reconnect": true}
	}
	groups := settings{"keepers": producers(l.kept, p.rate), "drainers": consumers(l.kept)}
	first := []string{"keepers"}
	if p.live {
		groups["senders"], groups["readers"] = producers(l.live, liveRate), consumers(l.live)
		first = append(first, "senders", "readers")
	}
	second := settings{
		"name": "drain", "groups": []string{"drainers"}, "until": "drained",
		// It ends with perfmq, also if that is killed.
		"before": fmt.Sprintf("touch '%s'; while [ ! -e '%s' ] && kill -0 $PPID; do sleep 0.1; done", l.asked(),
			l.answered()),
	}
	if p.relief > 0 {
		second["groups"] = []string{"keepers", "drainers"}
		second["duration"] = fmt.Sprintf("%ds", p.relief)
	}
	steps := []settings{
		{"name": failureStep, "groups": first, "duration": fmt.Sprintf("%ds", p.seconds), "until": "drained"}, second,
	}
	if p.backlog > 0 { // from as many producers as a broker needs for its full speed
		fill := producers(l.kept, 0)
		delete(fill, "rate")
		fill["producers"], fill["max-pending"], fill["message-count"] = 8, 200, p.backlog
		fill["message-size"] = smallSize
		groups["fillers"] = fill
		steps = append([]settings{{"name": "fill", "groups": []string{"fillers"}}}, steps...)
	}
	patience := "10s"
	if p.backlog > 0 {
		patience = "30s"
	}
	broker := settings{"protocol": e.protocol, "url": e.url()}
	for key, value := range e.settings {
		broker[key] = value
	}
	scenario := settings{"version": 1, "verify": true, "drain-timeout": patience, "groups": groups, "steps": steps}
	if !p.unconfirmed {
		return scenario.with("broker", broker)
	}
	for name := range groups { // options are those of a broker
		if g, _ := groups[name].(settings); g["broker"] == nil {
			g["broker"] = "confirmed"
		}
	}
	return scenario.with("brokers", settings{
		"confirmed": broker, "unconfirmed": maps.Clone(broker).with("options", atMostOnce()[e.protocol]),
	})
}

// inProgress waits until messages have gone through for some seconds.
func (l *load) inProgress(ctx context.Context) error {
	const pause = 500 * time.Millisecond // reading a long result takes a while
	return l.until(ctx, "the load is in progress", pause, func() bool {
		r, err := result.Read(l.results())
		return err == nil && inStep(r) >= calm && r.Total.Producers != nil && r.Total.Producers.Completed > 0
	})
}

// inStep returns the length so far of the step of the failure.
func inStep(r *result.Result) time.Duration {
	for i := range r.Rows {
		if first := &r.Rows[i]; first.Step == failureStep {
			return time.Duration(r.Rows[len(r.Rows)-1].Elapsed-first.Elapsed+first.Length) * time.Microsecond
		}
	}
	return 0
}

// betweenSteps waits until the run waits for the harness.
func (l *load) betweenSteps(ctx context.Context) error {
	return l.until(ctx, "the step of the failure is over", 100*time.Millisecond, func() bool {
		_, err := os.Stat(l.asked())
		return err == nil
	})
}

// goOn lets the run begin its second step.
func (l *load) goOn() error { return os.WriteFile(l.answered(), nil, 0o600) }

// until waits for a condition, at which it looks now and then, or for an error: the end of the run.
func (l *load) until(ctx context.Context, what string, pause time.Duration, reached func() bool) error {
	for !reached() {
		select {
		case <-l.ended:
			return fmt.Errorf("%w over %s before %s: %w\n%s", errEnded, l.protocol, what, l.err, l.tail())
		default:
		}
		if err := wait(ctx, pause); err != nil {
			return fmt.Errorf("wait until %s over %s: %w\n%s", what, l.protocol, err, l.tail())
		}
	}
	return nil
}

// finish waits for the end of the run, and reads its result. A run that does not end is killed.
func (l *load) finish(ctx context.Context, o *observation) error {
	select {
	case <-l.ended:
	case <-ctx.Done():
		l.stop()
		o.hung = true
	}
	var exit *exec.ExitError
	if l.err != nil && !errors.As(l.err, &exit) {
		return l.err
	}
	o.status = l.cmd.ProcessState.ExitCode()
	r, err := result.Read(l.results())
	if err != nil {
		return fmt.Errorf("read the result over %s: %w\n%s", l.protocol, err, l.tail())
	}
	o.result = r
	return nil
}

// stop ends the run at once, if it has begun and not ended.
func (l *load) stop() {
	if l.cmd.Process == nil {
		return
	}
	_ = l.cmd.Process.Kill() // it may have ended
	<-l.ended
}

// tail is the end of the output of a run that has ended, or of its files.
func (l *load) tail() string {
	select {
	case <-l.ended:
	default:
		return ""
	}
	return tail(l.output.String())
}

// tail returns the last lines of a text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
