//go:build unix

package brokertest

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"
)

// ActiveMQCoordinates is the distribution of ActiveMQ Classic that tests run
// against.
const ActiveMQCoordinates = "org.apache.activemq:apache-activemq:5.18.3:tar.gz:bin"

// activemq516Coordinates is the distribution of [WithActiveMQ516].
const activemq516Coordinates = "org.apache.activemq:apache-activemq:5.16.7:tar.gz:bin"

// activemqEtc is the configuration.
//
//go:embed etc/activemq
var activemqEtc embed.FS

// ActiveMQ is a running ActiveMQ Classic broker. Its methods may be called
// concurrently, except the methods that start and stop it.
type ActiveMQ struct {
	daemon
	cfg   activemqConfig
	home  string // the distribution
	ports activemqPorts
	certs *Certs // nil without TLS
	agent string // Jolokia's jar; empty without management
}

type activemqPorts struct{ amqp, native, stomp, amqps, stomps, web, openWire int }

// ActiveMQOption changes how an ActiveMQ Classic broker is configured. Without
// any it accepts anyone and has a heap of 512M.
type ActiveMQOption func(*activemqConfig)

type activemqConfig struct {
	heap        string
	coordinates string
	login       bool
	tls         bool // with certificates of clients
	management  bool
	set         map[string]string // of activemq.xml
	wanted      activemqPorts     // 0: a free one
	slaveOf     *ActiveMQ         // the master of the store that it waits for; nil for a master
	name        string            // of the broker; unique in a network
	network     bool              // of brokers
	bridgeTo    *ActiveMQ         // the broker that it connects to in a network; nil of the first one
}

func defaultActiveMQConfig() activemqConfig {
	return activemqConfig{heap: "512M", coordinates: ActiveMQCoordinates, name: "localhost", set: map[string]string{
		"journalMaxFileLength": "8mb", "memoryUsage": "", "schedulerSupport": "false", "sendFailIfNoSpace": "false",
		"storeUsage": "4 gb",
	}}
}

// WithActiveMQSetting sets an attribute of activemq.xml, or the limit of storeUsage or memoryUsage:
// [defaultActiveMQConfig] has the keys. Sizes are in ActiveMQ's notation: "64 mb".
func WithActiveMQSetting(key, value string) ActiveMQOption {
	return func(c *activemqConfig) { c.set[key] = value }
}

// WithActiveMQHeap sets the broker's heap, in Java's notation.
func WithActiveMQHeap(size string) ActiveMQOption {
	return func(c *activemqConfig) { c.heap = size }
}

// WithActiveMQDefaultPorts takes the ports that brokers have by default (5672, 61613, 8161) where they are free.
func WithActiveMQDefaultPorts() ActiveMQOption {
	return func(c *activemqConfig) {
		c.wanted = activemqPorts{amqp: defaultAMQPPort, stomp: defaultSTOMPPort, web: defaultWebPort}
	}
}

// WithActiveMQ516 starts ActiveMQ Classic 5.16.
func WithActiveMQ516() ActiveMQOption {
	return func(c *activemqConfig) { c.coordinates = activemq516Coordinates }
}

// WithActiveMQLogin refuses logins other than [User] with [Password].
func WithActiveMQLogin() ActiveMQOption {
	return func(c *activemqConfig) { c.login = true }
}

// WithActiveMQClientCerts adds encrypted listeners for AMQP and STOMP that demand a certificate of the client, beside a
// login. See [ActiveMQ.Certs]. The others stay plain.
func WithActiveMQClientCerts() ActiveMQOption {
	return func(c *activemqConfig) { c.tls = true }
}

// WithActiveMQManagement lets [ActiveMQ.Queue] and [ActiveMQ.Topic] read the broker's counters, by Jolokia.
func WithActiveMQManagement() ActiveMQOption {
	return func(c *activemqConfig) { c.management = true }
}

// StartActiveMQ starts a broker for one test and ends it with the test. A broker
// that cannot start fails the test; a test that fails logs the end of the
// broker's log.
func StartActiveMQ(tb testing.TB, opts ...ActiveMQOption) *ActiveMQ {
	tb.Helper()
	return startForTest(tb, "ActiveMQ Classic", LaunchActiveMQ, opts)
}

