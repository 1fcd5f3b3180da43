//go:build unix

package brokertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// RocketMQVersion is the version that tests run against.
const RocketMQVersion = "5.5.0"

// The login that a broker with [WithRocketMQLogin] knows.
const (
	RocketMQUser     = "perfmq-admin"
	RocketMQPassword = "perfmq-secret"
)

// RocketMQ is a running name server and one broker. Its methods may be called
// concurrently, but for those that start and stop it.
type RocketMQ struct {
	cfg   rocketConfig
	lib   string // folder of the distribution's jars
	dir   string
	java  string
	ports rocketPorts
	owner func()

	mu      sync.Mutex
	namesrv *process
	broker  *process
}

// rocketPorts are the listening ports. The broker also has broker-2 (for control
// traffic) and broker+1 (for replicas).
type rocketPorts struct{ namesrv, broker int }

// StartRocketMQ starts a name server and a broker for one test and ends them
// with it. A broker that cannot start fails the test; a test that fails logs the
// end of the broker's log.
func StartRocketMQ(tb testing.TB, opts ...RocketMQOption) *RocketMQ {
	tb.Helper()
	r, err := LaunchRocketMQ(tb.Context(), opts...)
	if err != nil {
		tb.Fatalf("this test needs a RocketMQ broker: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the end of the broker's log:\n%s", r.LogTail())
		}
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// LaunchRocketMQ starts a name server and a broker and waits until both are
// ready, about six seconds. The first time on a machine it also fetches the
// distribution. The caller must Close it. The context bounds the start only.
func LaunchRocketMQ(ctx context.Context, opts ...RocketMQOption) (*RocketMQ, error) {
	cfg := defaultRocketConfig()
	for _, opt := range opts {
		opt(&cfg)
	}
	java, err := javaPath()
	if err != nil {
		return nil, err
	}
	lib, err := rocketLib(ctx)
	if err != nil {
		return nil, err
	}
	dir, owner, err := newBrokerDir("rocketmq")
	if err != nil {
		return nil, err
	}
	r := &RocketMQ{cfg: cfg, lib: lib, dir: dir, java: java, owner: owner}
	if err := r.firstStart(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// firstStart starts on free ports, and on others when somebody took one of them
// before it could be bound.
func (r *RocketMQ) firstStart(ctx context.Context) error {
	for try := 1; ; try++ {
		if err := r.pickPorts(); err != nil {
			return err
		}
		if err := r.writeConfig(); err != nil {
			return err
		}
		err := r.Start(ctx)
		if err == nil {
			return nil
		}
		r.kill()
		taken := strings.Contains(err.Error(), "Address already in use") || strings.Contains(err.Error(), "BindException")
		if !taken || try == 3 {
			return err
		}
	}
}

// pickPorts looks for a port whose neighbours, which the broker uses too, are
// free as well.
func (r *RocketMQ) pickPorts() error {
	for range 20 {
		ports, err := freePorts(2)
		if err != nil {
			return err
		}
		if portFree(ports[1]-2) && portFree(ports[1]+1) {
			r.ports = rocketPorts{namesrv: ports[0], broker: ports[1]}
			return nil
		}
	}
	return errors.New("find ports for RocketMQ: no free port has free neighbours")
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// Start starts what does not run of name server and broker, with the same ports,
// configuration and messages, and waits until it is ready.
func (r *RocketMQ) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.namesrv == nil || !r.namesrv.alive() {
		r.namesrv, err = startProcess(ctx, r.spec("namesrv", "The Name Server boot success",
			[]string{"-Xms" + r.cfg.namesrvHeap, "-Xmx" + r.cfg.namesrvHeap, "-XX:+UseSerialGC"},
			"org.apache.rocketmq.namesrv.NamesrvStartup"))
		if err != nil {
			return err
		}
	}
	if r.broker == nil || !r.broker.alive() {
		r.broker, err = startProcess(ctx, r.spec("broker", "boot success",
			[]string{"-Xms" + r.cfg.heap, "-Xmx" + r.cfg.heap, "-XX:MaxDirectMemorySize=512m", "-XX:+UseG1GC"},
			"org.apache.rocketmq.broker.BrokerStartup"))
		if err != nil {
			return err
		}
	}
	return r.waitRegistered(ctx)
}

// waitRegistered waits until the name server tells clients of the broker, which is shortly after both are ready.
func (r *RocketMQ) waitRegistered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.startTimeout)
	defer cancel()
	err := poll(ctx, 20*time.Millisecond, func() (bool, error) {
		answer, err := r.ask(ctx, r.NameServer(), rocketClusterInfo, nil)
		return bytes.Contains(answer, []byte(`"`+r.Broker()+`"`)), err
	})
	if err != nil {
		return fmt.Errorf("wait for the broker to register at the name server: %w", err)
	}
	return nil
}

func (r *RocketMQ) spec(name, ready string, jvm []string, class string) processSpec {
	args := append(jvm,
		"-Duser.home="+filepath.Join(r.dir, name+"-home"), // it writes its logs there
		"-Drocketmq.client.logUseSlf4j=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Djava.io.tmpdir="+filepath.Join(r.dir, "tmp"),
		"-classpath", filepath.Join(r.lib, "*"),
		class, "-c", filepath.Join(r.dir, name+".conf"))
	return processSpec{
		name: "rocketmq " + name, path: r.java, args: args, dir: r.dir,
		env:     []string{"ROCKETMQ_HOME=" + r.dir, "NAMESRV_ADDR=" + r.NameServer()},
		logFile: filepath.Join(r.dir, name+".log"), ready: ready, timeout: r.cfg.startTimeout,
		hint: "RocketMQ 5.5 needs Java 8 or newer; its folder is " + r.dir,
	}
}

func (r *RocketMQ) brokerProcess() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broker
}

