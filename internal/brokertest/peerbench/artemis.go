//go:build unix

package peerbench

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// Setting is the part of a load that is the same for all tools.
type Setting struct {
	Pending    int
	Persistent bool
	Rate       int // 0: as fast as possible
}

func (s Setting) String() string {
	mode, load := "non-persistent", "all-out"
	if s.Persistent {
		mode = "persistent"
	}
	if s.Rate > 0 {
		load = strconv.Itoa(s.Rate) + " msg/s"
	}
	return fmt.Sprintf("max-pending %d, %s, %s", s.Pending, mode, load)
}

// OnArtemis runs tools with the flags of `artemis perf client` on one broker.
type OnArtemis struct {
	Broker           *brokertest.Artemis
	Dir              string // for the tools' files
	Duration, Warmup int    // seconds
	Notes            io.Writer
	runs             int
}

// Command makes a tool's command of the flags that all get.
type Command func(ctx context.Context, args []string) *exec.Cmd

// Once runs a tool with a queue of its own: one producer, one consumer. Its total
// is held against the broker's counter; a difference is noted. A run ends at the
// latest a minute after its duration.
func (a *OnArtemis) Once(ctx context.Context, s Setting, command Command) (Outcome, error) {
	a.runs++
	queue := fmt.Sprintf("BENCH.%d", a.runs)
	file := filepath.Join(a.Dir, queue+".json")
	args := []string{
		"--duration", strconv.Itoa(a.Duration), "--warmup", strconv.Itoa(a.Warmup),
		"--max-pending", strconv.Itoa(s.Pending), "--json", file, "--silent",
	}
	if s.Persistent {
		args = append(args, "--persistent")
	}
	if s.Rate > 0 {
		args = append(args, "--rate", strconv.Itoa(s.Rate))
	}
	args = append(args, "queue://"+queue)

	ctx, cancel := context.WithTimeout(ctx, time.Duration(a.Duration+60)*time.Second)
	defer cancel()
	cmd := command(ctx, args)
	if out, err := cmd.CombinedOutput(); err != nil {
		return Outcome{}, fmt.Errorf("%w\n%s", err, out)
	}
	o, err := ReadOutcome(file, cmd.ProcessState)
	if err != nil {
		return Outcome{}, err
	}
	q, err := a.Broker.Queue(ctx, queue)
	if err == nil && float64(q.MessagesAdded) != o.Sent {
		_, _ = fmt.Fprintf(a.Notes, "  note: %s counted %.0f sent, the broker %d\n", queue, o.Sent, q.MessagesAdded)
	}
	_ = a.Broker.DeleteQueue(ctx, queue) // auto-deleted already, or harmless
	return o, nil
}
