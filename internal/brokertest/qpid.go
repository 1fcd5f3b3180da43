//go:build unix

package brokertest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"
)

// qpidVersion is the version of Qpid Broker-J that tests run against.
const qpidVersion = "9.2.0"

// qpidConfig is the initial configuration.
//
//go:embed etc/qpid.json
var qpidConfigText string

// Qpid is a running Qpid Broker-J, which speaks AMQP 1.0. Its methods may be
// called concurrently, except the methods that start and stop it.
type Qpid struct {
	daemon
	cfg  qpidConfig
	lib  string // folder of the distribution's jars
	java string
	port int
	web  int // port of the management; 0 without
}

// QpidOption changes how a Broker-J is configured. Without any it makes queues
// by their use and has a heap of 256m. It always demands the login of [User].
type QpidOption func(*qpidConfig)

type qpidConfig struct {
	heap        string
	policies    []qpidPolicy
	context     map[string]string
	javaOptions []string
	wanted      int // port; 0: a free one
	management  bool
}

// qpidPolicy says which queues are made by their use. The first that matches
// counts.
type qpidPolicy struct {
	Pattern    string            `json:"pattern"` // a regular expression for the whole name
	Type       string            `json:"nodeType"`
	OnPublish  bool              `json:"createdOnPublish"`
	OnConsume  bool              `json:"createdOnConsume"`
	Attributes map[string]string `json:"attributes"`
}

// WithQpidLimit makes the queues whose whole name matches the regular expression
// hold producers back when they have that many messages: their credit is
// withdrawn by a flow with drain.
func WithQpidLimit(pattern string, messages int) QpidOption {
	return func(c *qpidConfig) {
		c.add(pattern, map[string]string{
			"overflowPolicy": "PRODUCER_FLOW_CONTROL", "maximumQueueDepthMessages": strconv.Itoa(messages),
		})
	}
}

// WithQpidDefaultPort takes port 5672 if it is free.
func WithQpidDefaultPort() QpidOption {
	return func(c *qpidConfig) { c.wanted = defaultAMQPPort }
}

// WithQpidManagement starts the management over HTTP, for [Qpid.QueueDepth] and [Qpid.CloseAllConnections].
func WithQpidManagement() QpidOption {
	return func(c *qpidConfig) { c.management = true }
}

// WithQpidContext sets a context variable of the broker, which its virtual host inherits, for example
// broker.flowToDiskThreshold. Broker-J ignores unknown names without a word.
func WithQpidContext(key, value string) QpidOption {
	return func(c *qpidConfig) { c.context[key] = value }
}

// WithQpidJavaOptions appends options to those of the broker's JVM. A largest heap and a collector replace ours.
func WithQpidJavaOptions(options ...string) QpidOption {
	return func(c *qpidConfig) { c.javaOptions = append(c.javaOptions, options...) }
}

func (c *qpidConfig) add(pattern string, attributes map[string]string) {
	c.policies = append(c.policies, qpidPolicy{pattern, "queue", true, true, attributes})
}

// StartQpid starts a broker for one test and ends it with the test. A broker that
// cannot start fails the test; a test that fails logs the end of the broker's log.
func StartQpid(tb testing.TB, opts ...QpidOption) *Qpid {
	tb.Helper()
	Needs(tb, "Qpid Broker-J")
	q, err := LaunchQpid(tb.Context(), opts...)
	keepFor(tb, "Qpid Broker-J", err, func() string { return q.LogTail() }, func() error { return q.Close() })
	return q
}

