package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/result"
)

// keptOutput is the number of bytes kept of a command's output: its end.
const keptOutput = 16 << 10

// runCommands runs the commands before or after the present step, up to the first that fails.
func (r *run) runCommands(ctx context.Context, when string, list []string) error {
	for _, text := range list {
		if err := r.shell(ctx, when, text); err != nil {
			return err
		}
	}
	return nil
}

// commandsAfter runs the commands after the present step, if it had its load. The first failure ends the run, unless it
// has ended already. An interruption ends the commands, but not one that has ended the step before: then they run to
// clean up.
func (r *run) commandsAfter(ctx, loading context.Context, end *ending) {
	if r.step.ended {
		return
	}
	r.step.ended = true
	if !end.interrupted {
		ctx = loading
	}
	switch err := causeOf(ctx, r.runCommands(ctx, "after", r.step.plan.After)); {
	case errors.Is(err, errInterrupted):
		end.interrupted, end.reason = true, "interrupted"
	case err != nil && end.err == nil:
		end.err, end.reason = err, "a command failed"
	}
}

// shell runs one command and keeps its output. The output goes to a file, not a pipe, so that a process in the
// background, such as a broker, may hold it open.
func (r *run) shell(ctx context.Context, when, text string) error {
	output, err := os.CreateTemp("", "perfmq-command-")
	if err != nil {
		return fmt.Errorf("keep the output of the command %q %s step %s: %w", text, when, r.step.plan.Name, err)
	}
	defer func() { _ = output.Close() }()
	defer func() { _ = os.Remove(output.Name()) }()
	cmd := exec.CommandContext(ctx, "sh", "-c", text) //nolint:gosec // the user's own command
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = output, output, cancelGrace
	cmd.Env = append(os.Environ(), r.plan.Environ...)
	endWithChildren(cmd)
	begun := time.Now()
	err = cmd.Run()
	said := tailOf(output)
	c := result.Command{
		Step: r.step.plan.Name, When: when, Command: text, Output: said, Took: time.Since(begun).Microseconds(),
	}
	var status *exec.ExitError
	switch {
	case err == nil:
		c.Status = new(int)
	case errors.As(err, &status):
		code := status.ExitCode()
		c.Status = &code
		err = fmt.Errorf("the command %q %s step %s ended with status %d: %s", text, when, r.step.plan.Name, code,
			lastLine(said))
	default:
		err = fmt.Errorf("the command %q %s step %s: %w", text, when, r.step.plan.Name, err)
	}
	r.commands = append(r.commands, c)
	return err
}

// tailOf returns the end of a file from the beginning of a line, because half a line could reveal half a password.
func tailOf(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(0, info.Size()-keptOutput)
	text, _ := io.ReadAll(io.NewSectionReader(f, from, keptOutput)) // the readable part
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return string(text)
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return "it printed nothing"
}
