//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rabbitmqScripts is where the Debian package has its programs. The programs in the PATH are wrappers that become the
// user rabbitmq and use its folders.
const rabbitmqScripts = "/usr/lib/rabbitmq/bin"

// rabbitmq4Suite is the Debian release that has RabbitMQ 4.
const rabbitmq4Suite = "trixie"

// rabbitmqInstall is the error text when the package is missing.
const rabbitmqInstall = "RabbitMQ is not installed: apt-get install --no-install-recommends rabbitmq-server"

// RabbitMQ is a running RabbitMQ broker that speaks AMQP 1.0 (before version 4
// by a plug-in) and STOMP. Its methods may be called concurrently, except
// the methods that start and stop it.
type RabbitMQ struct {
	daemon // its helper is epmd, which runs until Close
	cfg    rabbitmqConfig
	root   scratchRoot // where it is installed
	ports  rabbitmqPorts
	certs  *Certs // nil without TLS
}

// rabbitmqPorts are the listening ports: rabbitmqctl talks to the broker over Erlang's protocol at dist, and finds
// that port at epmd.
type rabbitmqPorts struct{ amqp, stomp, amqps, stomps, dist, epmd, management int }

// RabbitMQOption changes how a RabbitMQ broker is configured. Without any it has
// plain listeners only.
type RabbitMQOption func(*rabbitmqConfig)

type rabbitmqConfig struct {
	tls, four, management bool              // tls: with certificates of clients
	wanted                rabbitmqPorts     // 0: a free one
	set                   map[string]string // of rabbitmq.conf
}

// WithRabbitMQ4 starts RabbitMQ 4, which needs no installation: its Debian
// packages are unpacked into the cache, and it runs in that folder by chroot, as
// root or in a user namespace.
func WithRabbitMQ4() RabbitMQOption {
	return func(c *rabbitmqConfig) { c.four = true }
}

// WithRabbitMQDefaultPorts takes the ports that RabbitMQ has by default (5672, 61613) where they are free.
func WithRabbitMQDefaultPorts() RabbitMQOption {
	return func(c *rabbitmqConfig) { c.wanted = rabbitmqPorts{amqp: defaultAMQPPort, stomp: defaultSTOMPPort} }
}

// WithRabbitMQSetting sets a key of rabbitmq.conf. RabbitMQ does not start with an unknown one.
func WithRabbitMQSetting(key, value string) RabbitMQOption {
	return func(c *rabbitmqConfig) { c.set[key] = value }
}

// WithRabbitMQClientCerts adds encrypted listeners for AMQP and STOMP that demand a certificate of the client, beside a
// login. See [RabbitMQ.Certs]. The others stay plain.
func WithRabbitMQClientCerts() RabbitMQOption {
	return func(c *rabbitmqConfig) { c.tls = true }
}

// WithRabbitMQManagement adds the management plugin, which reports the broker's own counters over HTTP; see
// [RabbitMQ.ManagementURL].
func WithRabbitMQManagement() RabbitMQOption {
	return func(c *rabbitmqConfig) { c.management = true }
}

// StartRabbitMQ starts a broker for one test and ends it with the test. Only
// [User] with [Password] is let in. A broker that cannot start fails the test; a
// test that fails logs the end of the broker's log.
func StartRabbitMQ(tb testing.TB, opts ...RabbitMQOption) *RabbitMQ {
	tb.Helper()
	return startForTest(tb, "RabbitMQ", LaunchRabbitMQ, opts)
}

