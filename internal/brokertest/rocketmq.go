//go:build unix

package brokertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// RocketMQVersion is the version that tests run against.
const RocketMQVersion = "5.5.0"

// rocketMQ49Version is the version of [WithRocketMQ49].
const rocketMQ49Version = "4.9.7"

// rocketStartTimeout is for each of the steps of a start.
const rocketStartTimeout = 4 * time.Minute

// The login that a broker with [WithRocketMQLogin] knows.
const (
	RocketMQUser     = "perfmq-admin"
	RocketMQPassword = "perfmq-secret"
)

// RocketMQ is a running name server and one broker. Its methods may be called
// concurrently, except the methods that start and stop it.
type RocketMQ struct {
	daemon // its helper is the name server, which runs until Close
	cfg    rocketConfig
	lib    string // folder of the distribution's jars
	ports  rocketPorts
	net    *hermit // 4.9 listens on all addresses; nil for others
}

// rocketPorts are the listening ports. The broker also has broker-2 (for control traffic) and broker+1 (for replicas):
// pickPorts keeps the neighbours of each port free.
type rocketPorts struct{ namesrv, broker, proxy int }

// StartRocketMQ starts a name server and a broker for one test and ends them
// with it. A broker that cannot start fails the test; a test that fails logs the
// end of the broker's log.
func StartRocketMQ(tb testing.TB, opts ...RocketMQOption) *RocketMQ {
	tb.Helper()
	return startForTest(tb, "RocketMQ", LaunchRocketMQ, opts)
}

// LaunchRocketMQ starts a name server and a broker and waits until both are
// ready, about six seconds. The first time on a machine it also fetches the
// distribution. The caller must Close it. The context bounds the start only.
func LaunchRocketMQ(ctx context.Context, opts ...RocketMQOption) (*RocketMQ, error) {
	r := &RocketMQ{cfg: defaultRocketConfig()}
	for _, opt := range opts {
		opt(&r.cfg)
	}
	if err := r.open("RocketMQ", "rocketmq", true); err != nil {
		return nil, err
	}
	if err := r.launch(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *RocketMQ) launch(ctx context.Context) (err error) {
	if r.lib, err = rocketLib(ctx, &r.cfg); err != nil {
		return err
	}
	if r.cfg.version == rocketMQ49Version {
		if r.net, err = newHermit(); err != nil {
			return err
		}
	}
	return r.firstStart(r.configure, func() error { return r.Start(ctx) })
}

// Close kills broker and name server and removes their folder. It may be called
// again.
func (r *RocketMQ) Close() error {
	err := r.daemon.Close()
	if r.net != nil {
		r.net.close()
		r.net = nil
	}
	return err
}

// configure picks ports, writes the configuration, and publishes the ports of a network of its own.
func (r *RocketMQ) configure() error {
	ports, err := r.pickPorts(r.cfg.wanted.namesrv, r.cfg.wanted.broker, r.cfg.wanted.proxy)
	if err != nil {
		return err
	}
	r.ports = rocketPorts{namesrv: ports[0], broker: ports[1]}
	if r.cfg.proxy {
		r.ports.proxy = ports[2]
	}
	if r.cfg.join != nil {
		r.ports.namesrv = r.cfg.join.ports.namesrv
	}
	r.cfg.wanted = rocketPorts{} // of no use if a neighbour is taken
	if err := r.writeConfig(); err != nil {
		return err
	}
	if r.net == nil {
		return nil
	}
	r.net.unpublish()
	return r.net.publish(r.ports.namesrv, r.ports.broker)
}

// Start starts the name server and the broker, unless they run, with the same ports,
// configuration and messages, and waits until it is ready.
func (r *RocketMQ) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.cfg.join == nil && (r.helper == nil || !r.helper.alive()) {
		r.helper, err = startProcess(ctx, r.spec("namesrv", "The Name Server boot success",
			append(jvm("-XX:+UseSerialGC"), "-Xms64m", "-Xmx64m"),
			"org.apache.rocketmq.namesrv.NamesrvStartup", "-c", filepath.Join(r.dir, "namesrv.conf")))
		if err != nil {
			return err
		}
	}
	if r.proc == nil || !r.proc.alive() {
		ready := "boot success"
		if r.cfg.proxy {
			ready = "rocketmq-proxy startup successfully"
		}
		spec := r.spec("broker", ready,
			append(jvm("-XX:+UseG1GC"), "-Xms"+r.cfg.heap, "-Xmx"+r.cfg.heap, "-XX:MaxDirectMemorySize=512m"),
			r.brokerClass()...)
		if r.proc, err = startProcess(ctx, spec); err != nil {
			return err
		}
	}
	return r.waitRegistered(ctx)
}

// waitRegistered waits until clients learn the broker from the name server, which is shortly after both are ready.
func (r *RocketMQ) waitRegistered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rocketStartTimeout)
	defer cancel()
	err := poll(ctx, 20*time.Millisecond, func() (bool, error) {
		answer, err := r.ask(ctx, r.NameServer(), wire.ReqGetBrokerClusterInfo, nil)
		return bytes.Contains(answer, []byte(`"`+r.Broker()+`"`)), err
	})
	if err != nil {
		return fmt.Errorf("wait for the broker to register at the name server: %w", err)
	}
	return nil
}

func (r *RocketMQ) spec(name, ready string, jvm []string, class ...string) processSpec {
	if r.cfg.version == rocketMQ49Version { // it unmaps the files of deleted topics by reflection
		jvm = append(jvm, "-XX:+IgnoreUnrecognizedVMOptions", "--add-opens=java.base/java.nio=ALL-UNNAMED",
			"--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED", "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED")
	}
	args := append(append(jvm,
		"-Duser.home="+filepath.Join(r.dir, name+"-home"), // it writes its logs there
		"-Drocketmq.client.logUseSlf4j=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Djava.io.tmpdir="+filepath.Join(r.dir, "tmp"),
		"-classpath", filepath.Join(r.lib, "*")), class...)
	return processSpec{
		name: "rocketmq " + name, path: r.java, args: args, dir: r.dir,
		env:     []string{"ROCKETMQ_HOME=" + r.dir, "NAMESRV_ADDR=" + r.NameServer()},
		logFile: filepath.Join(r.dir, name+".log"), ready: ready, timeout: rocketStartTimeout,
		hint: "RocketMQ needs Java 8 or newer; its folder is " + r.dir, network: r.net,
	}
}

// URL returns rocketmq://127.0.0.1:PORT of the name server.
func (r *RocketMQ) URL() string { return hostURL("rocketmq", r.ports.namesrv) }

// NameServer returns host:port of the name server.
func (r *RocketMQ) NameServer() string {
	return net.JoinHostPort(loopback, strconv.Itoa(r.ports.namesrv))
}

// Broker returns host:port of the broker, as clients learn it from the name server.
func (r *RocketMQ) Broker() string {
	return net.JoinHostPort(loopback, strconv.Itoa(r.ports.broker))
}
