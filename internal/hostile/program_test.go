//go:build unix

package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/stretchr/testify/require"
)

// TestProgram runs the program, as it is released, against the peers that try to exhaust memory.
func TestProgram(t *testing.T) {
	t.Parallel()
	binary := program.get(t)
	for _, s := range subjects() {
		hosts := &hosts{}
		t.Cleanup(hosts.end)
		for _, c := range s.table() {
			if !s.runsProgram(&c) {
				continue
			}
			c.prepare()
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				hosts.runProgram(t, &s, &c, binary)
			})
		}
	}
}

// program is the binary, which the first test that asks for it builds and TestMain removes.
var program built

type built struct {
	once sync.Once
	dir  string
	err  error
}

func (b *built) get(t *testing.T) string {
	t.Helper()
	brokertest.Needs(t, "a build of perfmq")
	b.once.Do(func() { b.err = b.build() })
	require.NoError(t, b.err)
	return filepath.Join(b.dir, "perfmq")
}

// build builds it as it is released: without cgo and without the race detector, whatever the tests are built with.
func (b *built) build() (err error) {
	if b.dir, err = os.MkdirTemp("", "perfmq-hostile-"); err != nil {
		return err
	}
	//nolint:noctx // the test has a time limit
	cmd := exec.Command("go", "build", "-o", filepath.Join(b.dir, "perfmq"), "github.com/perfmq/perfmq/cmd/perfmq")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build perfmq: %w\n%s", err, out)
	}
	return nil
}

func (b *built) remove() {
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

// outcome is how the program ended.
type outcome struct {
	Status int
	Output string // its beginning
	Size   int    // of the output
	Signal string // that ended it
	Hung   bool
}

// The statuses of the program, from its help.
const (
	statusOK      = 0
	statusFailed  = 1
	statusUsage   = 2
	statusConnect = 4
)

// outputLimit is the most that the program may print, in bytes, whatever a peer has sent.
const outputLimit = 16 << 10

// runProgram does one case. The process that starts the program does nothing else, so its memory is small beside the
// program's.
func (h *hosts) runProgram(t *testing.T, s *subject, c *testCase, binary string) {
	p := startPeer(t, c.play)
	r := h.do(t, &job{Program: c.commandLine(s, p, binary), Watch: c.job.Watch + c.job.Connect})
	p.stop()
	o := r.Program
	t.Logf("%d MiB, status %d\n%s", r.MaxRSS>>20, o.Status, o.Output)
	require.False(t, o.Hung, "it hangs")
	require.Empty(t, o.Signal)
	require.NotContains(t, o.Output, "goroutine ")
	require.Less(t, o.Size, outputLimit, "bytes of output")
	require.Less(t, r.MaxRSS, int64(memoryLimit))
	switch {
	case c.want.open != nil:
		// Usage: not found, unsupported or too large.
		require.Contains(t, []int{statusFailed, statusUsage, statusConnect}, o.Status)
		require.Regexp(t, "(?s)error: .*"+c.want.text, o.Output)
		require.Contains(t, o.Output, "hint: ")
	case c.want.run != nil:
		require.Contains(t, []int{statusFailed, statusConnect}, o.Status)
		require.Regexp(t, "(?s)error: .*"+c.want.text, o.Output)
	case c.want.quiet:
		require.Contains(t, []int{statusOK, statusFailed, statusConnect}, o.Status)
	default:
		require.Equal(t, statusOK, o.Status)
	}
}

// commandLine returns the command line with which the program does the same as the subject.
func (c *testCase) commandLine(s *subject, p *peer, binary string) []string {
	j := &c.job
	role := "producer"
	if j.Consume {
		role = "consumer"
	}
	// It bounds closing as well, which a peer that does not answer draws out.
	limit, drain := j.Connect, time.Second
	switch {
	case c.want.quiet:
		limit = min(limit, 3*time.Second)
	case strings.HasPrefix(c.name, "end:"), strings.HasPrefix(c.name, "flood:"): // the flood is what it would wait in
		limit = min(limit, patience/4)
	}
	if c.want.open == nil && c.want.run == nil && !c.want.quiet { // it ends well, when it has the time
		drain = patience / 2
	}
	args := []string{
		binary, s.factory.Name, role, "--url", j.url(s, p), "--connect-timeout", limit.String(), "--drain-timeout", drain.String(),
		"--duration", max(time.Second, j.Watch).String(),
	}
	if j.Messages < math.MaxInt32/2 {
		args = append(args, "--message-count", strconv.Itoa(j.Messages))
	}
	if !j.Consume {
		args = append(args, "--max-pending", strconv.Itoa(j.Messages))
	}
	if j.TLS {
		args = append(args, "--tls-insecure")
	}
	for _, o := range j.Options {
		args = append(args, "-o", o)
	}
	return append(args, "queue://q")
}

// runProgram is the subject's part: it starts the program and says how it ended.
func (j *job) runProgram() *report {
	ctx, cancel := context.WithTimeout(context.Background(), j.Watch+2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, j.Program[0], j.Program[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PERFMQ_") || strings.HasPrefix(v, "GOGC=")
	})
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // its stacks
	cmd.WaitDelay = closing
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	o := &outcome{Size: out.Len(), Output: string(out.Bytes()[:min(out.Len(), outputLimit)]), Hung: ctx.Err() != nil}
	r := &report{Program: o}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !o.Hung {
		r.violate("%v", err)
		return r
	}
	o.Status = cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		o.Signal = status.Signal().String()
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && runtime.GOOS == "linux" { // which counts in KiB
		r.MaxRSS = usage.Maxrss << 10
	}
	return r
}

// runsProgram tells whether a case runs through the program as well: not if the program has no flags for it, or would
// do otherwise.
func (s *subject) runsProgram(c *testCase) bool {
	j := &c.job
	return c.heavy && !j.Shared && !j.Topic && j.Tx == 0
}
