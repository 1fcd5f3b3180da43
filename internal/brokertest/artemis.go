//go:build unix

package brokertest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
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

// stopGrace is the time that a broker may take to end by itself.
const stopGrace = time.Minute

// Artemis is a running Artemis broker. Its methods may be called concurrently,
// except the methods that start and stop it.
type Artemis struct {
	daemon
	cfg   artemisConfig
	home  string // the distribution
	ports artemisPorts
	certs *Certs
}

// artemisPorts are the ports in use; 0 without a listener.
type artemisPorts struct{ amqp, stomp, core, tls, web int }

// StartArtemis starts a broker for one test and ends it with the test. A broker
// that cannot start fails the test; a test that fails logs the end of the
// broker's log.
func StartArtemis(tb testing.TB, opts ...ArtemisOption) *Artemis {
	tb.Helper()
	return startForTest(tb, "Artemis", LaunchArtemis, opts)
}

// LaunchArtemis starts a broker and waits until it is ready, about four seconds.
// The first time on a machine it also fetches the distribution. The caller must
// Close it. The context bounds the start only.
func LaunchArtemis(ctx context.Context, opts ...ArtemisOption) (*Artemis, error) {
	a := &Artemis{cfg: artemisConfig{heap: "512M", management: true}}
	for _, opt := range opts {
		opt(&a.cfg)
	}
	if err := a.open("Artemis", "artemis", true); err != nil {
		return nil, err
	}
	if err := a.launch(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Artemis) launch(ctx context.Context) (err error) {
	if a.home, err = mavenUnpacked(ctx, a.cfg.coordinates()); err != nil {
		return err
	}
	if a.cfg.tls {
		if a.certs, err = NewCerts(filepath.Join(a.dir, "certs")); err != nil {
			return err
		}
	}
	return a.firstStart(a.configure, func() error { return a.Start(ctx) })
}

// configure picks ports and writes the configuration.
func (a *Artemis) configure() error {
	free, err := a.pickPorts(a.cfg.wanted.amqp, a.cfg.wanted.stomp, a.cfg.wanted.core, 0, a.cfg.wanted.web)
	if err != nil {
		return err
	}
	a.ports = artemisPorts{amqp: free[0], stomp: free[1], core: free[2]}
	if a.cfg.tls {
		a.ports.tls = free[3]
	}
	if a.cfg.management {
		a.ports.web = free[4]
	}
	return a.writeConfig()
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
	return a.startMain(ctx, processSpec{
		name:    "artemis",
		path:    a.java,
		args:    a.javaArgs(),
		dir:     a.dir,
		logFile: a.LogFile(),
		ready:   ready,
		timeout: 4 * time.Minute, // a loaded machine starts a JVM slowly
		hint:    "Artemis needs Java 17 or newer; its folder is " + a.dir,
	})
}

// javaArgs are the arguments that the instance's own bin/artemis script would use.
func (a *Artemis) javaArgs() []string {
	return append(jvm("-XX:+UseG1GC", "-XX:+UseStringDeduplication"),
		"-XX:AutoBoxCacheMax=20000", "-Xms"+a.cfg.heap, "-Xmx"+a.cfg.heap,
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

// AMQPURL returns the URL of the acceptor that speaks AMQP 1.0 only: amqp://127.0.0.1:PORT.
func (a *Artemis) AMQPURL() string { return hostURL("amqp", a.ports.amqp) }

// STOMPURL returns the URL of the acceptor that speaks STOMP only: stomp://127.0.0.1:PORT.
func (a *Artemis) STOMPURL() string { return hostURL("stomp", a.ports.stomp) }

// CoreURL returns the URL of the acceptor for CORE, as `artemis perf` takes it:
// tcp://127.0.0.1:PORT.
func (a *Artemis) CoreURL() string { return hostURL("tcp", a.ports.core) }

// AMQPSURL returns amqps://127.0.0.1:PORT; empty without WithTLS.
func (a *Artemis) AMQPSURL() string { return hostURL("amqps", a.ports.tls) }

// STOMPSURL returns stomp+ssl://127.0.0.1:PORT; empty without WithTLS.
func (a *Artemis) STOMPSURL() string { return hostURL("stomp+ssl", a.ports.tls) }

// ManagementURL returns the URL of Jolokia; empty with WithoutManagement.
func (a *Artemis) ManagementURL() string {
	if a.ports.web == 0 {
		return ""
	}
	return hostURL("http", a.ports.web) + "/console/jolokia/"
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