// LaunchQpid starts a broker and waits until it is ready, about three seconds. The
// first time on a machine it also fetches the distribution. The caller must Close
// it. The context bounds the start only.
func LaunchQpid(ctx context.Context, opts ...QpidOption) (*Qpid, error) {
	cfg := qpidConfig{heap: "256m", context: map[string]string{}}
	for _, opt := range opts {
		opt(&cfg)
	}
	if err := checkJavaOptions(cfg.javaOptions); err != nil {
		return nil, fmt.Errorf("configure Broker-J: %w", err)
	}
	// Message groups are a matter of the queue, off by default.
	cfg.add(".*", map[string]string{"messageGroupType": "STANDARD"})
	java, err := javaPath()
	if err != nil {
		return nil, err
	}
	lib, err := qpidLib(ctx)
	if err != nil {
		return nil, err
	}
	dir, owner, err := newBrokerDir("qpid")
	if err != nil {
		return nil, err
	}
	q := &Qpid{
		daemon: daemon{title: "Qpid Broker-J", dir: dir, log: "qpid.log", owner: owner}, cfg: cfg, lib: lib,
		java: java,
	}
	if err := q.firstStart(ctx); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// qpidLib returns the folder with the broker's jars. The store on Berkeley DB is
// left out: its library is not to be had where the others are.
func qpidLib(ctx context.Context) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	return once(ctx, cache, "qpid-broker-"+qpidVersion, func(tmp string) error {
		return mvnClassPath(ctx, tmp, mavenDependency{
			group: "org.apache.qpid", artifact: "qpid-broker", version: qpidVersion, without: []string{"com.sleepycat:je"},
		})
	})
}

// firstStart starts on a free port, and on another when another process took it before it
// could be bound.
func (q *Qpid) firstStart(ctx context.Context) error {
	for try := 1; ; try++ {
		free, err := q.pickPorts(q.cfg.wanted, 0)
		if err != nil {
			return err
		}
		if q.port = free[0]; q.cfg.management {
			q.web = free[1]
		}
		if err := q.writeConfig(); err != nil {
			return err
		}
		err = q.Start(ctx)
		if err == nil || try == 3 || !strings.Contains(err.Error(), addressTaken) {
			return err
		}
	}
}

func (q *Qpid) writeConfig() error {
	// One in memory refuses persistent messages.
	host, err := json.Marshal(map[string]any{
		"type": "DERBY", "storePath": filepath.Join(q.dir, "messages"), "nodeAutoCreationPolicies": q.cfg.policies,
	})
	if err != nil {
		return fmt.Errorf("configure Broker-J: %w", err)
	}
	quoted := func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	}
	t, err := template.New("").Funcs(template.FuncMap{"json": quoted}).Parse(qpidConfigText)
	if err != nil {
		return fmt.Errorf("read the configuration of Broker-J: %w", err)
	}
	var text strings.Builder
	err = t.Execute(&text, map[string]any{
		"Port": q.port, "Management": q.web, "User": User, "Password": Password, "VirtualHost": string(host),
		"Context": q.cfg.context, "Queues": filepath.Join(q.dir, "queues"), // they survive a restart, as their messages do
	})
	if err != nil {
		return fmt.Errorf("fill in the configuration of Broker-J: %w", err)
	}
	if err := os.WriteFile(q.configFile(), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("write the configuration of Broker-J: %w", err)
	}
	return nil
}

func (q *Qpid) configFile() string { return filepath.Join(q.dir, "initial-config.json") }

// Start starts a stopped or killed broker again, on the same port, and waits until
// it is ready. Starting a running one is an error.
func (q *Qpid) Start(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.startMain(ctx, processSpec{
		name: "qpid",
		path: q.java,
		args: append(javaOptions(append(jvm("-XX:+UseG1GC"), "-Xms64m", "-Xmx"+q.cfg.heap), q.cfg.javaOptions),
			"-Djava.io.tmpdir="+q.dir,
			"-Dderby.stream.error.file="+filepath.Join(q.dir, "derby.log"),
			"-classpath", filepath.Join(q.lib, "*"), "org.apache.qpid.server.Main",
			"-icp", q.configFile(), "-st", "Memory",
		),
		dir:     q.dir,
		env:     []string{"QPID_WORK=" + q.dir},
		logFile: q.LogFile(),
		ready:   "BRK-1004", // ready
		timeout: 4 * time.Minute,
		hint:    "Broker-J 9 needs Java 11 or newer; its folder is " + q.dir,
	})
}

// AMQPURL returns amqp://127.0.0.1:PORT.
func (q *Qpid) AMQPURL() string { return hostURL("amqp", q.port) }

// Title returns name and version: "Qpid Broker-J 9.2.0".
func (q *Qpid) Title() string { return "Qpid Broker-J " + qpidVersion }