// LaunchRabbitMQ starts a broker and waits until it is ready, about five seconds.
// Without [WithRabbitMQ4] the Debian package must be installed. The caller must
// Close it. The context bounds the start only.
func LaunchRabbitMQ(ctx context.Context, opts ...RabbitMQOption) (*RabbitMQ, error) {
	r := &RabbitMQ{cfg: rabbitmqConfig{set: map[string]string{}}}
	for _, opt := range opts {
		opt(&r.cfg)
	}
	if r.cfg.four {
		var err error
		if r.root, err = debianRoot(ctx, rabbitmq4Suite, "rabbitmq-server"); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(r.root.path(filepath.Join(rabbitmqScripts, "rabbitmq-server"))); err != nil {
		return nil, errors.New(rabbitmqInstall)
	}
	if err := r.open("RabbitMQ", "rabbitmq", false); err != nil {
		return nil, err
	}
	if err := r.firstStart(r.configure, func() error { return r.Start(ctx) }); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// configure picks ports and writes the configuration.
func (r *RabbitMQ) configure() error {
	free, err := r.pickPorts(r.cfg.wanted.amqp, r.cfg.wanted.stomp, 0, 0, 0, 0, 0)
	if err != nil {
		return err
	}
	r.ports = rabbitmqPorts{amqp: free[0], stomp: free[1], dist: free[2], epmd: free[3]}
	if r.cfg.tls {
		r.ports.amqps, r.ports.stomps = free[4], free[5]
	}
	if r.cfg.management {
		r.ports.management = free[6]
	}
	return r.writeConfig()
}

func (r *RabbitMQ) writeConfig() (err error) {
	conf := map[string]string{
		"listeners.tcp.1":                   fmt.Sprintf("%s:%d", loopback, r.ports.amqp),
		"stomp.listeners.tcp.1":             fmt.Sprintf("%s:%d", loopback, r.ports.stomp),
		"default_user":                      User,
		"default_pass":                      Password,
		"cluster_name":                      "perfmq", // or each login over AMQP 1.0 looks up the host's name, twice
		"log.console":                       "true",
		"log.console.level":                 "info",
		"log.connection.level":              "debug", // or it does not log the end of a connection that sent nothing
		"log.file":                          "false",
		"vm_memory_high_watermark.absolute": "1GB",
		"disk_free_limit.absolute":          "50MB",
	}
	if r.cfg.tls {
		if r.certs, err = NewCerts(filepath.Join(r.dir, "certs")); err != nil {
			return err
		}
		maps.Copy(conf, map[string]string{
			"listeners.ssl.1":                  fmt.Sprintf("%s:%d", loopback, r.ports.amqps),
			"stomp.listeners.ssl.1":            fmt.Sprintf("%s:%d", loopback, r.ports.stomps),
			"ssl_options.cacertfile":           r.seen(r.certs.CAFile),
			"ssl_options.certfile":             r.seen(r.certs.ServerCertFile),
			"ssl_options.keyfile":              r.seen(r.certs.ServerKeyFile),
			"ssl_options.verify":               "verify_peer",
			"ssl_options.fail_if_no_peer_cert": "true",
		})
	}
	// An anonymous client would log in as the default user: refuse it.
	plugins, advanced := "[rabbitmq_amqp1_0,rabbitmq_stomp].\n", "[{rabbitmq_amqp1_0, [{default_user, none}]}].\n"
	if r.cfg.four {
		plugins, advanced = "[rabbitmq_stomp].\n", "[].\n"
		conf["anonymous_login_user"] = "none"
	}
	if r.cfg.management {
		plugins = strings.Replace(plugins, "[", "[rabbitmq_management,", 1)
		conf["management.tcp.ip"], conf["management.tcp.port"] = loopback, strconv.Itoa(r.ports.management)
	}
	maps.Copy(conf, r.cfg.set)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&text, "%s = %s\n", key, conf[key])
	}
	for name, text := range map[string]string{
		"rabbitmq.conf":   text.String(),
		"advanced.config": advanced,
		"enabled_plugins": plugins,
		"rabbitmq-env":    "",
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the configuration of RabbitMQ: %w", err)
		}
	}
	return nil
}

