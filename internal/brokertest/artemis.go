//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ArtemisCoordinates is the distribution that tests run against.
const ArtemisCoordinates = "org.apache.artemis:apache-artemis:2.56.0:tar.gz:bin"

// artemis219Coordinates is the distribution of [WithArtemis219].
const artemis219Coordinates = "org.apache.activemq:apache-artemis:2.19.0:tar.gz:bin"

// User and Password are the login of the user that may do everything.
const (
	User     = "admin"
	Password = "admin"
)

// stopGrace is how long a broker may take to end by itself.
const stopGrace = 20 * time.Second

// Artemis is a running Artemis broker. Its methods may be called concurrently,
// except the methods that start and stop it.
type Artemis struct {
	daemon
	cfg   artemisConfig
	home  string // the distribution
	java  string
	ports artemisPorts
	certs *Certs
	jolo  *jolokia
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
	Needs(tb, "Artemis")
	a, err := LaunchArtemis(tb.Context(), opts...)
	keepFor(tb, "Artemis", err, func() string { return a.LogTail() }, func() error { return a.Close() })
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
	home, err := mavenUnpacked(ctx, cfg.coordinates())
	if err != nil {
		return nil, err
	}
	dir, owner, err := newBrokerDir("artemis")
	if err != nil {
		return nil, err
	}
	a := &Artemis{
		daemon: daemon{title: "Artemis", dir: dir, log: "artemis.log", owner: owner},
		cfg:    cfg, home: home, java: java,
	}
	if err := a.firstStart(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// firstStart starts the broker on free ports, and on others when another process took
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
		taken := strings.Contains(err.Error(), addressTaken)
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
	wanted := make([]int, 5)
	if a.cfg.defaultPorts {
		wanted = []int{defaultAMQPPort, defaultSTOMPPort, defaultCorePort, 0, defaultWebPort}
	}
	free, err := a.daemon.pickPorts(wanted...)
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
	ready := "AMQ221007" // server is now active
	if a.cfg.management {
		ready = "AMQ241004" // console available, which comes last
	}
	switch {
	case a.cfg.backupOf == nil:
	case a.cfg.pairs == sharedStore:
		ready = "AMQ221109" // waiting for the primary to fail
	default:
		ready = "AMQ221024" // has all that the primary has
	}
	err := a.startMain(ctx, processSpec{
		name:    "artemis",
		path:    a.java,
		args:    a.javaArgs(),
		dir:     a.dir,
		logFile: a.LogFile(),
		ready:   ready,
		timeout: 4 * time.Minute, // a loaded machine starts a JVM slowly
		hint:    "Artemis needs Java 17 or newer; its folder is " + a.dir,
	})
	if err != nil {
		return err
	}
	return a.checkJournal()
}

// javaArgs are the arguments that the instance's own bin/artemis script would use.
func (a *Artemis) javaArgs() []string {
	own := append(jvm("-XX:+UseG1GC", "-XX:+UseStringDeduplication"),
		"-XX:AutoBoxCacheMax=20000", "-Xms"+a.cfg.heap, "-Xmx"+a.cfg.heap, "-Djava.library.path="+a.libraryPath())
	return append(javaOptions(own, a.cfg.javaOptions),
		"-Dhawtio.disableProxy=true", "-Dhawtio.realm=activemq", "-Dhawtio.offline=true", "-Dhawtio.roles=amq",
		"-Dhawtio.rolePrincipalClasses=org.apache.activemq.artemis.spi.core.security.jaas.RolePrincipal",
		"-Djolokia.policyLocation=classpath:jolokia-access.xml",
		"-Dlog4j2.disableJmx=true",
		"--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED",
		"-Djava.security.auth.login.config="+filepath.Join(a.dir, "etc", "login.config"),
		"-classpath", filepath.Join(a.home, "lib", "artemis-boot.jar"),
		"-Dartemis.home="+a.home,
		"-Dartemis.instance="+a.dir,
		"-Dartemis.instance.etc="+filepath.Join(a.dir, "etc"),
		"-Ddata.dir="+filepath.Join(a.dir, "data"),
		"-Djava.io.tmpdir="+filepath.Join(a.dir, "tmp"),
		"org.apache.activemq.artemis.boot.Artemis", "run",
	)
}

// Restart stops the broker and starts it again; its journal keeps durable
// messages.
func (a *Artemis) Restart(ctx context.Context) error {
	if err := a.Stop(); err != nil {
		return err
	}
	return a.Start(ctx)
}

// Home returns the folder of the unpacked distribution. It is shared: only read it.
func (a *Artemis) Home() string { return a.home }

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
