//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/tcpproxy"
)

// deployment is one broker or several that work together.
type deployment struct {
	name     string // in -only
	failures []string
	launch   func(ctx context.Context, f *failure) (*cluster, error)
}

// node is a broker's process.
type node interface {
	Start(ctx context.Context) error
	Kill()
	Stop() error
	Pause() error
	Resume() error
	LogTail() string
}

// cluster is a running deployment.
type cluster struct {
	title     string
	primary   node
	backup    node // nil of a broker alone
	endpoints []endpoint
	proxies   []*tcpproxy.Proxy // empty without any
	slow      *tcpproxy.Line    // of all proxies; nil if they are fast
	kept      []string          // the kept queues, by endpoint
	live      []string          // the others
	close     func() error
	// stored asks for the number of messages in a queue from which nothing was received.
	stored func(ctx context.Context, queue string) (int64, error)
	// left asks for the number of messages that are in a queue; nil if the broker does not tell.
	left func(ctx context.Context, queue string) (int64, error)
	// lasting: stored also counts messages that were received, over restarts of the broker, too.
	lasting bool
	// alarm, if not nil, makes the broker hold all producers up, or lets them go on.
	alarm func(ctx context.Context, on bool) error
	// stop and start end the broker in an orderly way, and start it again; nil if its process ends at SIGTERM.
	stop, start func(ctx context.Context) error
	// dismiss closes all connections of clients, as an operator would; nil if the broker has no such operation.
	dismiss func(ctx context.Context) error
	// announced is an address that brokers tell their clients; empty if they tell none.
	announced string
	// copied, if not nil, asks the backup for the number of messages that all queues have ever had.
	copied func(ctx context.Context) (int64, error)
	// closed, if not nil, tells when the brokers have closed connections because of an error of their own, by their logs.
	closed func(protocol string) ([]time.Time, error)
}

// endpoint is where the brokers of a cluster speak a protocol.
type endpoint struct {
	protocol string
	hosts    []string // host:port, those of the primary first
	settings settings // of the broker in a scenario
	prefix   string   // of names of queues
	durable  bool     // all messages are persistent: producers have no choice
	// declare, if not nil, makes a queue before clients use it.
	declare func(ctx context.Context, queue string) error
}

func (e *endpoint) url() string { return e.protocol + "://" + strings.Join(e.hosts, ",") }

// depths asks for the numbers of messages in the kept queues.
func (c *cluster) depths(ctx context.Context) ([]int64, error) {
	list := make([]int64, len(c.kept))
	for i, queue := range c.kept {
		n, err := c.stored(ctx, queue)
		if err != nil {
			return nil, fmt.Errorf("ask the broker for its count: %w", err)
		}
		list[i] = n
	}
	return list, nil
}

// throughProxies leads all connections of clients through proxies, which close ends.
func (c *cluster) throughProxies() error {
	to := func(cfg tcpproxy.Config) (*tcpproxy.Proxy, error) {
		cfg.Announced, cfg.Line = c.announced, c.slow
		p, err := tcpproxy.New(cfg)
		if err == nil {
			c.proxies = append(c.proxies, p)
		}
		return p, err
	}
	var announced *tcpproxy.Proxy
	if c.announced != "" {
		var err error
		if announced, err = to(tcpproxy.Config{Target: c.announced}); err != nil {
			return err
		}
	}
	for i := range c.endpoints {
		for j, host := range c.endpoints[i].hosts {
			p, err := to(tcpproxy.Config{Target: host, For: announced})
			if err != nil {
				return err
			}
			c.endpoints[i].hosts[j] = p.Addr()
		}
	}
	return nil
}

// tear cuts all connections of clients in the middle of a frame, and returns their number.
func (c *cluster) tear(ctx context.Context) (n int, err error) {
	torn := make([]int, len(c.proxies))
	var g errgroup.Group
	for i, p := range c.proxies {
		g.Go(func() (err error) {
			torn[i], err = p.Tear(ctx)
			return err
		})
	}
	err = g.Wait()
	for _, t := range torn {
		n += t
	}
	if err == nil && n == 0 {
		err = errors.New("cut connections: there are none")
	}
	return n, err
}

// deployments are all of them, in the order of the page.
func deployments() []*deployment {
	// of a broker
	alone := []string{"restart", "dismiss", "start-200k", "start-1m"}
	return []*deployment{
		{
			name: "artemis", launch: launchArtemis,
			failures: append([]string{
				"kill", "kill-transient", "kill-unconfirmed", "stop", "cut", "slow", "full-block", "full-fail",
			}, alone...),
		},
		{
			name: "activemq", launch: launchActiveMQ,
			failures: append([]string{
				"kill", "kill-transient", "kill-unconfirmed", "stop", "cut", "slow", "full-store", "full-fail",
			}, append(alone, "start-2m")...),
		},
		{
			name: "rocketmq", launch: launchRocketMQ,
			failures: []string{
				"kill", "kill-unconfirmed", "stop", "cut", "slow", "restart", "start-200k", "start-1m",
			},
		},
		{
			name: "rabbitmq", launch: launchRabbitMQ,
			failures: append([]string{
				"kill", "kill-transient", "kill-unconfirmed", "stop", "cut", "slow", "alarm", "full-fail",
			}, alone...),
		},
		{name: "qpid", launch: launchQpid, failures: []string{"kill", "stop", "cut", "restart", "dismiss"}},
		{name: "artemis-pair", launch: launchArtemisPair, failures: []string{"kill-primary", "kill-backup", "stop"}},
		{
			name: "artemis-replicated", launch: launchArtemisReplicated,
			failures: []string{"kill-primary", "kill-backup", "stop"},
		},
		{name: "activemq-network", launch: launchActiveMQNetwork, failures: []string{"kill", "kill-backup", "stop"}},
		{name: "activemq-pair", launch: launchActiveMQPair, failures: []string{"kill-primary", "kill-backup", "stop"}},
		{
			name: "rabbitmq-quorum", launch: launchRabbitMQQuorum,
			failures: []string{"kill", "kill-primary", "kill-backup", "stop", "cut", "full-fail"},
		},
		{
			name: "rocketmq-sync-sync", launch: launchRocketMQPair(syncFlush, syncMaster, 2),
			failures: []string{"kill", "kill-master", "kill-slave", "stop", "cut"},
		},
		{ // as brokers are configured that are told no more than that: inSyncReplicas is 1 by default
			name: "rocketmq-sync-default", launch: launchRocketMQPair(syncFlush, syncMaster, 1),
			failures: []string{"kill-slave"},
		},
		{
			name: "rocketmq-async-sync", launch: launchRocketMQPair(asyncFlush, syncMaster, 2),
			failures: []string{"kill-master", "kill-slave", "stop"},
		},
		{
			name: "rocketmq-sync-async", launch: launchRocketMQPair(syncFlush, asyncMaster, 1),
			failures: []string{"kill-master-async", "kill-backup", "stop"},
		},
		{
			name: "rocketmq-async-async", launch: launchRocketMQPair(asyncFlush, asyncMaster, 1),
			failures: []string{"kill-master-async", "kill-backup", "stop"},
		},
	}
}

// hostOf returns host:port of a URL without a path.
func hostOf(url string) string {
	_, host, _ := strings.Cut(url, "://")
	return host
}

func login() settings {
	return settings{"user": brokertest.User, "password": brokertest.Password}
}

// with returns settings and one more.
func (s settings) with(key string, value any) settings {
	s[key] = value
	return s
}
