package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

// keptOutput is how much of the output of a command is kept: its end.
const keptOutput = 16 << 10

// commandsBefore carries out the commands that the present step wants before it.
func (r *run) commandsBefore(ctx context.Context, stop <-chan struct{}) error {
	return interruptible(ctx, stop, func(ctx context.Context) error {
		for _, text := range r.step.plan.Before {
			if err := r.shell(ctx, "before", text); err != nil {
				return err
			}
		}
		return nil
	})
}

// commandsAfter carries out the commands after the present step, if it had its load. The first that fails ends the run, if nothing
// else has.
func (r *run) commandsAfter(ctx context.Context, end *ending) {
	if r.step.ended {
		return
	}
	r.step.ended = true
	for _, text := range r.step.plan.After {
		if err := r.shell(ctx, "after", text); err != nil {
			if end.err == nil {
				end.err, end.reason = err, "a command failed"
			}
			return
		}
	}
}

// shell carries out one command and keeps what it said.
func (r *run) shell(ctx context.Context, when, text string) error {
	var output tail
	cmd := exec.CommandContext(ctx, "sh", "-c", text) //nolint:gosec // the user's own command
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &output, &output, hurry
	begun := time.Now()
	err := cmd.Run()
	c := stats.Command{Step: r.step.plan.Name, When: when, Command: text, Output: output.String(), Took: time.Since(begun)}
	var status *exec.ExitError
	switch {
	case errors.As(err, &status):
		c.Status = status.ExitCode()
		err = fmt.Errorf("the command %q %s step %s ended with status %d: %s", text, when, r.step.plan.Name, c.Status, lastLine(output.b))
	case err != nil:
		c.Status = -1
		err = fmt.Errorf("the command %q %s step %s: %w", text, when, r.step.plan.Name, err)
	}
	r.commands = append(r.commands, c)
	return err
}

// tail keeps the end of what is written.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2*keptOutput {
		t.b = append(t.b[:0], t.b[len(t.b)-keptOutput:]...)
	}
	return len(p), nil
}

// String returns the end, from the beginning of a line: half a line might show half of a password.
func (t *tail) String() string {
	if len(t.b) <= keptOutput {
		return string(t.b)
	}
	_, end, _ := bytes.Cut(t.b[len(t.b)-keptOutput:], []byte("\n"))
	return string(end)
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if last := bytes.TrimSpace(lines[len(lines)-1]); len(last) > 0 {
		return string(last)
	}
	return "it printed nothing"
}
