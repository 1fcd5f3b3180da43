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
	port int
	web  int // port of the management; 0 without
}

// QpidOption changes how a Broker-J is configured. Without any it makes queues
// by their use and has a heap of 256m. It always demands the login of [User].
type QpidOption func(*qpidConfig)

type qpidConfig struct {
	policies   []qpidPolicy
	wanted     int // port; 0: a free one
	management bool
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

// WithQpidLimit limits queues to a number of messages; the regular expression matches their whole name. A full queue
// blocks its producers: their credit is withdrawn by a flow with drain.
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

func (c *qpidConfig) add(pattern string, attributes map[string]string) {
	c.policies = append(c.policies, qpidPolicy{pattern, "queue", true, true, attributes})
}

// StartQpid starts a broker for one test and ends it with the test. A broker that
// cannot start fails the test; a test that fails logs the end of the broker's log.
func StartQpid(tb testing.TB, opts ...QpidOption) *Qpid {
	tb.Helper()
	return startForTest(tb, "Qpid Broker-J", LaunchQpid, opts)
}

// LaunchQpid starts a broker and waits until it is ready, about three seconds. The
// first time on a machine it also fetches the distribution. The caller must Close
// it. The context bounds the start only.
func LaunchQpid(ctx context.Context, opts ...QpidOption) (*Qpid, error) {
	q := &Qpid{}
	for _, opt := range opts {
		opt(&q.cfg)
	}
	// Message groups are a matter of the queue, off by default.
	q.cfg.add(".*", map[string]string{"messageGroupType": "STANDARD"})
	if err := q.open("Qpid Broker-J", "qpid", true); err != nil {
		return nil, err
	}
	if err := q.launch(ctx); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *Qpid) launch(ctx context.Context) (err error) {
	if q.lib, err = qpidLib(ctx); err != nil {
		return err
	}
	return q.firstStart(q.configure, func() error { return q.Start(ctx) })
}

// configure picks ports and writes the configuration.
func (q *Qpid) configure() error {
	free, err := q.pickPorts(q.cfg.wanted, 0)
	if err != nil {
		return err
	}
	if q.port = free[0]; q.cfg.management {
		q.web = free[1]
	}
	return q.writeConfig()
}

// qpidLib returns the folder with the broker's jars. The store on Berkeley DB is
// left out: its library is not to be had where the others are.
func qpidLib(ctx context.Context) (string, error) {
	return once(ctx, "qpid-broker-"+qpidVersion, func(tmp string) error {
		return mvnClassPath(ctx, tmp, mavenDependency{
			group: "org.apache.qpid", artifact: "qpid-broker", version: qpidVersion, without: []string{"com.sleepycat:je"},
		})
	})
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
		"Queues": filepath.Join(q.dir, "queues"), // they survive a restart, as their messages do
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
		args: append(jvm("-XX:+UseG1GC"), "-Xms64m", "-Xmx256m",
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
