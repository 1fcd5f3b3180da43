//go:build unix

package hostile

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// subject is a driver that is put through the table of its protocol.
type subject struct {
	name    string
	factory driver.Factory
	table   func() []testCase
}

// subjects returns all subjects. A second driver of a protocol is one line more.
func subjects() []subject {
	return []subject{
		{"amqp", amqp.Factory(), amqpCases},
		{"stomp", stomp.Factory(), stompCases},
		{"rocketmq", rocketmq.Factory(), rocketmqCases},
	}
}

func TestMain(m *testing.M) {
	if isSubject() {
		if err := serveJobs(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
		panic(err)
	}
	m.Run()
	program.remove()
}

// atOnce is the number of cases that run at a time. Most of them wait most of the time.
const atOnce = 8

// TestHostile puts each driver through the table of its protocol.
func TestHostile(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			hosts := &hosts{}
			t.Cleanup(hosts.end)
			for _, c := range s.table() {
				if (raceFactor > 1 || testing.Short()) && s.runsProgram(&c) {
					continue // floods take long, with the race detector above all; TestProgram has them, too
				}
				c.prepare()
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					hosts.run(t, &s, &c)
				})
			}
		})
	}
}

// hosts are processes for subjects that are not in use.
type hosts struct {
	mu   sync.Mutex
	idle []*host
}

func (h *hosts) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.idle {
		one.end()
	}
}

// run does one case.
func (h *hosts) run(t *testing.T, s *subject, c *testCase) {
	p := startPeer(t, c.play)
	j := c.job
	j.Driver, j.URL = s.name, j.url(s, p)
	r := h.do(t, &j)
	p.stop()
	if testing.Verbose() {
		t.Logf("%s", describe(r))
	}
	for _, wrong := range c.judge(r, p, memoryLimit*raceFactor) {
		t.Errorf("%s", wrong)
	}
}

// url is where a peer is, in the scheme that the job wants.
func (j *job) url(s *subject, p *peer) string {
	scheme := s.factory.Schemes[0]
	if j.TLS {
		scheme = s.factory.Schemes[1]
	}
	return scheme + "://" + p.listener.Addr().String()
}

// do has a process do a job; the test fails if it does not come to an end.
func (h *hosts) do(t *testing.T, j *job) *report {
	t.Helper()
	r, err := h.try(j)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try has a process do a job. The error is that it did not come to an end.
func (h *hosts) try(j *job) (*report, error) {
	h.mu.Lock()
	var one *host
	if n := len(h.idle); n > 0 {
		one, h.idle = h.idle[n-1], h.idle[:n-1]
	}
	h.mu.Unlock()
	if one == nil {
		var err error
		if one, err = startHost(); err != nil {
			return nil, err
		}
	}
	r, err := one.do(j)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.idle = append(h.idle, one)
	return r, nil
}

func describe(r *report) string {
	b, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// host is a process in which subjects do their jobs.
type host struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	results *json.Decoder
	stderr  bytes.Buffer // to be read when it has ended
}

func startHost() (*host, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &host{cmd: exec.Command(self)}                                                   //nolint:noctx // end ends it, and do has the time limit
	h.cmd.Env = append(os.Environ(), subjectVariable+"=1", "GOTRACEBACK=all", "GOGC=400") // as the program collects
	h.cmd.Stderr = &h.stderr
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.results = json.NewDecoder(out)
	return h, h.cmd.Start()
}

// end closes the input of the process, which ends it, and waits.
func (h *host) end() {
	_ = h.in.Close()
	_ = h.cmd.Wait()
}

// do hands over a job. That the process ends meanwhile, or the job does not, is an error.
func (h *host) do(j *job) (*report, error) {
	if err := json.NewEncoder(h.in).Encode(j); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	var r report
	go func() { done <- h.results.Decode(&r) }()
	limit := time.NewTimer(j.Connect + j.Watch + 4*patience)
	defer limit.Stop()
	what := "the process ended"
	var err error
	select {
	case err = <-done:
	case <-limit.C:
		what = "it hangs"
		_ = h.cmd.Process.Signal(syscall.SIGQUIT) // its stacks
		err = <-done
	}
	if err == nil {
		return &r, nil
	}
	h.end()
	return nil, fmt.Errorf("%s: %w, %s\n%s", what, err, h.cmd.ProcessState, head(h.stderr.String()))
}

// head is the beginning of a text.
func head(text string) string {
	const most = 16 << 10
	return text[:min(len(text), most)]
}
