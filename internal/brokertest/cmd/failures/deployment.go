//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/internal/brokertest"
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
	cutter    *cutter  // nil without one
	kept      []string // the kept queues, by endpoint
	close     func() error
	// stored asks for the number of messages in a queue from which nothing was received.
	stored func(ctx context.Context, queue string) (int64, error)
	// left asks for the number of messages that are in a queue; nil if the broker does not tell.
	left func(ctx context.Context, queue string) (int64, error)
	// lasting: stored also counts messages that were received, over restarts of the broker, too.
	lasting bool
	// alarm, if not nil, makes the broker hold all producers up, or lets them go on.
	alarm func(ctx context.Context, on bool) error
	// answers, if not nil, is how a proxy of that address changes what the broker answers.
	answers func(ctx context.Context, c *cutter) (func([]byte) []byte, error)
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

// throughProxies leads all connections of clients through the cutter.
func (c *cluster) throughProxies(ctx context.Context) error {
	var change func([]byte) []byte
	if c.answers != nil {
		var err error
		if change, err = c.answers(ctx, c.cutter); err != nil {
			return err
		}
	}
	for i := range c.endpoints {
		for j, host := range c.endpoints[i].hosts {
			proxied, err := c.cutter.through(ctx, host, change)
			if err != nil {
				return err
			}
			c.endpoints[i].hosts[j] = proxied
		}
	}
	return nil
}

// deployments are all of them, in the order of the page.
func deployments() []*deployment {
	return []*deployment{
		{
			name: "artemis", launch: launchArtemis,
			failures: []string{"kill", "kill-transient", "stop", "cut", "full-block", "full-fail"},
		},
		{
			name: "activemq", launch: launchActiveMQ,
			failures: []string{"kill", "kill-transient", "stop", "cut", "full-store", "full-fail"},
		},
		{name: "rocketmq", launch: launchRocketMQ, failures: []string{"kill", "stop", "cut"}},
		{
			name: "rabbitmq", launch: launchRabbitMQ,
			failures: []string{"kill", "kill-transient", "stop", "cut", "alarm", "full-fail"},
		},
		{name: "artemis-pair", launch: launchArtemisPair, failures: []string{"kill-primary", "kill-backup", "stop"}},
		{name: "activemq-pair", launch: launchActiveMQPair, failures: []string{"kill-primary", "kill-backup", "stop"}},
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