// LaunchActiveMQ starts a broker and waits until it is ready, about three
// seconds. The first time on a machine it also fetches the distribution. The
// caller must Close it. The context bounds the start only.
func LaunchActiveMQ(ctx context.Context, opts ...ActiveMQOption) (*ActiveMQ, error) {
	a := &ActiveMQ{cfg: defaultActiveMQConfig()}
	for _, opt := range opts {
		opt(&a.cfg)
	}
	if err := a.open("ActiveMQ", "activemq", true); err != nil {
		return nil, err
	}
	if err := a.launch(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *ActiveMQ) launch(ctx context.Context) (err error) {
	if a.home, err = mavenUnpacked(ctx, a.cfg.coordinates); err != nil {
		return err
	}
	if a.cfg.management {
		if a.agent, err = MavenJar(ctx, jolokiaAgentCoordinates); err != nil {
			return err
		}
	}
	return a.firstStart(a.configure, func() error { return a.Start(ctx) })
}

// configure picks ports and writes the configuration.
func (a *ActiveMQ) configure() error {
	wanted := a.cfg.wanted
	free, err := a.pickPorts(wanted.amqp, wanted.stomp, 0, 0, 0, wanted.web, 0)
	if err != nil {
		return err
	}
	a.ports = activemqPorts{amqp: free[0], stomp: free[1], native: free[4], openWire: free[6]}
	if a.cfg.tls {
		a.ports.amqps, a.ports.stomps = free[2], free[3]
	}
	if a.cfg.management {
		a.ports.web = free[5]
	}
	return a.writeConfig()
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
		"AMQPPort": a.ports.amqp, "STOMPPort": a.ports.stomp, "AMQPSPort": a.ports.amqps, "STOMPSPort": a.ports.stomps,
		"KeyStore": "", "NativePort": a.ports.native, "Set": a.cfg.set,
		"Store": filepath.Join(a.dir, "data", "kahadb"),
		"Name":  a.cfg.name, "OpenWirePort": a.ports.openWire, "BridgePort": a.bridgePort(),
	}
	if master := a.cfg.slaveOf; master != nil {
		data["Store"] = filepath.Join(master.dir, "data", "kahadb")
	}
	if a.cfg.tls {
		if err := a.writeStores(data); err != nil {
			return err
		}
	}
	for _, name := range []string{"activemq.xml", "log4j2.properties", "log4j.properties"} {
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

// writeStores makes certificates and the key stores that hold them. openssl packs the key: keytool reads no PEM keys.
func (a *ActiveMQ) writeStores(data map[string]any) (err error) {
	if a.certs, err = NewCerts(filepath.Join(a.dir, "certs")); err != nil {
		return err
	}
	const password = "password"
	keys, trust := filepath.Join(a.dir, "certs", "server.p12"), filepath.Join(a.dir, "certs", "ca.p12")
	data["KeyStore"], data["TrustStore"], data["StorePassword"] = keys, trust, password
	for _, c := range [][]string{
		{
			"openssl", "pkcs12", "-export", "-name", "server", "-inkey", a.certs.ServerKeyFile, "-in", a.certs.ServerCertFile,
			"-out", keys, "-passout", "pass:" + password,
		},
		{
			filepath.Join(filepath.Dir(a.java), "keytool"), "-importcert", "-noprompt", "-alias", "ca",
			"-file", a.certs.CAFile, "-keystore", trust, "-storepass", password,
		},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil { //nolint:gosec,noctx // local and short
			return fmt.Errorf("make a Java key store: %s: %w\n%s", c[0], err, out)
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
	ready := "For help or more information please see: http" // the last line of a start
	if a.cfg.slaveOf != nil {
		ready = "now in slave mode"
	}
	return a.startMain(ctx, processSpec{
		name:    "activemq",
		path:    a.java,
		args:    a.javaArgs(),
		dir:     a.dir,
		logFile: a.LogFile(),
		ready:   ready,
		timeout: 4 * time.Minute,
		hint:    "ActiveMQ Classic needs Java 11 or newer; its folder is " + a.dir,
	})
}

// javaArgs are the arguments that the distribution's bin/activemq script would use.
func (a *ActiveMQ) javaArgs() []string {
	conf := filepath.Join(a.dir, "conf")
	options := append(jvm("-XX:+UseG1GC"), "-Xms64M", "-Xmx"+a.cfg.heap)
	if a.agent != "" {
		options = append(options, fmt.Sprintf("-javaagent:%s=host=%s,port=%d,user=%s,password=%s",
			a.agent, loopback, a.ports.web, User, Password))
	}
	return append(options,
		"-Dlog4j2.disableJmx=true",
		// 5.16 finds log4j.properties on its class path
		"-Dlog4j2.configurationFile="+filepath.Join(conf, "log4j2.properties"),
		"-Dorg.apache.activemq.default.directory.prefix="+a.dir+string(filepath.Separator),
		"-Djava.io.tmpdir="+filepath.Join(a.dir, "tmp"),
		"-Dactivemq.home="+a.home, "-Dactivemq.base="+a.dir,
		"-Dactivemq.conf="+conf, "-Dactivemq.data="+filepath.Join(a.dir, "data"),
		"-Dactivemq.classpath="+conf,
		"--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-opens", "java.base/java.util=ALL-UNNAMED",
		"-jar", filepath.Join(a.home, "bin", "activemq.jar"),
		"start", "xbean:file:"+filepath.Join(conf, "activemq.xml"),
	)
}

// AMQPURL returns amqp://127.0.0.1:PORT.
func (a *ActiveMQ) AMQPURL() string { return hostURL("amqp", a.ports.amqp) }

// NativeAMQPURL returns amqp://127.0.0.1:PORT of a connector without the
// transformer jms, as the distribution has it.
func (a *ActiveMQ) NativeAMQPURL() string { return hostURL("amqp", a.ports.native) }

// STOMPURL returns stomp://127.0.0.1:PORT.
func (a *ActiveMQ) STOMPURL() string { return hostURL("stomp", a.ports.stomp) }

// OpenWireURL returns the URL for the broker's own JMS client.
func (a *ActiveMQ) OpenWireURL() string { return hostURL("tcp", a.ports.openWire) }

// AMQPSURL returns amqps://127.0.0.1:PORT; empty without TLS.
func (a *ActiveMQ) AMQPSURL() string { return hostURL("amqps", a.ports.amqps) }

// STOMPSURL returns stomp+ssl://127.0.0.1:PORT; empty without TLS.
func (a *ActiveMQ) STOMPSURL() string { return hostURL("stomp+ssl", a.ports.stomps) }

// ManagementURL returns the URL of Jolokia; empty without [WithActiveMQManagement].
func (a *ActiveMQ) ManagementURL() string {
	if a.ports.web == 0 {
		return ""
	}
	return hostURL("http", a.ports.web) + "/jolokia/"
}

// Certs returns the certificates of the encrypted connectors; nil without TLS.
func (a *ActiveMQ) Certs() *Certs { return a.certs }
