//go:build unix

package brokertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// processSpec says how to start a broker and how to see that it is ready.
type processSpec struct {
	name    string        // in messages: "artemis"
	path    string        // program
	args    []string      // without the program's name
	dir     string        // working directory
	env     []string      // added to ours
	logFile string        // where its output goes; appended to
	ready   string        // ready once a line contains this
	timeout time.Duration // for getting ready
	hint    string        // where to look when it does not start
	network *hermit       // where it runs; nil for the machine's own
}

// process is a running program in a process group of its own. All methods may
// be called by any goroutine, at any time, also after its end.
type process struct {
	spec processSpec
	cmd  *exec.Cmd
	log  *logSink
	done chan struct{} // closed once the process is reaped
	err  error         // how it ended; valid after done
}

// tailLines is the number of log lines that a failure quotes.
const tailLines = 40

// startProcess starts the program and waits until it is ready. On an error
// nothing is left running.
func startProcess(ctx context.Context, spec processSpec) (*process, error) {
	file, err := os.OpenFile(spec.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", spec.name, err)
	}
	p := &process{
		spec: spec,
		cmd:  exec.Command(spec.path, spec.args...),
		log:  &logSink{file: file, readyText: spec.ready, ready: make(chan struct{}), taken: make(chan struct{})},
		done: make(chan struct{}),
	}
	p.cmd.Dir = spec.dir
	p.cmd.Env = append(os.Environ(), spec.env...)
	p.cmd.Stdout = p.log
	p.cmd.Stderr = p.log
	p.cmd.SysProcAttr = sysProcAttr()
	p.cmd.WaitDelay = 2 * time.Second // a grandchild may hold the pipe open

	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w (%s)", spec.name, err, spec.hint)
	}
	if err := p.waitReady(ctx); err != nil {
		p.kill()
		return nil, fmt.Errorf("%w (%s); the end of its log:\n%s", err, spec.hint, p.tail())
	}
	return p, nil
}

// run owns the process from its start to its end, on one thread: the kernel's
// parent-death signal fires when the *thread* that forked ends, so that thread
// has to live as long as the broker.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer p.log.close()
	var err error
	if p.spec.network == nil {
		defer runtime.UnlockOSThread()
	}
	// A thread that has entered another namespace stays locked, and ends.
	if p.spec.network != nil {
		err = p.spec.network.enter()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

func (p *process) waitReady(ctx context.Context) error {
	timer := time.NewTimer(p.spec.timeout)
	defer timer.Stop()
	select {
	case <-p.log.ready:
		return nil
	case <-p.log.taken:
		return fmt.Errorf("%s could not listen: %s", p.spec.name, addressTaken)
	case <-p.done:
		return fmt.Errorf("%s ended before it was ready: %w", p.spec.name, p.exitError())
	case <-timer.C:
		return fmt.Errorf("%s was not ready after %v: no line with %q", p.spec.name, p.spec.timeout, p.spec.ready)
	case <-ctx.Done():
		return fmt.Errorf("wait for %s to be ready: %w", p.spec.name, ctx.Err())
	}
}

func (p *process) exitError() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends a signal to the whole group, so that helpers of a broker stop
// with it. A process that has ended is an error.
func (p *process) signal(sig syscall.Signal) error {
	if !p.alive() {
		return fmt.Errorf("send %v to %s: it has ended (%w)", sig, p.spec.name, p.exitError())
	}
	if err := syscall.Kill(-p.pid(), sig); err != nil {
		return fmt.Errorf("send %v to %s (pid %d): %w", sig, p.spec.name, p.pid(), err)
	}
	return nil
}

// pause stops the process and waits until all its threads have stopped: on a busy machine a thread may run for a
// moment after the signal, and answer a request.
func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for !threadsStopped(p.pid()) {
		select {
		case <-ticker.C:
		case <-deadline:
			return fmt.Errorf("pause %s (pid %d): it has not stopped a minute after SIGSTOP", p.spec.name, p.pid())
		}
	}
	return nil
}

// threadsStopped looks at the states of a process's threads (proc(5)); where there is no /proc it takes them for
// stopped.
func threadsStopped(pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		// The state follows the name, which stands in brackets and may hold anything.
		rest := data[bytes.LastIndexByte(data, ')')+1:]
		if fields := bytes.Fields(rest); len(fields) > 0 && (fields[0][0] == 'R' || fields[0][0] == 'S') {
			return false // the others cannot run any more: a wait in the kernel ends with the stop
		}
	}
	return true
}

// kill ends the process at once, as a crash would, and waits until it is gone.
// Killing an ended one does nothing.
func (p *process) kill() {
	if p.alive() {
		_ = p.signal(syscall.SIGKILL) // fails only when it ended meanwhile
	}
	<-p.done
}

// stop asks the process to end, and kills it after the grace period; the error
// says that it had to.
func (p *process) stop(grace time.Duration) error {
	if !p.alive() {
		return nil
	}
	_ = p.signal(syscall.SIGTERM)
	_ = p.signal(syscall.SIGCONT) // a paused process would not see the first
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.kill()
		return fmt.Errorf("stop %s: still there %v after SIGTERM, killed; the end of its log:\n%s", p.spec.name, grace,
			p.tail())
	}
}

// tail returns the last lines that the process printed.
func (p *process) tail() string { return p.log.tail() }

// addressTaken is part of the log line of a broker that cannot bind its port. Some brokers continue, get ready in
// part, and end seconds later: Artemis's console is the last to start whatever failed before it.
const addressTaken = "Address already in use"

// logSink writes a process's output to a file, keeps its last lines and watches
// for the ready line. It cannot fail: a broker must not die of its log.
type logSink struct {
	file  *os.File
	ready chan struct{} // closed at the ready line
	taken chan struct{} // closed at a line with addressTaken before that

	mu        sync.Mutex
	readyText string   // empty once seen
	lines     [][]byte // the memory of the oldest is used again: brokers log much, and tests count allocations
	partial   []byte
}

var _ io.Writer = (*logSink)(nil)

// Write takes a piece of the output.
func (s *logSink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.file.Write(b)
	s.partial = append(s.partial, b...)
	for {
		line, rest, found := bytes.Cut(s.partial, []byte{'\n'})
		if !found {
			return len(b), nil
		}
		s.addLine(line)
		s.partial = append(s.partial[:0], rest...)
	}
}

func (s *logSink) addLine(line []byte) {
	if bytes.HasPrefix(line, []byte("\tat ")) {
		return // frames of Java's stack traces push out the lines that matter; the file has them
	}
	var oldest []byte
	if len(s.lines) == tailLines {
		oldest = s.lines[0]
		s.lines = append(s.lines[:0], s.lines[1:]...)
	}
	s.lines = append(s.lines, append(oldest[:0], line...))
	switch {
	case s.readyText == "":
	case bytes.Contains(line, []byte(s.readyText)):
		s.readyText = ""
		close(s.ready)
	case bytes.Contains(line, []byte(addressTaken)):
		s.readyText = ""
		close(s.taken)
	}
}

func (s *logSink) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(bytes.Join(s.lines, []byte{'\n'}))
}

func (s *logSink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.file.Close()
}
