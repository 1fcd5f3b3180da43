//go:build unix

package brokertest

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"
)

// ActiveMQCoordinates is the distribution of ActiveMQ Classic that tests run
// against.
const ActiveMQCoordinates = "org.apache.activemq:apache-activemq:5.18.3:tar.gz:bin"

// activemqEtc is the configuration.
//
//go:embed etc/activemq
var activemqEtc embed.FS

// ActiveMQ is a running ActiveMQ Classic broker. Its methods may be called
// concurrently, but for those that start and stop it.
type ActiveMQ struct {
	cfg   activemqConfig
	home  string // the distribution
	dir   string
	java  string
	amqp  int // ports
	stomp int
	owner func()

	mu   sync.Mutex
	proc *process
}

// ActiveMQOption changes how an ActiveMQ Classic broker is configured. Without
// any it lets everybody in and has a heap of 512M.
type ActiveMQOption func(*activemqConfig)

type activemqConfig struct {
	heap  string
	login bool
}

// WithActiveMQHeap sets the broker's heap, in Java's notation.
func WithActiveMQHeap(size string) ActiveMQOption {
	return func(c *activemqConfig) { c.heap = size }
}

// WithActiveMQLogin refuses whoever is not [User] with [Password].
func WithActiveMQLogin() ActiveMQOption {
	return func(c *activemqConfig) { c.login = true }
}

// StartActiveMQ starts a broker for one test and ends it with the test. A broker
// that cannot start fails the test; a test that fails logs the end of the
// broker's log.
func StartActiveMQ(tb testing.TB, opts ...ActiveMQOption) *ActiveMQ {
	tb.Helper()
	a, err := LaunchActiveMQ(tb.Context(), opts...)
	if err != nil {
		tb.Fatalf("this test needs an ActiveMQ Classic broker: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the end of the broker's log:\n%s", a.LogTail())
		}
		if err := a.Close(); err != nil {
			tb.Error(err)
		}
	})
	return a
}

