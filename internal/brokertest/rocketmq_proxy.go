//go:build unix

package brokertest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

//go:embed etc/rocketmq/LoopbackProxy.java
var loopbackProxy []byte

// WithRocketMQProxy starts broker and proxy in one process (local mode). gRPC clients need topics that exist, of the
// type of their messages: see [RocketMQ.CreateTypedTopic].
func WithRocketMQProxy() RocketMQOption {
	return func(c *rocketConfig) {
		c.proxy = true
		c.broker["enableMixedMessageType"] = "true"
	}
}

// ProxyURL returns rocketmq+grpc://127.0.0.1:PORT of the proxy, which takes TLS (with a certificate of its own) on the
// same port; empty without one.
func (r *RocketMQ) ProxyURL() string { return hostURL("rocketmq+grpc", r.ports.proxy) }

// proxyFiles are the files that a proxy needs; none without one.
func (r *RocketMQ) proxyFiles() (map[string]string, error) {
	if !r.cfg.proxy {
		return map[string]string{}, nil
	}
	config, err := json.Marshal(map[string]any{
		"grpcServerPort": r.ports.proxy, "localServeAddr": loopback,
		"useEndpointPortFromRequest": true, // clients may come through a proxy of a test
	})
	if err != nil {
		return nil, fmt.Errorf("configure RocketMQ's proxy: %w", err)
	}
	return map[string]string{"conf/rmq-proxy.json": string(config), "LoopbackProxy.java": string(loopbackProxy)}, nil
}

// CreateTypedTopic is CreateTopic with the type of its messages: NORMAL, FIFO, DELAY, TRANSACTION, or MIXED for all of
// them. The proxy refuses other messages.
func (r *RocketMQ) CreateTypedTopic(ctx context.Context, topic string, queues int, messages string) error {
	return r.createTopic(ctx, topic, queues, "+message.type="+messages)
}

// CreateGroup creates a consumer group. In an orderly one, the proxy gives out the messages of a message group
// one after the other.
func (r *RocketMQ) CreateGroup(ctx context.Context, group string, orderly bool) error {
	body, err := json.Marshal(map[string]any{
		"groupName": group, "consumeEnable": true, "consumeMessageOrderly": orderly,
		"retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0,
	})
	if err == nil {
		_, err = r.ask(ctx, r.Broker(), wire.ReqUpdateAndCreateSubscriptionGroup, nil, body...)
	}
	if err != nil {
		return fmt.Errorf("create group %s: %w", group, err)
	}
	return nil
}

// brokerClass returns the arguments that name the main class of the broker, and its configuration.
func (r *RocketMQ) brokerClass() []string {
	file := filepath.Join(r.dir, "broker.conf")
	if !r.cfg.proxy {
		return []string{"org.apache.rocketmq.broker.BrokerStartup", "-c", file}
	}
	return []string{
		filepath.Join(r.dir, "LoopbackProxy.java"),
		"-pm", "local", "-bc", file, "-pc", filepath.Join(r.dir, "conf", "rmq-proxy.json"), "-n", r.NameServer(),
	}
}