// Alive says whether the broker's process is there; a paused one is.
func (r *RocketMQ) Alive() bool {
	p := r.brokerProcess()
	return p != nil && p.alive()
}

// PID returns the process id of the broker as last started.
func (r *RocketMQ) PID() int { return r.brokerProcess().pid() }

// Kill ends the broker, not the name server, as a crash would (SIGKILL).
func (r *RocketMQ) Kill() { r.brokerProcess().kill() }

// Stop ends the broker, not the name server, as an operator would (SIGTERM),
// within 20 s; the error says that it then had to be killed.
func (r *RocketMQ) Stop() error { return r.brokerProcess().stop(stopGrace) }

// Pause stops the broker in its tracks (SIGSTOP) with its connections open.
func (r *RocketMQ) Pause() error { return r.brokerProcess().pause() }

// Resume lets a paused broker go on.
func (r *RocketMQ) Resume() error { return r.brokerProcess().signal(syscall.SIGCONT) }

func (r *RocketMQ) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range []*process{r.broker, r.namesrv} {
		if p != nil {
			p.kill()
		}
	}
}

// Close kills broker and name server and removes their folder. It may be called
// again.
func (r *RocketMQ) Close() error {
	r.kill()
	err := os.RemoveAll(r.dir)
	r.owner()
	if err != nil {
		return fmt.Errorf("remove the folder of RocketMQ: %w", err)
	}
	return nil
}

// Done is closed when the broker's process as last started has ended.
func (r *RocketMQ) Done() <-chan struct{} { return r.brokerProcess().done }

// Dir returns the folder with configuration, messages and logs. It goes with Close.
func (r *RocketMQ) Dir() string { return r.dir }

// LogFile returns the path of the broker's output. Its own logs are in
// broker-home/logs of its folder.
func (r *RocketMQ) LogFile() string { return filepath.Join(r.dir, "broker.log") }

// LogTail returns the last 40 lines of the broker's output.
func (r *RocketMQ) LogTail() string {
	if p := r.brokerProcess(); p != nil {
		return p.tail()
	}
	return ""
}

// URL returns rocketmq://127.0.0.1:PORT of the name server.
func (r *RocketMQ) URL() string { return hostURL("rocketmq", r.ports.namesrv) }

// NameServer returns host:port of the name server.
func (r *RocketMQ) NameServer() string {
	return net.JoinHostPort(loopback, strconv.Itoa(r.ports.namesrv))
}

// Broker returns host:port of the broker, as the name server tells it to clients.
func (r *RocketMQ) Broker() string {
	return net.JoinHostPort(loopback, strconv.Itoa(r.ports.broker))
}

// JavaCommand returns the program and arguments that run a class of the
// distribution, such as its benchmarks (org.apache.rocketmq.example.benchmark.*)
// and its admin tool (org.apache.rocketmq.tools.command.MQAdminStartup), with
// their folder for logs within the broker's.
func (r *RocketMQ) JavaCommand(class string, args ...string) []string {
	return append([]string{
		r.java, "-Xms128m", "-Xmx512m", "-Duser.home=" + filepath.Join(r.dir, "tools-home"), "-Drocketmq.home.dir=" + r.dir,
		"-Drocketmq.namesrv.addr=" + r.NameServer(), "-classpath", filepath.Join(r.lib, "*"), class,
	}, args...)
}