// LaunchActiveMQ starts a broker and waits until it is ready, about three
// seconds. The first time on a machine it also fetches the distribution. The
// caller must Close it. The context bounds the start only.
func LaunchActiveMQ(ctx context.Context, opts ...ActiveMQOption) (*ActiveMQ, error) {
	cfg := activemqConfig{heap: "512M"}
	for _, opt := range opts {
		opt(&cfg)
	}
	java, err := javaPath()
	if err != nil {
		return nil, err
	}
	home, err := mavenUnpacked(ctx, ActiveMQCoordinates)
	if err != nil {
		return nil, err
	}
	dir, owner, err := newBrokerDir("activemq")
	if err != nil {
		return nil, err
	}
	a := &ActiveMQ{cfg: cfg, home: home, dir: dir, java: java, owner: owner}
	if err := a.firstStart(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// firstStart starts the broker on free ports, and on others when somebody took
// one of them before the broker could bind it.
func (a *ActiveMQ) firstStart(ctx context.Context) error {
	for try := 1; ; try++ {
		free, err := freePorts(2)
		if err != nil {
			return err
		}
		a.amqp, a.stomp = free[0], free[1]
		if err := a.writeConfig(); err != nil {
			return err
		}
		err = a.Start(ctx)
		if err == nil || try == 3 || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
}

func (a *ActiveMQ) writeConfig() error {
	conf := filepath.Join(a.dir, "conf")
	for _, dir := range []string{conf, filepath.Join(a.dir, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create a folder of ActiveMQ: %w", err)
		}
	}
	templates, err := template.New("").Funcs(template.FuncMap{"xml": escapeXML}).ParseFS(activemqEtc, "etc/activemq/*")
	if err != nil {
		return fmt.Errorf("read the configuration of ActiveMQ: %w", err)
	}
	data := map[string]any{
		"Data": filepath.Join(a.dir, "data"), "Login": a.cfg.login, "User": User, "Password": Password,
		"AMQPPort": a.amqp, "STOMPPort": a.stomp,
	}
	for _, name := range []string{"activemq.xml", "log4j2.properties"} {
		var text strings.Builder
		if err := templates.ExecuteTemplate(&text, name, data); err != nil {
			return fmt.Errorf("fill in %s of ActiveMQ: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(conf, name), []byte(text.String()), 0o600); err != nil {
			return fmt.Errorf("write the configuration of ActiveMQ: %w", err)
		}
	}
	return nil
}

// Start starts a stopped or killed broker again, with the same ports, the same
// configuration and the messages that its store kept, and waits until it is
// ready. Starting a running one is an error.
func (a *ActiveMQ) Start(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proc != nil && a.proc.alive() {
		return errors.New("start ActiveMQ: it is running; Stop or Kill it first")
	}
	proc, err := startProcess(ctx, processSpec{
		name:    "activemq",
		path:    a.java,
		args:    a.javaArgs(),
		dir:     a.dir,
		logFile: a.LogFile(),
		ready:   "For help or more information please see: http", // the last line of a start
		timeout: 90 * time.Second,
		hint:    "ActiveMQ Classic 5.18 needs Java 11 or newer; its folder is " + a.dir,
	})
	if err != nil {
		return err
	}
	a.proc = proc
	return nil
}

// javaArgs is what the distribution's bin/activemq script would run.
func (a *ActiveMQ) javaArgs() []string {
	conf := filepath.Join(a.dir, "conf")
	return []string{
		"-Xms64M", "-Xmx" + a.cfg.heap, "-XX:+UseG1GC",
		"-Dlog4j2.disableJmx=true",
		"-Dlog4j2.configurationFile=" + filepath.Join(conf, "log4j2.properties"),
		"-Dorg.apache.activemq.default.directory.prefix=" + a.dir + string(filepath.Separator),
		"-Djava.io.tmpdir=" + filepath.Join(a.dir, "tmp"),
		"-Dactivemq.home=" + a.home, "-Dactivemq.base=" + a.dir,
		"-Dactivemq.conf=" + conf, "-Dactivemq.data=" + filepath.Join(a.dir, "data"),
		"-Dactivemq.classpath=" + conf,
		"--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/java.util=ALL-UNNAMED",
		"-jar", filepath.Join(a.home, "bin", "activemq.jar"),
		"start", "xbean:file:" + filepath.Join(conf, "activemq.xml"),
	}
}

// process returns the present one, nil before the first start.
func (a *ActiveMQ) process() *process {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.proc
}

// Alive says whether the broker's process is there; a paused one is.
func (a *ActiveMQ) Alive() bool {
	p := a.process()
	return p != nil && p.alive()
}

// PID returns the process id of the broker as last started.
func (a *ActiveMQ) PID() int { return a.process().pid() }

// Kill ends the broker as a crash would (SIGKILL) and waits until it is gone.
func (a *ActiveMQ) Kill() { a.process().kill() }

// Stop ends the broker as an operator would (SIGTERM) and waits until it is gone,
// 20 s at most; the error says that it then had to be killed.
func (a *ActiveMQ) Stop() error { return a.process().stop(stopGrace) }

// Pause stops the broker in its tracks (SIGSTOP) with its connections open.
func (a *ActiveMQ) Pause() error { return a.process().pause() }

// Resume lets a paused broker go on.
func (a *ActiveMQ) Resume() error { return a.process().signal(syscall.SIGCONT) }

// Close kills the broker and removes its folder. It may be called again.
func (a *ActiveMQ) Close() error {
	if p := a.process(); p != nil {
		p.kill() // nothing of it is kept, so nothing is gained by asking
	}
	err := os.RemoveAll(a.dir)
	a.owner()
	if err != nil {
		return fmt.Errorf("remove the folder of ActiveMQ: %w", err)
	}
	return nil
}

// Done is closed when the process as last started has ended.
func (a *ActiveMQ) Done() <-chan struct{} { return a.process().done }

// Dir returns the broker's folder. It goes with Close.
func (a *ActiveMQ) Dir() string { return a.dir }

// LogFile returns the path of the broker's log.
func (a *ActiveMQ) LogFile() string { return filepath.Join(a.dir, "activemq.log") }

// LogTail returns the last 40 lines of the broker's log.
func (a *ActiveMQ) LogTail() string { return a.process().tail() }

// AMQPURL returns amqp://127.0.0.1:PORT.
func (a *ActiveMQ) AMQPURL() string { return hostURL("amqp", a.amqp) }

// STOMPURL returns stomp://127.0.0.1:PORT.
func (a *ActiveMQ) STOMPURL() string { return hostURL("stomp", a.stomp) }
