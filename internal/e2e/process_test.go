//go:build unix

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// connectPatience is the connect time-out of runs that name none: brokers answer late on a machine with much else to
// do.
const connectPatience = time.Minute

// process is a running perfmq.
type process struct {
	t        *testing.T
	args     []string
	cmd      *exec.Cmd
	stdout   lockedBuffer
	stderr   lockedBuffer
	jsonFile string // empty if the run writes none
	began    time.Time
	done     chan struct{} // closed when it has ended
	took     time.Duration // valid after done
}

// result is how a run ended.
type result struct {
	args           []string
	status         int
	stdout, stderr string
	took           time.Duration
	json           string // the file's text
	intervals      []record
	summary        record // of the JSON
	signalled      bool
}

// start runs perfmq with these arguments, and --json unless it is there, and, but for the connect time-out, with none
// of our own environment's settings.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startIn(t, nil, args...)
}

// startIn is start with variables.
func startIn(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	require.NoError(t, buildErr)
	p := &process{t: t, done: make(chan struct{})}
	switch i := slices.Index(args, "--json"); {
	case i >= 0:
		p.jsonFile = args[i+1]
	case !slices.Contains(args, "--dry-run") && isLoad(args):
		p.jsonFile = filepath.Join(t.TempDir(), "run.json")
		args = append(slices.Clone(args), "--json", p.jsonFile)
	}
	p.args = args
	p.cmd = exec.Command(binary, args...) //nolint:noctx // wait has the deadline, and wants the stacks at it
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PERFMQ_") })
	p.cmd.Env = append(append(p.cmd.Env, "PERFMQ_CONNECT_TIMEOUT="+connectPatience.String()), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.began = time.Now()
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // the status is in ProcessState
		p.took = time.Since(p.began)
		close(p.done)
	}()
	t.Cleanup(func() {
		select {
		case <-p.done:
		default:
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
	return p
}

// isLoad reports whether the command is one of a protocol, which makes load as one step.
func isLoad(args []string) bool {
	return args[0] != "broker" && args[0] != "verify" && args[0] != "merge" && args[0] != "run" && args[0] != "scenario" &&
		args[0] != "report" && !slices.Contains(args, "--find-max")
}

// run is start and wait.
func run(t *testing.T, limit time.Duration, args ...string) result {
	t.Helper()
	return start(t, args...).wait(limit)
}

// in lets the process fail a subtest.
func (p *process) in(t *testing.T) *process {
	p.t = t
	return p
}

// wait returns how the run ended, after the checks of every run. One that has not ended limit after its start
// fails the test.
func (p *process) wait(limit time.Duration) result {
	p.t.Helper()
	timer := time.NewTimer(max(0, time.Until(p.began.Add(limit))))
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.signal(syscall.SIGQUIT) // its stacks
		<-p.done
	}
	if p.took > limit {
		p.t.Fatalf("perfmq %s\nhas not ended after %s\n%s", strings.Join(p.args, " "), limit, p.output())
	}
	r := result{
		args: p.args, status: p.cmd.ProcessState.ExitCode(), stdout: p.stdout.String(), stderr: p.stderr.String(), took: p.took,
	}
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("perfmq %s\nended with status %d after %s\n%s", strings.Join(p.args, " "), r.status, r.took, p.output())
		}
	})
	if info, err := os.Stat(p.jsonFile); err == nil && info.Mode().IsRegular() {
		text := musttest.Get(os.ReadFile(p.jsonFile))(p.t)
		r.json = string(text)
	}
	check(p.t, &r)
	return r
}

// interrupt ends the load of a run that has been looked at for as long as it took, and waits for its end.
func (p *process) interrupt() result {
	p.t.Helper()
	p.signal(syscall.SIGINT)
	r := p.wait(time.Since(p.began) + limit)
	require.Contains(p.t, []int{statusInterrupted, statusFailed}, r.status)
	require.Equal(p.t, "interrupted", r.summary.Reason)
	return r
}

func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// printed waits until the standard output contains text.
func (p *process) printed(text string) {
	p.t.Helper()
	p.until(text, &p.stdout)
}

// told waits until the standard error output contains text.
func (p *process) told(text string) {
	p.t.Helper()
	p.until(text, &p.stderr)
}

func (p *process) until(text string, out *lockedBuffer) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ended := false
	for began := time.Now(); !strings.Contains(out.String(), text); {
		if ended || time.Since(began) > limit {
			p.t.Fatalf("perfmq %s\nhas ended: %t, but has not said %q\n%s", strings.Join(p.args, " "), ended, text, p.output())
		}
		select {
		case <-p.done:
			ended = true // and look once more
		case <-tick.C:
		}
	}
}

func (p *process) output() string {
	return "--- standard output\n" + p.stdout.String() + "--- standard error\n" + p.stderr.String()
}

// lockedBuffer can be read while the process writes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
