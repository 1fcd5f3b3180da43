//go:build unix

package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/tcpproxy"
)

// deployment is one broker, or several that work together.
type deployment struct {
	name     string // in -only
	failures []string
	launch   func(context.Context, use) (*cluster, error)
}

// node is a broker's process.
type node interface {
	PID() int
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
	primary   node // nil of the embedded broker
	backup    node // nil of a broker alone
	pid       int  // of the embedded broker
	endpoints []endpoint
	proxies   []*tcpproxy.Proxy // empty without any
	close     func() error
	// stored asks for the number of messages in a queue from which nothing was received.
	stored func(ctx context.Context, queue string) (int64, error)
	// left asks for the number of messages in a queue; nil if the broker does not know it.
	left func(ctx context.Context, queue string) (int64, error)
	// lasting: stored counts messages for the life of a queue, received ones too, over restarts of the broker.
	lasting bool
	// dismiss closes all connections of clients, as an operator would; nil if the broker has no such operation.
	dismiss func(ctx context.Context) error
	// announced is an address that brokers give their clients; empty if they give none.
	announced string
}

// endpoint is where the brokers of a cluster speak a protocol.
type endpoint struct {
	protocol string
	hosts    []string // host:port, those of the primary first
	settings settings // of the broker in a scenario
	prefix   string   // of names of queues
	durable  bool     // all messages are persistent: producers have no choice
}

func (e *endpoint) url() string { return e.protocol + "://" + strings.Join(e.hosts, ",") }

// login returns the flags of a login, if the endpoint wants one.
func (e *endpoint) login() []string {
	if e.settings == nil {
		return nil
	}
	return []string{"--user", brokertest.User, "--password", brokertest.Password}
}

// endpoint returns the endpoint of a protocol.
func (c *cluster) endpoint(protocol string) *endpoint {
	return &c.endpoints[slices.IndexFunc(c.endpoints, func(e endpoint) bool { return e.protocol == protocol })]
}

// throughProxies leads all connections of clients through proxies, which the caller closes.
func (c *cluster) throughProxies() error {
	to := func(cfg tcpproxy.Config) (*tcpproxy.Proxy, error) {
		cfg.Announced = c.announced
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

// deployments are all of them, in the order of the record.
func deployments() []deployment {
	failures := func(names string) []string { return strings.Fields(names) }
	heap := brokertest.WithHeap(smallHeap)
	classic := []brokertest.ActiveMQOption{brokertest.WithActiveMQHeap(smallHeap), brokertest.WithActiveMQManagement()}
	return []deployment{
		{"artemis", failures("kill kill-transient kill-unconfirmed stop cut full-block full-fail restart dismiss " +
			"start-200k start-1m"), launchArtemis},
		{"activemq", failures("kill kill-transient kill-unconfirmed stop cut full-store full-fail restart dismiss " +
			"start-200k start-1m start-2m"), launchActiveMQ},
		{"rocketmq", failures("kill kill-unconfirmed stop cut restart start-200k start-1m"), launchRocketMQ},
		{"rabbitmq", failures("kill kill-transient kill-unconfirmed stop cut full-fail restart dismiss " +
			"start-200k start-1m"), launchRabbitMQ},
		{"qpid", failures("kill stop cut restart dismiss"), launchQpid},
		{
			"artemis-pair", failures("kill-primary kill-backup stop"),
			pair("primary and backup, shared store", brokertest.LaunchArtemisPair, artemisDepth, heap),
		},
		{
			"artemis-replicated", failures("kill-primary kill-backup stop"),
			pair("primary and backup, replication", brokertest.LaunchArtemisReplicated, artemisDepth, heap),
		},
		{ // clients connect to the first of two brokers that pass messages on to each other
			"activemq-network", failures("kill kill-backup stop"),
			pair("network of two", brokertest.LaunchActiveMQNetwork, activemqDepth, classic...),
		},
		{
			"activemq-pair", failures("kill-primary kill-backup stop"),
			pair("master and slave, shared file system", brokertest.LaunchActiveMQPair, activemqDepth, classic...),
		},
	}
}