// environment keeps the broker, and rabbitmqctl, within its folder and on the
// loopback.
func (r *RabbitMQ) environment() []string {
	at := func(name string) string { return filepath.Join(r.seen(r.dir), name) }
	return []string{
		"HOME=" + r.seen(r.dir),
		"RABBITMQ_CONF_ENV_FILE=" + at("rabbitmq-env"),
		"RABBITMQ_CONFIG_FILE=" + at("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + at("advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + at("enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + at("mnesia"),
		"RABBITMQ_LOG_BASE=" + at("log"),
		"RABBITMQ_GENERATED_CONFIG_DIR=" + at("generated"),
		"RABBITMQ_PID_FILE=" + at("pid"),
		"RABBITMQ_NODENAME=" + r.node(),
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(r.ports.dist),
		"ERL_EPMD_PORT=" + strconv.Itoa(r.ports.epmd),
		"ERL_EPMD_ADDRESS=" + loopback,
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none",
		"RABBITMQ_CTL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RUNNING_UNDER_SYSTEMD=true", // makes the script become the broker, instead of waiting for one that may outlive it
		"LC_ALL=C.UTF-8",
	}
}

// seen is the path of a file of the folder in the root of the broker.
func (r *RabbitMQ) seen(path string) string {
	if r.root == "" {
		return path
	}
	return scratchDir + strings.TrimPrefix(path, r.dir)
}

func (r *RabbitMQ) node() string { return fmt.Sprintf("perfmq-%d@localhost", r.ports.dist) }

// Start starts a stopped or killed broker again, with the same ports and its data
// on disk, and waits until it is ready. Starting a running one is an error.
func (r *RabbitMQ) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.helper == nil || !r.helper.alive() {
		epmd := "epmd"
		if r.root == "" {
			var err error
			if epmd, err = exec.LookPath(epmd); err != nil {
				return errors.New(rabbitmqInstall)
			}
		}
		var err error
		// One of our own: the broker would start one that stays.
		command := r.root.command(r.dir, epmd, "-d", "-address", loopback, "-port", strconv.Itoa(r.ports.epmd))
		r.helper, err = startProcess(ctx, processSpec{
			name: "epmd", path: command[0], args: command[1:],
			dir: r.dir, logFile: filepath.Join(r.dir, "epmd.log"), ready: "epmd running", timeout: time.Minute,
			hint: "it is part of the package erlang-base",
		})
		if err != nil {
			return err
		}
	}
	command := r.root.command(r.dir, filepath.Join(rabbitmqScripts, "rabbitmq-server"))
	return r.startMain(ctx, processSpec{
		name:    "rabbitmq",
		path:    command[0],
		args:    command[1:],
		dir:     r.dir,
		env:     r.environment(),
		logFile: r.LogFile(),
		ready:   "Server startup complete",
		timeout: 4 * time.Minute,
		hint:    "its folder is " + r.dir,
	})
}

// Ctl runs rabbitmqctl and returns its output; about a second. For lists:
// Ctl(ctx, "list_queues", "name", "messages") gives one line per queue, with tabs
// between the columns.
func (r *RabbitMQ) Ctl(ctx context.Context, args ...string) (string, error) {
	options := []string{"--quiet", "--node", r.node()}
	if strings.HasPrefix(args[0], "list_") { // others refuse it
		options = append(options, "--no-table-headers")
	}
	args = append(options, args...)
	command := r.root.command(r.dir, filepath.Join(rabbitmqScripts, "rabbitmqctl"), args...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the harness's own
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), r.environment()...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run rabbitmqctl %s: %w: %s", strings.Join(args, " "), err, lastLines(string(out), 10))
	}
	return string(out), nil
}

// AMQPURL returns amqp://127.0.0.1:PORT. Addresses are /queue/NAME and
// /topic/KEY, in RabbitMQ 4 /queues/NAME and /exchanges/amq.topic/KEY.
func (r *RabbitMQ) AMQPURL() string { return hostURL("amqp", r.ports.amqp) }

// STOMPURL returns stomp://127.0.0.1:PORT.
func (r *RabbitMQ) STOMPURL() string { return hostURL("stomp", r.ports.stomp) }

// AMQPSURL returns amqps://127.0.0.1:PORT; empty without TLS.
func (r *RabbitMQ) AMQPSURL() string { return hostURL("amqps", r.ports.amqps) }

// STOMPSURL returns stomp+ssl://127.0.0.1:PORT; empty without TLS.
func (r *RabbitMQ) STOMPSURL() string { return hostURL("stomp+ssl", r.ports.stomps) }

// ManagementURL returns the URL of the management plugin; empty without [WithRabbitMQManagement].
func (r *RabbitMQ) ManagementURL() string { return hostURL("http", r.ports.management) }

// Certs returns the certificates of the encrypted listeners; nil without TLS.
func (r *RabbitMQ) Certs() *Certs { return r.certs }
