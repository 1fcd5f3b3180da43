//go:build unix

package peerbench

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
)

// Embedded is the embedded broker as a process of its own.
type Embedded struct {
	PID  int
	URLs map[string]string // by protocol; the control's as "control"
	cmd  *exec.Cmd
}

// listeners are the addresses that the broker prints: one per protocol, and the control's.
const listeners = 4

// StartEmbedded starts `perfmq broker` for all protocols on free ports. It ends with the context at the latest.
func StartEmbedded(ctx context.Context, binary string) (*Embedded, error) {
	cmd := exec.CommandContext(ctx, binary, "broker", //nolint:gosec // the user names it
		"--listen-amqp", "127.0.0.1:0", "--listen-stomp", "127.0.0.1:0", "--listen-rocketmq", "127.0.0.1:0",
		"--control", "127.0.0.1:0", "--max-memory", "4GiB")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	e := &Embedded{PID: cmd.Process.Pid, URLs: map[string]string{}, cmd: cmd}
	lines := bufio.NewScanner(out)
	for len(e.URLs) < listeners && lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 2 {
			e.URLs[f[0]] = f[1]
		}
	}
	if len(e.URLs) < listeners {
		e.Close()
		return nil, errors.New("perfmq broker did not say where it listens")
	}
	return e, nil
}

// Close ends it.
func (e *Embedded) Close() {
	_ = e.cmd.Process.Signal(os.Interrupt) // it may have ended
	_ = e.cmd.Wait()                       // its status does not matter here
}
