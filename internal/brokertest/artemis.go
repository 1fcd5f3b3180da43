//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ArtemisCoordinates is the distribution that tests run against.
const ArtemisCoordinates = "org.apache.artemis:apache-artemis:2.56.0:tar.gz:bin"

// User and Password are the login of the user that may do everything.
const (
	User     = "admin"
	Password = "admin"
)

// stopGrace is how long a broker may take to end by itself.
const stopGrace = 20 * time.Second

// Artemis is a running Artemis broker. Its methods may be called concurrently,
// but for those that start and stop it.
type Artemis struct {
	cfg   artemisConfig
	home  string // the distribution
	dir   string // this broker's folder
	java  string
	ports artemisPorts
	certs *Certs
	owner func() // releases the folder
	jolo  *jolokia

	mu   sync.Mutex
	proc *process
}

// artemisPorts are the ports in use; 0 where there is none.
type artemisPorts struct {
	ArtemisPorts
	tls int
	web int
}

// StartArtemis starts a broker for one test and ends it with the test. A broker
// that cannot start fails the test; a test that fails logs the end of the
// broker's log.
func StartArtemis(tb testing.TB, opts ...ArtemisOption) *Artemis {
	tb.Helper()
	a, err := LaunchArtemis(tb.Context(), opts...)
	if err != nil {
		tb.Fatalf("this test needs an Artemis broker: %v", err)
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

// LaunchArtemis starts a broker and waits until it is ready, about four seconds.
// The first time on a machine it also fetches the distribution. The caller must
// Close it. The context bounds the start only.
func LaunchArtemis(ctx context.Context, opts ...ArtemisOption) (*Artemis, error) {
	cfg := defaultArtemisConfig()
	for _, opt := range opts {
		opt(&cfg)
	}
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure Artemis: %w", err)
	}
	java, err := javaPath()
	if err != nil {
		return nil, err
	}
	home, err := mavenUnpacked(ctx, ArtemisCoordinates)
	if err != nil {
		return nil, err
	}
	dir, owner, err := newBrokerDir("artemis")
	if err != nil {
		return nil, err
	}
	a := &Artemis{cfg: cfg, home: home, dir: dir, java: java, owner: owner}
	if err := a.firstStart(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// firstStart starts the broker on free ports, and on others when somebody took
// one of them before the broker could bind it.
func (a *Artemis) firstStart(ctx context.Context) error {
	if a.cfg.tls {
		certs, err := NewCerts(filepath.Join(a.dir, "certs"))
		if err != nil {
			return err
		}
		a.certs = certs
	}
	for try := 1; ; try++ {
		if err := a.pickPorts(); err != nil {
			return err
		}
		if err := a.writeConfig(); err != nil {
			return err
		}
		err := a.Start(ctx)
		if err == nil {
			break
		}
		taken := strings.Contains(err.Error(), "Address already in use")
		if taken && a.cfg.fixed != (ArtemisPorts{}) {
			return fmt.Errorf("a port that was asked for is taken; free it or leave the choice to us: %w", err)
		}
		if !taken || try == 3 {
			return err
		}
	}
	if a.cfg.management {
		a.jolo = newJolokia(fmt.Sprintf("http://%s:%d/console/jolokia/", loopback, a.ports.web))
	}
	return nil
}

func (a *Artemis) pickPorts() error {
	free, err := freePorts(5)
	if err != nil {
		return err
	}
	a.ports = artemisPorts{ArtemisPorts: a.cfg.fixed}
	for i, port := range []*int{&a.ports.AMQP, &a.ports.STOMP, &a.ports.Core} {
		if *port == 0 {
			*port = free[i]
		}
	}
	if a.cfg.tls {
		a.ports.tls = free[3]
	}
	if a.cfg.management {
		a.ports.web = free[4]
	}
	return nil
}

// Start starts a stopped or killed broker again, with the same ports, the same
// configuration and the messages that its journal kept, and waits until it is
// ready. Starting a running one is an error.
func (a *Artemis) Start(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proc != nil && a.proc.alive() {
		return errors.New("start Artemis: it is running; Stop or Kill it first")
	}
	ready := "AMQ221007" // server is now active
	if a.cfg.management {
		ready = "AMQ241004" // console available, which comes last
	}
	proc, err := startProcess(ctx, processSpec{
		name:    "artemis",
		path:    a.java,
		args:    a.javaArgs(),
		dir:     a.dir,
		logFile: a.LogFile(),
		ready:   ready,
		timeout: a.cfg.startTimeout,
		hint:    "Artemis 2.56 needs Java 17 or newer; its folder is " + a.dir,
	})
	if err != nil {
		return err
	}
	a.proc = proc
	return nil
}

// javaArgs is what the instance's own bin/artemis script would run.
func (a *Artemis) javaArgs() []string {
	return []string{
		"-XX:AutoBoxCacheMax=20000", "-XX:+UseG1GC", "-XX:+UseStringDeduplication",
		"-Xms" + a.cfg.heap, "-Xmx" + a.cfg.heap,
		"-Dhawtio.disableProxy=true", "-Dhawtio.realm=activemq", "-Dhawtio.offline=true", "-Dhawtio.roles=amq",
		"-Dhawtio.rolePrincipalClasses=org.apache.activemq.artemis.spi.core.security.jaas.RolePrincipal",
		"-Djolokia.policyLocation=classpath:jolokia-access.xml",
		"-Dlog4j2.disableJmx=true",
		"--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED",
		"-Djava.security.auth.login.config=" + filepath.Join(a.dir, "etc", "login.config"),
		"-classpath", filepath.Join(a.home, "lib", "artemis-boot.jar"),
		"-Dartemis.home=" + a.home,
		"-Dartemis.instance=" + a.dir,
		"-Dartemis.instance.etc=" + filepath.Join(a.dir, "etc"),
		"-Ddata.dir=" + filepath.Join(a.dir, "data"),
		"-Djava.io.tmpdir=" + filepath.Join(a.dir, "tmp"),
		"org.apache.activemq.artemis.boot.Artemis", "run",
	}
}

// process returns the present one, nil before the first start.
func (a *Artemis) process() *process {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.proc
}

// Alive says whether the broker's process is there; a paused one is.
func (a *Artemis) Alive() bool {
	p := a.process()
	return p != nil && p.alive()
}

// PID returns the process id of the broker as last started.
func (a *Artemis) PID() int { return a.process().pid() }

// Kill ends the broker as a crash would (SIGKILL) and waits until it is gone.
func (a *Artemis) Kill() { a.process().kill() }

// Stop ends the broker as an operator would (SIGTERM) and waits until it is gone,
// 20 s at most; the error says that it then had to be killed.
func (a *Artemis) Stop() error { return a.process().stop(stopGrace) }

// Pause stops the broker in its tracks (SIGSTOP) with its connections open, as a
// long stall would. Resume, Kill, Stop and Close work on a paused broker.
func (a *Artemis) Pause() error { return a.process().pause() }

// Resume lets a paused broker go on.
func (a *Artemis) Resume() error { return a.process().signal(syscall.SIGCONT) }

// Restart stops the broker and starts it again; its journal keeps durable
// messages.
func (a *Artemis) Restart(ctx context.Context) error {
	if err := a.Stop(); err != nil {
		return err
	}
	return a.Start(ctx)
}

// Close kills the broker and removes its folder. It may be called again.
func (a *Artemis) Close() error {
	if p := a.process(); p != nil {
		p.kill() // nothing of it is kept, so nothing is gained by asking
	}
	err := os.RemoveAll(a.dir)
	a.owner()
	if err != nil {
		return fmt.Errorf("remove the folder of Artemis: %w", err)
	}
	return nil
}

// Done is closed when the process as last started has ended.
func (a *Artemis) Done() <-chan struct{} { return a.process().done }

// Home returns the folder of the unpacked distribution. It is shared: only read it.
func (a *Artemis) Home() string { return a.home }

// Dir returns the broker's folder: etc, data and its log. It goes with Close.
func (a *Artemis) Dir() string { return a.dir }

// LogFile returns the path of the broker's log.
func (a *Artemis) LogFile() string { return filepath.Join(a.dir, "artemis.log") }

// LogTail returns the last 40 lines of the broker's log.
func (a *Artemis) LogTail() string { return a.process().tail() }

// AMQPURL returns the URL of the acceptor that speaks AMQP 1.0 only: amqp://127.0.0.1:PORT.
func (a *Artemis) AMQPURL() string { return hostURL("amqp", a.ports.AMQP) }

// STOMPURL returns the URL of the acceptor that speaks STOMP only: stomp://127.0.0.1:PORT.
func (a *Artemis) STOMPURL() string { return hostURL("stomp", a.ports.STOMP) }

// CoreURL returns the URL of the acceptor for CORE, as `artemis perf` takes it:
// tcp://127.0.0.1:PORT.
func (a *Artemis) CoreURL() string { return hostURL("tcp", a.ports.Core) }

// AMQPSURL returns amqps://127.0.0.1:PORT; empty without WithTLS.
func (a *Artemis) AMQPSURL() string { return hostURL("amqps", a.ports.tls) }

// STOMPSURL returns stomp+ssl://127.0.0.1:PORT; empty without WithTLS.
func (a *Artemis) STOMPSURL() string { return hostURL("stomp+ssl", a.ports.tls) }

// ManagementURL returns the URL of Jolokia; empty with WithoutManagement.
func (a *Artemis) ManagementURL() string {
	if a.jolo == nil {
		return ""
	}
	return a.jolo.url
}

// Certs returns the certificates of the TLS acceptor; nil without WithTLS.
func (a *Artemis) Certs() *Certs { return a.certs }

func hostURL(scheme string, port int) string {
	if port == 0 {
		return ""
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(loopback, strconv.Itoa(port))}
	return u.String()
}
