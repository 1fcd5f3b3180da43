//go:build unix

package brokertest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// RocketMQOption changes how a RocketMQ broker is configured. Without any it accepts
// anyone, creates topics by their use (with 8 queues), filters by SQL92,
// and checks transactions after three seconds.
type RocketMQOption func(*rocketConfig)

type rocketConfig struct {
	version string
	heap    string
	broker  map[string]string // its properties
	join    *RocketMQ         // of the cluster, with the name server
	wanted  rocketPorts       // 0: a free one
	proxy   bool              // in the broker's process
}

func defaultRocketConfig() rocketConfig {
	return rocketConfig{
		version: RocketMQVersion, heap: "400m",
		broker: map[string]string{
			"brokerClusterName":     "DefaultCluster",
			"brokerName":            "broker-a",
			"brokerId":              "0",
			"bindAddress":           loopback,
			"brokerIP1":             loopback,
			"brokerIP2":             loopback,
			"autoCreateTopicEnable": "true",
			"enablePropertyFilter":  "true",
			"defaultTopicQueueNums": "8",
			// Files are made at their full size; small ones are quick to make. (Up to 4.6 it was maped; brokers ignore
			// unknown names without a word.)
			"mappedFileSizeCommitLog":    "134217728",
			"mappedFileSizeConsumeQueue": "600000",
			"timerWheelEnable":           "true",
			"timerPrecisionMs":           "100",
			// Each flush compares the whole wheel, 38 MB with this precision, a byte at a time: one a second would take
			// a sixth of a processor of a broker that has nothing to do.
			"timerFlushIntervalMs": "60000",
			// Check-backs are three seconds apart, not half a minute. The broker records commits in batches; even on a busy
			// machine it must write a batch before the next check-back, or it checks back the transactions of the batch,
			// which are then committed a second time.
			"transactionOpBatchInterval": "100",
			"transactionTimeOut":         "6000",
			"transactionCheckInterval":   "3000",
			// The thread that writes the figures of transactions does so for the first time after this, and spins until then:
			// the default keeps a processor busy for the first ten seconds.
			"transactionMetricFlushInterval": "500",
			// A broker sheds load when a send has waited for 200 ms, which on a busy machine a cold one often lets it.
			"waitTimeMillsInSendQueue":    "10000",
			"osPageCacheBusyTimeOutMills": "10000",
			// The minimum. After a registration that timed out on a busy machine, the broker comes back sooner than
			// after 30 s.
			"registerNameServerPeriod": "10000",
			// A full disk of the machine must not change the tests.
			"diskMaxUsedSpaceRatio": "99",
		},
	}
}

// WithRocketMQ49 starts RocketMQ 4.9, without its benchmarks.
func WithRocketMQ49() RocketMQOption {
	return func(c *rocketConfig) { c.version = rocketMQ49Version }
}

// WithRocketMQDefaultPorts takes the ports that RocketMQ has by default (9876, 10911 with its neighbours, and 8081 for
// the proxy) where they are free.
func WithRocketMQDefaultPorts() RocketMQOption {
	return func(c *rocketConfig) {
		c.wanted = rocketPorts{defaultNameServerPort, defaultRocketMQPort, defaultProxyPort}
	}
}

// WithRocketMQHeap sets the broker's heap in Java's notation, 400m by default.
func WithRocketMQHeap(size string) RocketMQOption {
	return func(c *rocketConfig) { c.heap = size }
}

// WithRocketMQProperty sets a property of the broker's configuration file. RocketMQ ignores unknown names without a
// word.
func WithRocketMQProperty(key, value string) RocketMQOption {
	return func(c *rocketConfig) { c.broker[key] = value }
}

// WithRocketMQCluster starts only a broker, of that name, which joins the cluster
// of another one and uses its name server. The other must be closed later.
func WithRocketMQCluster(other *RocketMQ, name string) RocketMQOption {
	return func(c *rocketConfig) {
		c.join = other
		c.broker["brokerName"] = name
	}
}

// WithRocketMQLogin refuses requests not signed with [RocketMQUser] and
// [RocketMQPassword] (RocketMQ's ACL 2.0).
func WithRocketMQLogin() RocketMQOption {
	return func(c *rocketConfig) {
		provider := "org.apache.rocketmq.auth.authentication.provider."
		c.broker["authenticationEnabled"] = "true"
		c.broker["authenticationProvider"] = provider + "DefaultAuthenticationProvider"
		c.broker["authenticationMetadataProvider"] = provider + "LocalAuthenticationMetadataProvider"
		c.broker["initAuthenticationUser"] = fmt.Sprintf(`{"username":%q,"password":%q}`, RocketMQUser, RocketMQPassword)
		c.broker["innerClientAuthenticationCredentials"] = fmt.Sprintf(`{"accessKey":%q,"secretKey":%q}`, RocketMQUser,
			RocketMQPassword)
	}
}

func (r *RocketMQ) writeConfig() error {
	store := filepath.Join(r.dir, "store")
	properties := map[string]string{
		"listenPort":         strconv.Itoa(r.ports.broker),
		"fastListenPort":     strconv.Itoa(r.ports.broker - 2),
		"haListenPort":       strconv.Itoa(r.ports.broker + 1),
		"namesrvAddr":        r.NameServer(),
		"storePathRootDir":   store,
		"storePathCommitLog": filepath.Join(store, "commitlog"),
	}
	maps.Copy(properties, r.cfg.broker)
	var broker []string
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		broker = append(broker, key+"="+properties[key])
	}
	namesrv := []string{
		fmt.Sprintf("listenPort=%d", r.ports.namesrv),
		"bindAddress=" + loopback,
		"rocketmqHome=" + r.dir,
		"kvConfigPath=" + filepath.Join(r.dir, "kvConfig.json"),
	}
	for _, dir := range []string{"tmp", "conf", "namesrv-home", "broker-home", "tools-home", "store"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir), 0o700); err != nil {
			return fmt.Errorf("create a folder of RocketMQ: %w", err)
		}
	}
	logging := []string{`<configuration><root level="OFF"/></configuration>`} // which 4.9 demands; 5 has its own
	files, err := r.proxyFiles()
	if err != nil {
		return err
	}
	for name, lines := range map[string][]string{
		"broker.conf": broker, "namesrv.conf": namesrv, "conf/logback_broker.xml": logging,
		"conf/logback_namesrv.xml": logging,
	} {
		files[name] = strings.Join(lines, "\n") + "\n"
	}
	for name, text := range files {
		err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600)
		if err != nil {
			return fmt.Errorf("write the configuration of RocketMQ: %w", err)
		}
	}
	return nil
}

// rocketLib returns the folder with the jars of name server, broker, admin tool
// and benchmarks, or of the proxy, and all they depend on.
func rocketLib(ctx context.Context, c *rocketConfig) (string, error) {
	artifacts, name := []string{"namesrv", "broker", "example", "tools"}, "rocketmq-"+c.version
	switch {
	case c.proxy: // with its own libraries, which the other brokers do without
		artifacts, name = append(artifacts, "proxy"), "rocketmq-proxy-"+c.version
	case c.version == rocketMQ49Version:
		artifacts = []string{"namesrv", "broker", "tools"} // the registry has no example of it
	}
	var list []mavenDependency
	for _, artifact := range artifacts {
		d := mavenDependency{group: "org.apache.rocketmq", artifact: "rocketmq-" + artifact, version: c.version}
		list = append(list, d)
	}
	return once(ctx, name, func(tmp string) error { return mvnClassPath(ctx, tmp, list...) })
}
